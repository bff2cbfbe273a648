// Do a candidate's flags ask the command for that candidate, and are settings shared as they
// should?
#include "tools/planner/candidate.hpp"

#include <doctest/doctest.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cost_models/state_bytes.hpp"
#include "sim/base/errors.hpp"
#include "tests/questions/ask.hpp"
#include "tools/planner/evaluator.hpp"
#include "tools/planner/planner.hpp"
#include "tools/study/run/layout.hpp"

namespace stageline::candidate_tests {
namespace {

planner::Candidate on_pipeline(const std::string& schedule, int devices, int microbatches) {
  planner::Candidate candidate;
  candidate.spec = parse_schedules(schedule).at(0);
  candidate.shape.degrees.pipeline = devices;
  candidate.shape.microbatches = microbatches;
  return candidate;
}

SettingRequest measured() {
  SettingRequest base;
  base.trace = "resnet50-cpu";
  base.cluster.cluster = "v100x4-pcie";
  return base;
}

SettingRequest language_model() {
  SettingRequest base;
  base.trace = "model:gpt@h100,layers=8,hidden=1024,heads=16,vocab=51200,seq=1024,batch=1";
  base.cluster.cluster = "h100x8*2";
  return base;
}

// Of a language model, with what a candidate can say of everything.
std::vector<planner::Candidate> many() {
  std::vector<planner::Candidate> all;
  planner::Candidate wide = on_pipeline("zb_h1", 4, 8);
  wide.shape.degrees.tensor = 2;
  wide.shape.degrees.data = 2;
  wide.shape.sequence_parallel = true;
  wide.shape.degrees.zero = Zero::optimizer;
  wide.shape.degrees.precision = find_precision("bf16");
  wide.shape.microbatch_size = 2;
  wide.recomputation = parse_recomputation("every:2@0,2-3;full@1", "");
  wide.recomputation.start = RecomputeStart::late;
  all.push_back(wide);

  planner::Candidate copied = on_pipeline("gpipe:recompute=never", 2, 4);
  copied.offloading = parse_offloading("@0", "");
  copied.offloading.ahead = 3;
  copied.partition = "0-4,5-";
  all.push_back(copied);

  planner::Candidate nested = on_pipeline("interleaved_1f1b:chunks=2", 2, 4);
  nested.shape.degrees.context = 2;
  nested.shape.degrees.data = 4;
  nested.shape.degrees.order = {Dimension::context, Dimension::pipeline, Dimension::tensor,
                                Dimension::expert, Dimension::data};
  nested.recomputation = parse_recomputation("selective", "");
  nested.partition = "Et|tt|ttt|ttL";
  all.push_back(nested);

  all.push_back(on_pipeline("1f1b", 8, 16));
  return all;
}

// As a shell splits them.
std::vector<std::string> words_of(const std::string& flags) {
  std::FILE* const shell = ::popen(("printf '%s\\n' " + flags).c_str(), "r");
  REQUIRE(shell != nullptr);
  std::vector<std::string> words{""};
  for (int c = std::fgetc(shell); c != EOF; c = std::fgetc(shell)) {
    if (c == '\n') {
      words.emplace_back();
    } else {
      words.back() += static_cast<char>(c);
    }
  }
  ::pclose(shell);
  words.pop_back();
  return words;
}

}  // namespace

TEST_CASE("the flags of a candidate ask for it to the letter") {
  const SettingRequest base = language_model();
  planner::Candidate wide = many().at(0);
  CHECK(flags_of(base, wide) ==
        "--schedule zb_h1 --pp 4 --tp 2 --dp 2 --zero 1 --precision bf16 --sequence-parallel "
        "--microbatch-size 2 --microbatches 8 --recompute 'every:2@0,2-3;full@1' "
        "--recompute-start late");
  planner::Candidate long_ones = on_pipeline("1f1b", 2, 4);
  long_ones.shape.degrees.context = 4;
  long_ones.shape.cp_comm_type = "a2a+p2p:2";
  CHECK(flags_of(base, long_ones) ==
        "--schedule 1f1b --pp 2 --cp 4 --cp-comm-type a2a+p2p:2 --microbatches 4");
  CHECK(flags_of(base, many().at(1)) ==
        "--schedule gpipe --devices 2 --microbatches 4 --partition 0-4,5- --offload @0 "
        "--prefetch 3");
  CHECK(flags_of(base, many().at(2)) ==
        "--schedule interleaved_1f1b --pp 2 --cp 2 --dp 4 --order cp-pp-tp-ep-dp --microbatches 4 "
        "--partition 'Et|tt|ttt|ttL' --recompute selective");
}

TEST_CASE("a part of a named cluster is said by --devices, where the search was told of parts") {
  SettingRequest base = language_model();
  base.devices = {8, 16};
  planner::Candidate half = on_pipeline("1f1b", 4, 8);
  half.shape.degrees.tensor = 2;
  CHECK(flags_of(base, half) == "--schedule 1f1b --devices 8 --pp 4 --tp 2 --microbatches 8");
  base.cluster.cluster.clear();
  CHECK(flags_of(base, half) == "--schedule 1f1b --pp 4 --tp 2 --microbatches 8");
}

TEST_CASE("the command, asked with those flags, says what the evaluator says") {
  const SettingRequest base = language_model();
  planner::Evaluator evaluator(base);
  for (const planner::Candidate& candidate : many()) {
    const std::string flags = flags_of(base, candidate);
    CAPTURE(flags);
    const planner::Judgement judged = evaluator.judge(candidate);
    CHECK(judged.why_not == "");
    REQUIRE(judged.verdict.has_value());
    std::vector<std::string> words{"simulate", base.trace, "--cluster", base.cluster.cluster,
                                   "--quiet",  "--json",   "-"};
    for (const std::string& word : words_of(flags)) words.push_back(word);
    const test::Answer answer = test::ask(words);
    REQUIRE(answer.exit_code == 0);
    const nlohmann::json said = nlohmann::json::parse(answer.out);
    CHECK(said["step_time_ps"] == judged.verdict->step.count());
    REQUIRE(said["per_device"].size() == judged.verdict->peak.size());
    for (std::size_t d = 0; d < judged.verdict->peak.size(); ++d) {
      CHECK(said["per_device"][d]["peak_bytes"] == judged.verdict->peak[d].count);
    }
  }
}

TEST_CASE(
    "experts are tried with the tensor degree that is fixed, else with that of the rest and whole") {
  planner::PlanRequest request;
  request.setting.trace =
      "model:transformer@h100,layers=4,hidden=512,heads=8,seq=256,experts=4,topk=2,batch=1";
  request.setting.cluster.cluster = "h100x8";
  request.samples = 32;
  for (const char* const item :
       {"tp=2", "dp=4", "zero=0", "sequence-parallel=yes", "microbatch-size=1"}) {
    planner::fix(request.space, item);
  }
  const auto tried = [&] {
    std::vector<std::pair<int, int>> all;
    for (const planner::Shape& shape : planner::shapes_of(request)) {
      all.emplace_back(shape.degrees.expert, shape.degrees.expert_tensor);
    }
    return all;
  };
  using Pairs = std::vector<std::pair<int, int>>;
  CHECK(tried() == Pairs{{1, 0}, {2, 0}, {4, 0}, {2, 1}, {4, 1}, {8, 1}});
  planner::fix(request.space, "sequence-parallel=no");
  CHECK(tried() == Pairs{{1, 0}, {2, 0}, {4, 0}});
  planner::fix(request.space, "sequence-parallel=yes");
  planner::fix(request.space, "etp=1|2");
  CHECK(tried() == Pairs{{1, 1}, {2, 1}, {4, 1}, {8, 1}, {1, 2}, {2, 2}, {4, 2}});
  planner::fix(request.space, "etp=3");
  CHECK_THROWS_WITH_AS(planner::shapes_of(request), doctest::Contains("is a multiple of etp 3"),
                       UsageError);

  planner::Candidate folded = on_pipeline("1f1b", 1, 8);
  folded.shape.degrees.tensor = 2;
  folded.shape.degrees.data = 4;
  folded.shape.degrees.expert = 4;
  folded.shape.degrees.expert_tensor = 1;
  folded.shape.sequence_parallel = true;
  CHECK(flags_of(request.setting, folded) ==
        "--schedule 1f1b --pp 1 --tp 2 --ep 4 --etp 1 --dp 4 --sequence-parallel --microbatches 8");
  planner::Evaluator evaluator(request.setting);
  const planner::Judgement judged = evaluator.judge(folded);
  REQUIRE(judged.verdict);
  folded.shape.degrees.expert_tensor = 2;
  CHECK(evaluator.judge(folded).verdict.value().step != judged.verdict->step);
  folded.shape.degrees.expert_tensor = 1;
  folded.shape.sequence_parallel = false;
  CHECK(evaluator.judge(folded).why_not.find("needs sequence parallelism") != std::string::npos);
}

TEST_CASE("a pipeline whose ends are tied is asked for by its ranks, which reduce the gradients") {
  SettingRequest base = language_model();
  base.cluster.cluster = "h100x8";
  planner::Evaluator evaluator(base);
  const planner::Candidate devices = on_pipeline("1f1b", 8, 8);
  planner::Candidate ranks = devices;
  ranks.shape.as_ranks = true;
  CHECK(flags_of(base, devices) == "--schedule 1f1b --devices 8 --microbatches 8");
  CHECK(flags_of(base, ranks) == "--schedule 1f1b --pp 8 --microbatches 8");
  const planner::Judgement judged = planner::Evaluator(base).judge(ranks);
  REQUIRE(judged.verdict);
  CHECK(judged.verdict->step > evaluator.judge(devices).verdict.value().step);
  const test::Answer answer = test::ask({"simulate", base.trace, "--cluster", "h100x8", "--pp", "8",
                                         "--microbatches", "8", "--quiet", "--json", "-"});
  CHECK(nlohmann::json::parse(answer.out)["step_time_ps"] == judged.verdict->step.count());
}

TEST_CASE("what refuses a candidate is a sentence, each time it is asked") {
  planner::Evaluator evaluator(language_model(), 1);
  planner::Candidate too_many = on_pipeline("1f1b", 4, 4);
  too_many.shape.degrees.tensor = 64;
  for (int turn = 0; turn < 2; ++turn) {
    const planner::Judgement judged = evaluator.judge(too_many);
    CHECK(!judged.verdict);
    CHECK(judged.why_not.find("64") != std::string::npos);
    CHECK_THROWS_AS(evaluator.setting(too_many.shape), UsageError);
    CHECK(evaluator.judge(on_pipeline("1f1b", 4, 4)).verdict);
  }
  planner::Candidate odd = on_pipeline("dualpipe", 3, 4);
  CHECK(!evaluator.judge(odd).verdict);
  CHECK(evaluator.judge(odd).why_not.find("dualpipe") != std::string::npos);
}

TEST_CASE("candidates of one shape share their setting, and those of others do not") {
  planner::Evaluator evaluator(language_model());
  planner::Candidate first = on_pipeline("1f1b", 4, 4);
  planner::Candidate second = on_pipeline("gpipe", 4, 8);
  CHECK(evaluator.setting(first.shape) == evaluator.setting(second.shape));
  second.shape.microbatch_size = 2;
  CHECK(evaluator.setting(first.shape) != evaluator.setting(second.shape));
  second = first;
  second.shape.degrees.zero = Zero::optimizer;
  CHECK(evaluator.setting(first.shape) != evaluator.setting(second.shape));
}

TEST_CASE("two partitioners that cut alike have one simulation, and others their own") {
  planner::Evaluator evaluator(language_model());
  int alike = 0;
  int apart = 0;
  for (const char* const schedule : {"1f1b", "zb_v", "interleaved_1f1b"}) {
    for (const int devices : {1, 2, 4}) {
      const planner::Candidate balanced = on_pipeline(schedule, devices, 8);
      planner::Candidate blocks = balanced;
      blocks.partition = "blocks";
      std::vector<planner::JudgedCut> others;
      const planner::Judgement first = evaluator.judge(balanced, others);
      const planner::Judgement second = evaluator.judge(blocks, others);
      const planner::Judgement lone = evaluator.judge(blocks);
      const bool same = lay_out(evaluator.case_of(balanced)).plan.partition ==
                        lay_out(evaluator.case_of(blocks)).plan.partition;
      (same ? alike : apart) += 1;
      CAPTURE(schedule);
      CAPTURE(devices);
      CHECK(others.size() == (same ? 1 : 2));
      REQUIRE(first.verdict.has_value());
      REQUIRE(second.verdict.has_value());
      CHECK(second.verdict->step == lone.verdict->step);
      CHECK(second.verdict->peak == lone.verdict->peak);
    }
  }
  CHECK(alike > 0);
  CHECK(apart > 0);
  std::vector<planner::JudgedCut> others;
  planner::Candidate refused = on_pipeline("1f1b", 4, 8);
  refused.partition = "0-3,4-";
  CHECK(evaluator.judge(refused, others).why_not == evaluator.judge(refused).why_not);
  CHECK_FALSE(evaluator.judge(refused).why_not.empty());
}

TEST_CASE("threads that ask for the same shapes get the same") {
  planner::Evaluator evaluator(measured(), 2);
  constexpr int shapes = 4;
  std::vector<std::vector<planner::Judgement>> said(4);
  std::vector<std::thread> threads;
  for (std::vector<planner::Judgement>& mine : said) {
    threads.emplace_back([&] {
      for (int devices = 1; devices <= shapes; ++devices) {
        mine.push_back(evaluator.judge(on_pipeline("1f1b", devices, 8)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<planner::Judgement>& mine : said) {
    for (std::size_t i = 0; i < mine.size(); ++i) {
      REQUIRE(mine[i].verdict.has_value());
      CHECK(mine[i].verdict->step == said[0][i].verdict->step);
    }
  }
}

}  // namespace stageline::candidate_tests
