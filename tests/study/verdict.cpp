// Is a verdict what study() says, to the picosecond and byte, whatever was judged before?
#include "tools/study/verdict.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "cost_models/state_bytes.hpp"
#include "sim/base/errors.hpp"
#include "sim/deadlock.hpp"
#include "tests/specs.hpp"
#include "tests/study/uniform.hpp"
#include "tests/thorough.hpp"
#include "tools/planner/evaluator.hpp"
#include "tools/study/study.hpp"

namespace stageline::verdict_tests {
namespace {

struct Said {
  Verdict verdict;
  std::string why_not;
};

template <class Say>
Said said(Say say) {
  try {
    return {say(), {}};
  } catch (const UsageError& error) {
    return {{}, error.what()};
  } catch (const ProgramError& error) {
    return {{}, error.what()};
  } catch (const Deadlock& error) {
    return {{}, error.what()};
  }
}

Said by_study(const Case& asked) {
  return said([&] {
    const Outcome outcome = study(asked);
    Verdict verdict{outcome.step_time, outcome.throughput, outcome.bubble_fraction, outcome.fit, {},
                    tightest(outcome)};
    for (const DeviceMemory& device : outcome.memory.device) {
      if (outcome.bytes_known()) verdict.peak.push_back(device.peak);
    }
    return verdict;
  });
}

Said by_judge(Judge& judge, const Case& asked) {
  return said([&] { return judge.verdict(asked); });
}

bool same(const Said& a, const Said& b) {
  const Verdict& one = a.verdict;
  const Verdict& other = b.verdict;
  const bool same_need =
      one.need.has_value() == other.need.has_value() &&
      (!one.need || (one.need->peak == other.need->peak && one.need->limit == other.need->limit &&
                     one.need->place == other.need->place));
  return a.why_not == b.why_not && one.step == other.step && one.throughput == other.throughput &&
         one.bubble == other.bubble && one.fit == other.fit && one.peak == other.peak && same_need;
}

void check_same(const Case& asked, const Said& judged, const Said& studied) {
  CAPTURE(spelled(asked.spec));
  CAPTURE(asked.partition);
  CAPTURE(asked.cluster.devices.size());
  CAPTURE(asked.microbatches);
  CAPTURE(judged.why_not);
  CAPTURE(studied.why_not);
  CAPTURE(judged.verdict.step.count());
  CAPTURE(studied.verdict.step.count());
  CHECK(same(judged, studied));
}

Time microseconds(std::int64_t count) { return Time{count * 1'000'000}; }

// Twelve layers, equal or with few different or many different times.
Model layers(std::mt19937& random) {
  Model model = uniform_model(
      "layers=12,forward=1ms,input_grad=1ms,weight_grad=1ms,weights=1MB,output=1MB,stash=3MB");
  const int kind = static_cast<int>(random() % 3);
  for (Layer& layer : model.layers) {
    const auto odd = [&] { return static_cast<std::int64_t>(random() % (kind == 1 ? 3 : 1000)); };
    if (kind == 0) continue;
    layer.forward += microseconds(kind == 1 ? 500 * odd() : odd());
    layer.input_grad += microseconds(kind == 1 ? 500 * odd() : odd());
    layer.weight_grad += microseconds(kind == 1 ? 500 * odd() : odd());
    layer.update = microseconds(odd());
    layer.output = Bytes{1000 * odd()};
    layer.stash_weight_grad = Bytes{1000 * odd()};
  }
  return model;
}

Cluster devices(std::mt19937& random, int count) {
  std::optional<LinkSpec> link;
  const auto kind = random() % 4;
  if (kind == 1) link = LinkSpec{{10'000'000'000}, microseconds(5)};
  if (kind == 2) link = LinkSpec{{1'000'000'000}, microseconds(100)};
  if (kind == 3) link = LinkSpec{{1'000'000'000}, Time{}};
  std::optional<Bytes> memory;
  if (random() % 2 == 0) memory = Bytes{static_cast<std::int64_t>(random() % 100) * 1'000'000};
  Cluster cluster = uniform_cluster(count, link, memory);
  if (random() % 4 == 0) cluster.devices[random() % cluster.devices.size()].rate = 0.7;
  return cluster;
}

const char* const recomputed[] = {"full", "every:2", "full@0", "none"};

Case random_case(std::mt19937& random, const ScheduleSpec& spec, int count) {
  Case asked;
  asked.model = layers(random);
  asked.cluster = devices(random, count);
  asked.spec = spec;
  const int counts[] = {1, 2, 4, 6, 8, 12};
  asked.microbatches = counts[random() % 6];
  if (random() % 4 == 0) {
    asked.recomputation = parse_recomputation(recomputed[random() % 4], "");
    if (random() % 2 == 0) asked.recomputation.start = RecomputeStart::late;
  }
  if (random() % 8 == 0) asked.offloading = parse_offloading("all", "");
  if (random() % 3 == 0) asked.partition = "uniform";
  if (random() % 16 == 0) asked.messages = Messages::blocking;
  return asked;
}

bool searches(const ScheduleSpec& spec) {
  const std::string_view name = spec.scheduler->name;
  return name == "zb_auto" || name == "zb_v" || name == "v_half" || name == "v_min" ||
         name == "cyclic";
}

// Of every schedule and knob some cases.
std::vector<Case> cases(unsigned seed, int each) {
  std::mt19937 random(seed);
  std::vector<Case> all;
  for (const int count : {1, 2, 3, 4}) {
    for (const ScheduleSpec& spec : test::all_specs(count)) {
      const bool flushed = spec.scheduler->synchrony == Synchrony::synchronous;
      for (int i = 0; i < each; ++i) {
        if (!flushed && random() % 8 != 0) continue;
        if (searches(spec) && random() % 8 != 0) continue;
        if (!test::chosen(random, 16)) continue;
        all.push_back(random_case(random, spec, count));
        // The same question about other layers and links.
        all.push_back(all.back());
        all.back().model = layers(random);
        all.back().cluster = devices(random, count);
      }
    }
  }
  return all;
}

planner::Candidate of_language_model(const std::string& schedule, int tensor, int data,
                                     int pipeline) {
  planner::Candidate candidate;
  candidate.spec = parse_schedules(schedule).at(0);
  candidate.shape.degrees.tensor = tensor;
  candidate.shape.degrees.data = data;
  candidate.shape.degrees.pipeline = pipeline;
  candidate.shape.microbatches = 8;
  return candidate;
}

}  // namespace

TEST_CASE("a verdict is what study() says, in any order, twice and from several threads") {
  const std::vector<Case> all = cases(7, 2);
  std::vector<Said> studied;
  Judge judge;
  for (const Case& asked : all) {
    studied.push_back(by_study(asked));
    check_same(asked, by_judge(judge, asked), studied.back());
  }
  std::vector<Said> again(all.size());
  std::vector<std::thread> threads;
  constexpr std::size_t many = 3;
  for (std::size_t thread = 0; thread < many; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::size_t i = all.size(); i-- > 0;) {
        if (i % many == thread) again[i] = by_judge(judge, all[i]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < all.size(); ++i) check_same(all[i], again[i], studied[i]);
  CHECK(
      std::any_of(studied.begin(), studied.end(), [](const Said& s) { return s.why_not.empty(); }));
}

TEST_CASE("verdicts of language models on ranks are what study() says") {
  SettingRequest base;
  base.trace = "model:gpt@h100,layers=8,hidden=1024,heads=16,vocab=51200,seq=1024,batch=1";
  base.cluster.cluster = "h100x8*2";
  planner::Evaluator evaluator(base, 2);
  std::vector<planner::Candidate> all;
  for (const char* const schedule : {"1f1b", "zb_h1", "interleaved_1f1b", "dualpipe_v", "gpipe"}) {
    planner::Candidate candidate = of_language_model(schedule, 2, 2, 4);
    all.push_back(candidate);
    candidate.shape.degrees.precision = find_precision("bf16");
    for (const Zero zero : {Zero::optimizer, Zero::weights}) {
      candidate.shape.degrees.zero = zero;
      all.push_back(candidate);
    }
    candidate.recomputation = parse_recomputation("selective", "");
    all.push_back(candidate);
    all.push_back(of_language_model(schedule, 1, 4, 4));
    all.push_back(of_language_model(schedule, 1, 1, 8));
  }
  int judged = 0;
  for (const planner::Candidate& candidate : all) {
    const Said studied = by_study(evaluator.case_of(candidate));
    const planner::Judgement judgement = evaluator.judge(candidate);
    CHECK(judgement.verdict.has_value() == studied.why_not.empty());
    judged += judgement.verdict ? 1 : 0;
    check_same(evaluator.case_of(candidate),
               {judgement.verdict.value_or(Verdict{}), judgement.why_not}, studied);
  }
  CHECK(judged > 20);
}

}  // namespace stageline::verdict_tests
