// Is a round's period the pace of a long step, is no other round faster where all of them are
// tried, and is the bound below every one?
#include "schedulers/search/cyclic_order.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>

#include "schedulers/search/cyclic_period.hpp"
#include "sim/analysis/memory.hpp"
#include "sim/analysis/metrics.hpp"
#include "sim/base/index.hpp"
#include "tests/make.hpp"
#include "tests/thorough.hpp"

namespace stageline::cyclic_order_tests {
namespace {

// Stages of random times, from 1 on; messages have a latency and no bytes.
Costs random_stages(std::mt19937& random, int stages, int devices) {
  Costs costs = test::random_costs(random, stages, devices, false);
  for (StageCosts& stage : costs.stage) {
    stage.update = Time{};
    for (Time* time : {&stage.forward, &stage.input_grad, &stage.weight_grad}) *time += Time{1};
    stage.backward = stage.input_grad + stage.weight_grad;
  }
  costs.network = uniform_costs(1, devices, Time{}, Time{}, Time{}, Time{1}).network;
  for (Route& route : costs.network.routes) {
    if (!route.bandwidth.is_unlimited()) route.latency = Time{static_cast<int>(random() % 5)};
  }
  return costs;
}

Problem problem_of(const std::string& placement, int devices, const Costs& costs, int count) {
  return test::problem_for(test::spec("cyclic:placement=" + placement), devices, costs, count);
}

Time makespan(const Problem& problem, const CyclicRound& round, int microbatches) {
  Problem longer = problem;
  longer.microbatches = microbatches;
  const Program blank = blank_program(longer, "cyclic", WeightRule::flush);
  const test::Ran ran =
      test::run_program(freeze(blank, unrolled(round, microbatches)), problem.costs);
  return metrics_of(ran.program, ran.graph, ran.times).makespan;
}

// Measured, of a step that is long.
Time pace(const Problem& problem, const CyclicRound& round) {
  constexpr int long_enough = 60;
  const int rounds = 12;  // a cycle may span several
  return (makespan(problem, round, (long_enough + rounds) * round.each) -
          makespan(problem, round, long_enough * round.each)) /
         rounds;
}

TEST_CASE("the period of cyclic's round is the pace of a long step, and the bound is below it") {
  std::mt19937 random(20261124);
  int proved = 0;
  for (int i = 0; i < 120; ++i) {
    const int devices = 1 + static_cast<int>(random() % 4);
    const std::string placement = random() % 2 == 0   ? "straight"
                                  : random() % 2 == 0 ? "v"
                                                      : "looped";
    const int stages = placement == "straight" ? devices : 2 * devices;
    const auto most =
        static_cast<std::int64_t>(stages / devices + random() % (2 * as_size(stages)));
    const int count = 1 + static_cast<int>(random() % 20);
    const Costs costs = random_stages(random, stages, devices);
    if (!test::chosen(random, 10)) continue;
    CAPTURE(i);
    const Problem problem = problem_of(placement, devices, costs, count);
    const StashLimit limit = stash_limit(problem, most);
    const CyclicOrder found = cyclic_order(problem, limit);
    CHECK(found.period >= found.bound);
    CHECK(found.bound == least_period(problem, limit) * found.round.each);
    // Rounded up to the picosecond, once a round.
    const Time measured = pace(problem, found.round);
    CHECK(measured <= found.period);
    CHECK(measured >= found.period - Time{1});
    if (found.period == found.bound) ++proved;
    const Program blank = blank_program(problem, "cyclic", WeightRule::flush);
    const test::Ran ran =
        test::run_program(freeze(blank, unrolled(found.round, count)), problem.costs);
    const std::vector<int> peaks = memory_of(ran.program, costs, ran.timeline).device_stash_peak;
    for (const int peak : peaks) CHECK(peak <= most);
  }
  if (test::thorough) CHECK(proved > 60);
}

// Every round of one micro-batch on two devices with a stage each, with ops up to so many rounds
// behind: the fastest, as measured.
std::optional<Time> fastest_of_all(const Problem& problem, const StashLimit& limit) {
  constexpr int most_behind = 3;
  std::vector<std::vector<CyclicOp>> lists[2];
  for (int device = 0; device < 2; ++device) {
    for (int i = 0; i <= most_behind; ++i) {
      for (int w = i; w <= most_behind; ++w) {
        std::vector<CyclicOp> ops{{OpKind::forward, device, 0, 0},
                                  {OpKind::input_grad, device, 0, i},
                                  {OpKind::weight_grad, device, 0, w}};
        lists[device].push_back(ops);
        std::swap(ops[1], ops[2]);
        lists[device].push_back(ops);
      }
    }
  }
  std::optional<Time> best;
  const std::vector<StageTimes> stages = stage_times(problem, true);
  for (const std::vector<CyclicOp>& first : lists[0]) {
    for (std::vector<CyclicOp> second : lists[1]) {
      for (int later = 0; later <= 2; ++later) {  // the second device's round behind the first's
        CyclicRound round{1, {first, second}};
        for (CyclicOp& op : round.device[1]) op.behind += later;
        if (!keeps_limit(problem, limit, round)) continue;
        const std::optional<RoundTimes> times =
            RoundClock(stages, 1).times(round, Time{1}, Time::max());
        if (times) best = std::min(best.value_or(times->period), times->period);
      }
    }
  }
  return best;
}

TEST_CASE("cyclic's round is no slower than any of two devices") {
  std::mt19937 random(7);
  for (int i = 0; i < 60; ++i) {
    const Costs costs = random_stages(random, 2, 2);
    const auto most = static_cast<std::int64_t>(1 + random() % 4);
    if (!test::chosen(random, 10)) continue;
    CAPTURE(i);
    const Problem problem = problem_of("straight", 2, costs, 8);
    const StashLimit limit = stash_limit(problem, most);
    const std::optional<Time> fastest = fastest_of_all(problem, limit);
    REQUIRE(fastest);
    const CyclicOrder found = cyclic_order(problem, limit);
    CHECK(found.period <= *fastest * found.round.each);
    CHECK(found.bound <= *fastest * found.round.each);
  }
}

TEST_CASE("a round that waits for itself has no period") {
  const Costs costs = uniform_costs(2, 2, Time{1}, Time{1}, Time{1});
  const std::vector<StageTimes> stages = stage_times(problem_of("straight", 2, costs, 4), true);
  // I of a micro-batch before its F.
  const CyclicRound round{
      1,
      {{{OpKind::input_grad, 0, 0, 0}, {OpKind::weight_grad, 0, 0, 0}, {OpKind::forward, 0, 0, 0}},
       {{OpKind::forward, 1, 0, 0},
        {OpKind::input_grad, 1, 0, 0},
        {OpKind::weight_grad, 1, 0, 0}}}};
  CHECK_FALSE(RoundClock(stages, 1).times(round, Time{1}, Time::max()));
}

// A circle of ops that take no time adds nothing to any period, and still never begins.
TEST_CASE("ops that take no time come in an order that begins") {
  for (const int input : {0, 1000}) {
    for (const int weight : {0, 1000}) {
      for (const int last : {4000, 5000, 6000}) {
        Costs costs = uniform_costs(4, 4, Time{5000}, Time{input}, Time{weight}, Time{1});
        costs.stage.back().forward = Time{last};
        CAPTURE(input);
        CAPTURE(weight);
        CAPTURE(last);
        CHECK_NOTHROW(test::run_schedule("cyclic", 4, costs, 16));
      }
    }
  }
}

TEST_CASE("with equal stages cyclic has no bubble at 2p-1 stashes, and ZB-H1's at p") {
  for (int p = 1; p <= 6; ++p) {
    const Costs costs = uniform_costs(p, p, Time{10}, Time{10}, Time{10});
    const int m = 4 * p;
    const auto span = [&](const std::string& limit) {
      const test::Ran ran = test::run_schedule("cyclic:limit=" + limit, p, costs, m);
      Time longest{};
      for (const DeviceMetrics& device : metrics_of(ran.program, ran.graph, ran.times).device) {
        longest = std::max(longest, device.busy + device.span_idle);
      }
      return longest;
    };
    CAPTURE(p);
    CHECK(span("2p") == Time{30 * m});
    CHECK(span("p") == Time{30 * m + 10 * (p - 1)});
  }
}

TEST_CASE("rounds of several micro-batches are taken where one is slower") {
  const Costs costs = uniform_costs(4, 4, Time{3}, Time{3}, Time{3});
  const Problem problem = problem_of("straight", 4, costs, 64);
  const CyclicOrder three = cyclic_order(problem, stash_limit(problem, 3));
  CHECK(three.round.each == 3);
  CHECK(three.period == Time{30});  // one at a time takes 12 a micro-batch
  CHECK(three.bound == Time{27});
}

TEST_CASE("what is unrolled has each op of each micro-batch once, and is found again") {
  const Costs costs = uniform_costs(8, 4, Time{2}, Time{3}, Time{1});
  const Problem problem = problem_of("v", 4, costs, 40);
  const CyclicOrder found = cyclic_order(problem, stash_limit(problem, 8));
  const StepLists lists = unrolled(found.round, 40);
  std::size_t ops = 0;
  for (const std::vector<Op>& list : lists) ops += list.size();
  CHECK(ops == 3 * 8 * 40);
  const std::optional<CyclicRound> again = middle_round(lists, 8, found.round.each);
  REQUIRE(again);
  const std::vector<StageTimes> stages = stage_times(problem, true);
  const std::optional<RoundTimes> clock =
      RoundClock(stages, found.round.each).times(*again, Time{1}, Time::max());
  REQUIRE(clock);
  CHECK(clock->period == found.period);
  CHECK_FALSE(middle_round(unrolled(found.round, 1), 8, 1));
}

}  // namespace
}  // namespace stageline::cyclic_order_tests
