// What a language model's vocabulary costs a pipeline: on its first and last device, and with a
// share on every device.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tests/make.hpp"
#include "tools/inputs/setting.hpp"
#include "tools/planner/space.hpp"
#include "tools/study/figures/notes.hpp"
#include "tools/study/study.hpp"

namespace stageline::spread_vocabulary_tests {
namespace {

Case case_of(const std::string& trace, const std::string& schedule, int devices, int microbatches,
             const std::string& partition = "") {
  SettingRequest request;
  request.trace = trace;
  request.devices = {devices};
  request.microbatches = microbatches;
  if (!partition.empty()) request.partition = partition;
  return make_case(request, read_setting(request), test::spec(schedule), devices);
}

constexpr const char* small =
    "model:transformer@a100,layers=8,hidden=1024,heads=8,seq=1024,batch=1,vocab=131072";

// 16-bit weights and gradients with moments and a copy in fp32, as they stand in the layers.
TEST_CASE("every device holds an equal part of the weights of both ends") {
  const Outcome whole = study(case_of(small, "1f1b", 4, 8));
  const Case asked = case_of(small, "1f1b:vocabulary=one_barrier", 4, 8);
  const Outcome spread = study(asked);
  const Bytes each = nth(spread.costs.stage, 4).weights;
  Bytes sum{};
  for (int share = 4; share < 8; ++share) {
    CHECK(std::abs((nth(spread.costs.stage, share).weights - each).count) <= 1);
    sum += nth(spread.costs.stage, share).weights;
  }
  Bytes all{};
  Bytes all_spread{};
  for (const StageCosts& stage : whole.costs.stage) all += stage.weights;
  for (const StageCosts& stage : spread.costs.stage) all_spread += stage.weights;
  CHECK(all == all_spread);
  // Two tables of 131,072 × 1,024 in 2 bytes, positions and the last norm.
  CHECK(sum >= Bytes{2LL * 131072 * 1024 * 2});
  CHECK(sum <= Bytes{2LL * 131072 * 1024 * 2 + 3LL * 1024 * 1024 * 2});
}

TEST_CASE("the first device holds p + 1 micro-batches with one barrier, and p + 2 with two") {
  for (const auto& [vocabulary, more] :
       {std::pair{"one_barrier", 1}, std::pair{"two_barriers", 2}}) {
    const Case asked = case_of(small, "1f1b:vocabulary=" + std::string(vocabulary), 4, 16);
    const Outcome outcome = study(asked);
    CHECK(nth(outcome.memory.stage, 0).stash_peak == 4 + more);
  }
}

// Yeung et al. 2024, arXiv 2411.05288, table 5 as measured again by its artifact
// (sail-sg/VocabularyParallelism, artifact/README.md, read 2026-11-30): 8 A100, 32 layers of width
// 3072, 128 micro-batches of a sequence; peak memory in GB, MFU in percent.
struct Measured {
  int seq;
  int vocabulary;
  double even, cut;  // MFU of 1F1B: 4 blocks a stage, and blocks moved off the head
  double one, two;   // of vocabulary parallelism: algorithm 2, algorithm 1
  double gb_even, gb_one, gb_two;
};
constexpr std::array measured{
    Measured{2048, 64000, 40.82, 49.15, 52.36, 52.74, 17.74, 16.64, 17.48},
    Measured{2048, 128000, 33.70, 44.12, 51.95, 52.22, 21.00, 17.56, 18.40},
    Measured{4096, 128000, 37.13, 49.56, 57.40, 57.87, 27.22, 24.56, 26.10},
    Measured{4096, 256000, 27.63, 42.45, 56.61, 57.31, 33.86, 26.25, 27.38},
};

double peak(const Outcome& outcome) {
  Bytes most{};
  for (const auto& device : outcome.memory.device) most = std::max(most, device.peak);
  return static_cast<double>(most.count) / 1e9;
}

TEST_CASE(
    "shares of the vocabulary win over both cuts of 1F1B what was measured, and as much memory") {
  for (const Measured& row : measured) {
    const std::string model = "model:transformer@a100,layers=32,hidden=3072,heads=24,batch=1,seq=" +
                              std::to_string(row.seq) + ",vocab=" + std::to_string(row.vocabulary);
    const auto run = [&](const std::string& schedule, const std::string& partition = "") {
      return study(case_of(model, schedule, 8, 128, partition));
    };
    const Outcome even = run("1f1b", "0-4,5-8,9-12,13-16,17-20,21-24,25-28,29-33");
    const Outcome cut = run("1f1b");
    const Outcome one = run("1f1b:vocabulary=one_barrier");
    const Outcome two = run("1f1b:vocabulary=two_barriers");
    CAPTURE(row.seq);
    CAPTURE(row.vocabulary);
    const auto times = [](const Outcome& slow, const Outcome& fast) {
      return to_seconds(slow.step_time) / to_seconds(fast.step_time);
    };
    CHECK(times(even, one) == doctest::Approx(row.one / row.even).epsilon(0.07));
    CHECK(times(even, two) == doctest::Approx(row.two / row.even).epsilon(0.07));
    CHECK(times(cut, one) == doctest::Approx(row.one / row.cut).epsilon(0.12));
    CHECK(times(cut, two) == doctest::Approx(row.two / row.cut).epsilon(0.12));
    CHECK(peak(even) == doctest::Approx(row.gb_even).epsilon(0.08));
    CHECK(peak(one) == doctest::Approx(row.gb_one).epsilon(0.08));
    CHECK(peak(two) == doctest::Approx(row.gb_two).epsilon(0.08));
  }
}

TEST_CASE("a model without a vocabulary, and plans, are refused in one sentence") {
  CHECK_THROWS_WITH_AS(
      study(case_of("uniform:layers=8", "1f1b:vocabulary=one_barrier", 4, 8)),
      doctest::Contains("a vocabulary is divided where the first layer is of kind \"embedding\""),
      UsageError);
  planner::PlanSpace space;
  space.schedules = {test::spec("1f1b:vocabulary=one_barrier")};
  CHECK_THROWS_WITH_AS(planner::families_of(space, case_of(small, "1f1b", 4, 8).model, 4),
                       "1f1b:vocabulary=one_barrier: plans are searched with the vocabulary whole; "
                       "take vocabulary=whole, or give the schedule to `stageline simulate` or "
                       "`stageline compare`",
                       UsageError);
}

TEST_CASE("a program of shares is refused with the schedule that asks for it") {
  for (const char* const barriers : {"one_barrier", "two_barriers"}) {
    CAPTURE(barriers);
    const std::string schedule = fmt::format("1f1b:vocabulary={}", barriers);
    Case again = case_of(small, "1f1b", 4, 8);
    again.program = study(case_of(small, schedule, 4, 8)).program;
    CHECK_THROWS_WITH_AS(study(again), doctest::Contains(("--schedule " + schedule).c_str()),
                         UsageError);
  }
}

TEST_CASE("a note says what of shares is assumed") {
  const Case asked = case_of(small, "1f1b:vocabulary=two_barriers", 2, 4);
  const std::vector<std::string> notes = stream_notes(asked, study(asked));
  CHECK(std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
    return note.find("a share of the head takes an equal part of its time") != std::string::npos;
  }));
}

}  // namespace
}  // namespace stageline::spread_vocabulary_tests
