// A vocabulary spread over all devices: how long does a step take, what is held, and does T wait
// for every S of its micro-batch?
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "schedulers/parts/spread_vocabulary.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tests/make.hpp"

namespace stageline::spread_vocabulary_tests {
namespace {

struct Sizes {
  int devices = 4;
  int microbatches = 16;
  int forward = 10;   // F of a stage; its B takes twice as long
  int scores = 4;     // F and, with one barrier, I of a share: S
  int gradients = 2;  // W of a share, with two barriers its B: T
};

test::Ran ran(const std::string& vocabulary, const Sizes& sizes, int transfer = 0) {
  const ScheduleSpec spec = test::spec("1f1b:vocabulary=" + vocabulary);
  const int p = sizes.devices;
  Costs costs = uniform_costs(test::stages_for(spec, p), p, Time{sizes.forward},
                              Time{sizes.forward}, Time{sizes.forward}, Time{transfer});
  const bool two = vocabulary == "two_barriers";
  for (int s = p; s < costs.stages(); ++s) {
    StageCosts& share = nth(costs.stage, s);
    share.forward = Time{two ? sizes.scores : sizes.scores / 2};
    share.input_grad = Time{two ? 0 : sizes.scores / 2};
    share.weight_grad = Time{sizes.gradients};
    share.backward = share.input_grad + share.weight_grad;
    if (s == 2 * p) share = StageCosts{};  // the loss
  }
  test::connect_shares(spec, p, costs, Bytes{}, Bytes{});
  return test::run_program(
      spec.scheduler->schedule(test::problem_for(spec, p, costs, sizes.microbatches)), costs);
}

Time step_of(const std::string& vocabulary, const Sizes& sizes) {
  const test::Ran run = ran(vocabulary, sizes);
  return makespan(run.times);
}

// What no order beats: the way of the first micro-batch to the last device and of a gradient back,
// and the work of a device between.
Time least(const Sizes& sizes) {
  const int both = 3 * sizes.forward;
  return Time{(sizes.devices - 1) * both +
              sizes.microbatches * (both + sizes.scores + sizes.gradients)};
}

// The most micro-batches of a stage between the start of F and the end of B.
int held(const Program& program, int stage) {
  int now = 0;
  int most = 0;
  for (const auto& list : program.ops) {
    for (const Op op : list) {
      if (op.stage != stage) continue;
      if (op.kind == OpKind::forward) most = std::max(most, ++now);
      if (op.kind == OpKind::backward) --now;
    }
  }
  return most;
}

TEST_CASE("a step takes what 1F1B's bubble and all work of a device take, and little more") {
  for (const int devices : {2, 4, 8}) {
    for (const int microbatches : {16, 64}) {
      for (const int scores : {2, 4, 12}) {
        const Sizes sizes{devices, microbatches, 10, scores, scores / 2};
        CAPTURE(devices);
        CAPTURE(microbatches);
        CAPTURE(scores);
        // The period of a barrier begins and ends with a step: at most a forward and an S longer,
        // and with two barriers a backward.
        const Time one = step_of("one_barrier", sizes);
        const Time two = step_of("two_barriers", sizes);
        CHECK(one >= least(sizes));
        CHECK(one <= least(sizes) + Time{10 + scores});
        CHECK(two >= least(sizes));
        CHECK(two <= least(sizes) + Time{2 * (30 + scores)});
      }
    }
  }
}

TEST_CASE("each barrier adds a micro-batch to what 1F1B holds, on every device") {
  for (const int devices : {1, 2, 4, 8}) {
    const Sizes sizes{devices, 32};
    const Program one = ran("one_barrier", sizes).program;
    const Program two = ran("two_barriers", sizes).program;
    for (int d = 0; d < devices; ++d) {
      CAPTURE(devices);
      CAPTURE(d);
      CHECK(held(one, d) == devices - d + 1);
      CHECK(held(two, d) == devices - d + 2);
    }
  }
}

TEST_CASE("T waits for every S of its micro-batch, with one barrier by its place alone") {
  for (const char* const vocabulary : {"one_barrier", "two_barriers"}) {
    for (const int transfer : {0, 1}) {
      const Sizes sizes{4, 16};
      const test::Ran run = ran(vocabulary, sizes, transfer);
      std::map<std::uint32_t, Time> scored;  // by micro-batch, when the last S ends
      std::map<std::uint32_t, Time> first;   // when the first T starts
      for (const auto& lane : run.timeline.lanes) {
        for (const Span& span : lane) {
          if (span.op.stage < 4 || span.op.stage >= 8) continue;
          const std::uint32_t m = span.op.microbatch;
          const OpKind kind = span.op.kind;
          if (kind == OpKind::forward || kind == OpKind::input_grad) {
            scored[m] = std::max(scored[m], span.end);
          } else if (kind == OpKind::weight_grad || kind == OpKind::backward) {
            const auto [at, is_new] = first.try_emplace(m, span.start);
            at->second = std::min(at->second, span.start);
          }
        }
      }
      CAPTURE(vocabulary);
      CAPTURE(transfer);
      REQUIRE(first.size() == 16);
      for (const auto& [m, start] : first) CHECK(start >= scored[m]);
    }
  }
}

TEST_CASE("stages that are connected otherwise are refused") {
  const ScheduleSpec spec = test::spec("1f1b:vocabulary=one_barrier");
  const Costs chain = uniform_costs(8, 4, Time{1}, Time{1}, Time{1});
  CHECK_THROWS_WITH_AS(
      spec.scheduler->schedule(test::problem_for(spec, 4, chain, 4)),
      "vocabulary=one_barrier takes a pipeline of 4 stages with a share of the head on each device "
      "behind the last stage, and the stages of this model are connected otherwise; take "
      "vocabulary=whole",
      UsageError);
  CHECK_THROWS_WITH_AS(
      test::stages_for(test::spec("1f1b:overlap=experts,vocabulary=one_barrier"), 1),
      "1f1b: overlap=experts pairs forwards with backwards, and vocabulary=one_barrier orders them "
      "around passes of the head; leave out one of the two",
      UsageError);
}

}  // namespace
}  // namespace stageline::spread_vocabulary_tests
