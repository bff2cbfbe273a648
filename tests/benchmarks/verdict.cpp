// How many candidates does a search judge a second? Every synchronous schedule on eight devices
// with 32 micro-batches, by the whole of study() and by a Judge that has seen the schedule before,
// each time with other costs (another cut). And language models on 1024 devices: what opening the
// setting of a shape takes, and a verdict with reductions that overlap. To be reached: 3000
// verdicts a second on one core. And Llama-3 70B on 64 devices: two partitioners that cut alike,
// and the whole of a search.
#include <benchmark/benchmark.h>

#include <map>
#include <string>
#include <vector>

#include "cost_models/state_bytes.hpp"
#include "sim/cluster.hpp"
#include "tools/inputs/inputs.hpp"
#include "tools/planner/evaluator.hpp"
#include "tools/planner/planner.hpp"
#include "tools/study/study.hpp"
#include "tools/study/verdict.hpp"
#include "traces/traces.hpp"

namespace stageline {
namespace {

constexpr Time microseconds(std::int64_t count) { return Time{count * 1'000'000}; }

std::vector<const Scheduler*> synchronous() {
  std::vector<const Scheduler*> all;
  for (const Scheduler* const one : schedulers()) {
    if (one->synchrony == Synchrony::synchronous) all.push_back(one);
  }
  return all;
}

// Layers of different times and sizes, so that another cut has other costs.
Case case_of(const Scheduler& scheduler, bool links) {
  Case asked;
  asked.model = uniform_model(
      "layers=48,forward=1ms,input_grad=1ms,weight_grad=1ms,weights=1MB,output=1MB,stash=2MB");
  std::int64_t odd = 0;
  for (Layer& layer : asked.model.layers) {
    odd = (odd * 5 + 3) % 64;
    layer.forward += microseconds(odd);
    layer.input_grad += microseconds(2 * odd);
    layer.weight_grad += microseconds(3 * odd);
  }
  std::optional<LinkSpec> link;
  if (links) link = LinkSpec{{10'000'000'000}, microseconds(5)};
  asked.cluster = uniform_cluster(8, link, Bytes{16'000'000'000});
  asked.spec = parse_schedules(std::string(scheduler.name)).at(0);
  asked.microbatches = 32;
  return asked;
}

void set_cut(Case& asked, int turn) {
  asked.model.layers[7].forward = microseconds(900 + turn % 100);
}

void by_study(benchmark::State& state, const Scheduler* scheduler, bool links) {
  Case asked = case_of(*scheduler, links);
  int turn = 0;
  for (auto one : state) {
    set_cut(asked, ++turn);
    benchmark::DoNotOptimize(study(asked).step_time);
  }
  state.SetItemsProcessed(state.iterations());
}

void by_judge(benchmark::State& state, const Scheduler* scheduler, bool links) {
  Case asked = case_of(*scheduler, links);
  Judge judge;
  int turn = 0;
  for (auto one : state) {
    set_cut(asked, ++turn);
    benchmark::DoNotOptimize(judge.verdict(asked).step);
  }
  state.SetItemsProcessed(state.iterations());
}

// Every schedule once a turn.
void all_by_judge(benchmark::State& state, bool links) {
  std::vector<Case> cases;
  for (const Scheduler* const one : synchronous()) cases.push_back(case_of(*one, links));
  Judge judge;
  int turn = 0;
  for (auto one : state) {
    ++turn;
    for (Case& asked : cases) {
      if (asked.spec.knobs.count("sequence_chunks") > 0) continue;
      set_cut(asked, turn);
      benchmark::DoNotOptimize(judge.verdict(asked).step);
    }
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(cases.size() - 2));
}

SettingRequest gpt3() {
  SettingRequest base;
  base.trace = "model:gpt3-175b@h100,vocab=51200";
  base.cluster.cluster = "h100x8*128";
  return base;
}

planner::Candidate of_gpt3(const char* schedule, int turn) {
  planner::Candidate candidate;
  candidate.spec = parse_schedules(schedule).at(0);
  candidate.shape.degrees.tensor = 8;
  candidate.shape.degrees.pipeline = 16;
  candidate.shape.degrees.data = 8;
  candidate.shape.microbatches = 64 + turn;
  return candidate;
}

void opening(benchmark::State& state) {
  const SettingRequest base = gpt3();
  const planner::Candidate candidate = of_gpt3("1f1b", 0);
  for (auto one : state) {
    planner::Evaluator evaluator(base);
    benchmark::DoNotOptimize(evaluator.case_of(candidate).microbatches);
  }
}

void another_shape(benchmark::State& state) {
  planner::Evaluator evaluator(gpt3(), 2);
  planner::Candidate candidate = of_gpt3("1f1b", 0);
  int turn = 0;
  for (auto one : state) {
    candidate.shape.microbatch_size = 1 + ++turn % 4;
    benchmark::DoNotOptimize(evaluator.case_of(candidate).microbatches);
  }
}

void of_a_language_model(benchmark::State& state, const char* schedule) {
  planner::Evaluator evaluator(gpt3());
  planner::Candidate candidate = of_gpt3(schedule, 0);
  for (auto one : state) {
    const planner::Judgement judged = evaluator.judge(candidate);
    if (!judged.verdict) state.SkipWithError(judged.why_not.c_str());
    benchmark::DoNotOptimize(judged.verdict);
  }
}

void making_the_case(benchmark::State& state) {
  planner::Evaluator evaluator(gpt3());
  const planner::Candidate candidate = of_gpt3("1f1b", 0);
  for (auto one : state) benchmark::DoNotOptimize(evaluator.case_of(candidate).microbatches);
}

// Both plain partitioners cut Llama-3 70B alike for eight ranks.
void two_partitioners(benchmark::State& state, bool together) {
  SettingRequest base;
  base.trace = "model:llama3-70b@h100";
  base.cluster.cluster = "h100x8*8";
  planner::Evaluator evaluator(base);
  planner::Candidate balanced;
  balanced.spec = parse_schedules("zb_auto").at(0);
  balanced.shape.degrees.tensor = 4;
  balanced.shape.degrees.context = 2;
  balanced.shape.degrees.pipeline = 8;
  balanced.shape.microbatches = 128;
  planner::Candidate blocks = balanced;
  blocks.partition = "blocks";
  for (auto one : state) {
    std::vector<planner::JudgedCut> others;
    for (const planner::Candidate& candidate : {balanced, blocks}) {
      const planner::Judgement judged =
          together ? evaluator.judge(candidate, others) : evaluator.judge(candidate);
      if (!judged.verdict) state.SkipWithError(judged.why_not.c_str());
      benchmark::DoNotOptimize(judged.verdict);
    }
  }
}

// The whole search of Llama-3 70B on 64 H100, with tp 8 and two schedules or with all there is.
void planning(benchmark::State& state, bool open) {
  planner::PlanRequest request;
  request.setting.trace = "model:llama3-70b@h100";
  request.setting.cluster.cluster = "h100x8*8";
  request.setting.degrees.precision = find_precision("bf16");
  request.samples = 512;
  request.slower_by = 0.5;
  request.threads = 1;
  if (!open) {
    planner::fix(request.space, "tp=8");
    planner::fix(request.space, "zero=1");
    planner::fix(request.space, "schedule=1f1b,interleaved_1f1b");
  }
  for (auto one : state) {
    const planner::Plan found = planner::plan(request);
    if (found.front.empty()) state.SkipWithError("nothing fits");
    state.counters["simulated"] = static_cast<double>(found.counts.judged);
    state.counters["step_s"] = to_seconds(found.front.front().verdict.step);
  }
}

void register_all() {
  for (const bool links : {false, true}) {
    const std::string where = links ? "links" : "free";
    benchmark::RegisterBenchmark(("verdict/all/" + where).c_str(), all_by_judge, links)
        ->Unit(benchmark::kMillisecond);
    for (const Scheduler* const one : synchronous()) {
      if (one->name == "seq1f1b" || one->name == "svpp") continue;
      const std::string name = std::string(one->name) + "/" + where;
      benchmark::RegisterBenchmark(("verdict/" + name).c_str(), by_judge, one, links)
          ->Unit(benchmark::kMicrosecond);
      benchmark::RegisterBenchmark(("study/" + name).c_str(), by_study, one, links)
          ->Unit(benchmark::kMicrosecond);
    }
  }
  benchmark::RegisterBenchmark("gpt3/opening", opening)->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("gpt3/another_shape", another_shape)->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("gpt3/making_the_case", making_the_case)
      ->Unit(benchmark::kMicrosecond);
  for (const char* const name : {"1f1b", "zb_h1", "interleaved_1f1b"}) {
    benchmark::RegisterBenchmark((std::string("gpt3/verdict/") + name).c_str(), of_a_language_model,
                                 name)
        ->Unit(benchmark::kMillisecond);
  }
  for (const bool together : {false, true}) {
    const std::string how = together ? "together" : "apart";
    benchmark::RegisterBenchmark(("llama3-70b/two_partitioners/" + how).c_str(), two_partitioners,
                                 together)
        ->Unit(benchmark::kMillisecond);
  }
  for (const bool open : {false, true}) {
    const std::string what = open ? "open" : "tp8";
    benchmark::RegisterBenchmark(("llama3-70b/plan/" + what).c_str(), planning, open)
        ->Unit(benchmark::kSecond)
        ->Iterations(1);
  }
}

}  // namespace
}  // namespace stageline

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  stageline::register_all();
  benchmark::RunSpecifiedBenchmarks();
}
