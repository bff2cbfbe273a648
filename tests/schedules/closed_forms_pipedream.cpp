// Do we give PipeDream's numbers? Warm-up, versions, staleness and steady period, straight and with
// replicated stages.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "sim/analysis/memory.hpp"
#include "sim/analysis/versions.hpp"
#include "sim/base/index.hpp"
#include "tests/make.hpp"

namespace stageline::closed_forms_pipedream_tests {
namespace {

using test::Ran;

Costs unit_costs(int stages, int devices) {
  return uniform_costs(stages, devices, Time{1}, Time{1}, Time{1});
}

// Forwards before the first backward on a device.
int warm_up(const Program& program, int device) {
  const auto& list = nth(program.ops, device);
  const auto first =
      std::find_if(list.begin(), list.end(), [](Op op) { return op.kind == OpKind::backward; });
  return static_cast<int>(first - list.begin()) - 1;  // one is the forward of its pair
}

TEST_CASE("a straight pipeline of four stages warms up with 3, 2, 1, 0 forwards") {
  const Ran ran = test::run_schedule("pipedream", 4, unit_costs(4, 4), 12);
  for (int s = 0; s < 4; ++s) CHECK(warm_up(ran.program, s) == 3 - s);
  std::vector<int> versions;
  for (const StageVersions& stage : versions_of(ran.program, ran.timeline)) {
    versions.push_back(stage.held_peak);
  }
  CHECK(versions == std::vector<int>{4, 3, 2, 1});
}

TEST_CASE("stage s of S holds S-s versions and S-s stashes and is S-1-s updates stale") {
  for (int S = 1; S <= 7; ++S) {
    for (const auto& [F, I, W] : {std::tuple(1, 1, 1), std::tuple(7, 2, 3), std::tuple(3, 8, 5)}) {
      CAPTURE(S);
      const Costs costs = uniform_costs(S, S, Time{F}, Time{I}, Time{W});
      const Ran ran = test::run_schedule("pipedream", S, costs, 3 * S);
      const MemoryProfile memory = memory_of(ran.program, costs, ran.timeline);
      const std::vector<StageVersions> versions = versions_of(ran.program, ran.timeline);
      for (int s = 0; s < S; ++s) {
        const auto at = as_size(s);
        CHECK(warm_up(ran.program, s) == S - 1 - s);
        CHECK(memory.device_stash_peak[at] == S - s);
        CHECK(versions[at].held_peak == S - s);
        CHECK(versions[at].staleness_max == S - 1 - s);
        CHECK(versions[at].staleness_min == 0);  // the first mini-batch waits for nobody
        CHECK(versions[at].consistent);
        // A version is one byte here, beside the newest.
        CHECK(nth(memory.device[at].at_peak, MemoryKind::versions) == Bytes{S - 1 - s});
        // Mini-batches 0..S-1-s read the first version, so the mean is known too.
        const double early = (S - 1 - s) * (S - s) / 2.0;
        CHECK(versions[at].staleness_mean * 3 * S == doctest::Approx((S - 1 - s) * 3 * S - early));
      }
    }
  }
}

TEST_CASE("with vertical sync every stage is as stale as the first") {
  for (int S = 1; S <= 7; ++S) {
    CAPTURE(S);
    const Ran ran = test::run_schedule("pipedream:vertical_sync=yes", S, unit_costs(S, S), 3 * S);
    for (const StageVersions& versions : versions_of(ran.program, ran.timeline)) {
      CHECK(versions.staleness_max == S - 1);
      CHECK(versions.consistent);
    }
  }
}

Time makespan_of(const std::string& schedule, int devices, const Costs& costs, int m) {
  return makespan(test::run_schedule(schedule, devices, costs, m).times);
}

TEST_CASE("the steady period of a straight pipeline is its largest F+B, on unequal stages too") {
  std::mt19937 random(111);
  for (int i = 0; i < 60; ++i) {
    const int S = 1 + static_cast<int>(random() % 6);
    Costs costs = test::random_costs(random, S, S, false);
    Time largest{};
    for (StageCosts& stage : costs.stage) {
      stage.update = Time{};
      largest = std::max(largest, stage.forward + stage.backward);
    }
    const Time before = makespan_of("pipedream", S, costs, 300);
    CHECK(makespan_of("pipedream", S, costs, 301) - before == largest);
    CHECK(makespan_of("pipedream", S, costs, 310) - before == 10 * largest);
  }
}

// ---- replicated stages --------------------------------------------------------------------------

struct Plan {
  std::vector<int> r;

  int workers() const { return std::accumulate(r.begin(), r.end(), 0); }
  int stages() const { return static_cast<int>(r.size()); }
  std::string schedule() const {
    std::string text = "pipedream:replicas=";
    for (std::size_t s = 0; s < r.size(); ++s) {
      text += (s == 0 ? "" : "-") + std::to_string(r[s]);
    }
    return text;
  }
  /// After so many mini-batches every replica has had as many as before.
  int round() const {
    return std::accumulate(r.begin(), r.end(), 1, [](int a, int b) { return std::lcm(a, b); });
  }
};

const std::vector<Plan> plans = {{{2, 1}},    {{3, 1}},    {{7, 1}},    {{1, 2}},   {{2, 2}},
                                 {{1, 2, 1}}, {{2, 1, 1}}, {{1, 1, 2}}, {{2, 3}},   {{3, 2}},
                                 {{4}},       {{4, 2, 1}}, {{2, 4, 2}}, {{1, 3, 2}}};

TEST_CASE("a replicated stage warms up with floor((R - 1 - workers before) / r) forwards") {
  for (const Plan& plan : plans) {
    CAPTURE(plan.schedule());
    const int R = plan.workers();
    const int m = 8 * plan.round();
    const Ran ran = test::run_schedule(plan.schedule(), R, unit_costs(plan.stages(), R), m);
    int before = 0;
    for (std::size_t s = 0; s < plan.r.size(); ++s) {
      const int expected = (R - 1 - before) / plan.r[s];
      for (int i = 0; i < plan.r[s]; ++i) CHECK(warm_up(ran.program, before + i) == expected);
      const StageVersions versions = versions_of(ran.program, ran.timeline)[s];
      CHECK(versions.held_peak == expected + 1);
      CHECK(versions.staleness_max == expected);
      CHECK(memory_of(ran.program, ran.costs, ran.timeline).stage[s].stash_peak == expected + 1);
      before += plan.r[s];
    }
  }
}

TEST_CASE("plan 7-1 has a warm-up of 1 and two versions at its first stage") {
  const Ran ran = test::run_schedule("pipedream:replicas=7-1", 8, unit_costs(2, 8), 28);
  CHECK(warm_up(ran.program, 0) == 1);
  CHECK(warm_up(ran.program, 7) == 0);
  CHECK(versions_of(ran.program, ran.timeline)[0].held_peak == 2);
  CHECK(versions_of(ran.program, ran.timeline)[1].held_peak == 1);
}

// F and B of stage s; the last goes on.
Costs stage_costs(const Plan& plan, const std::vector<std::pair<int, int>>& times) {
  Costs costs = unit_costs(plan.stages(), plan.workers());
  for (std::size_t s = 0; s < costs.stage.size(); ++s) {
    const auto [F, B] = times[std::min(s, times.size() - 1)];
    costs.stage[s].forward = Time{F};
    costs.stage[s].input_grad = Time{B};
    costs.stage[s].weight_grad = Time{};
    costs.stage[s].backward = Time{B};
  }
  return costs;
}

// What 60 rounds add to the makespan once the transient is over.
Time growth(const Plan& plan, const Costs& costs) {
  return makespan_of(plan.schedule(), plan.workers(), costs, 180 * plan.round()) -
         makespan_of(plan.schedule(), plan.workers(), costs, 120 * plan.round());
}

Time both(const Costs& costs, std::size_t stage) {
  return costs.stage[stage].forward + costs.stage[stage].backward;
}

// The same at the period max (F+B)/r over stages; a round is a whole multiple of every r.
Time ideal_growth(const Plan& plan, const Costs& costs) {
  Time largest{};
  for (std::size_t s = 0; s < plan.r.size(); ++s) {
    largest = std::max(largest, 60 * plan.round() / plan.r[s] * both(costs, s));
  }
  return largest;
}

TEST_CASE("no plan beats max (F+B)/r, and plans r-1, 2-2 and r alone reach it") {
  std::mt19937 random(112);
  for (int i = 0; i < 4; ++i) {
    for (const Plan& plan : plans) {
      std::vector<std::pair<int, int>> times;
      for (const int r : plan.r) {
        const int scale = r * (6 + static_cast<int>(random() % 6));
        times.emplace_back(4 * scale, 8 * scale);
      }
      const Costs costs = stage_costs(plan, times);
      CAPTURE(plan.schedule());
      CHECK(growth(plan, costs) >= ideal_growth(plan, costs));
      const bool reaches = plan.stages() == 1 || (plan.stages() == 2 && plan.r[1] == 1) ||
                           plan.r == std::vector<int>{2, 2};
      if (reaches) CHECK(growth(plan, costs) == ideal_growth(plan, costs));
    }
  }
}

// What other plans pay is a cycle of the event graph (stage: op, with what lets the next one
// start). Replicas of a stage meet at each update; so an op of one replica may wait for another's
// backward.
//
//   1-2    F0(5) F1(5) B1(5) =meet= F1(6) B1(6) B0(6) =window= F0(9)
//          4 mini-batches in F0+B0 + 2(F1+B1)
//   2-1-1  B0(1) =meet= F0(4) F1(4) =lane= B1(3) B0(3)
//          2 mini-batches in F0+B0 + F1+B1
//   1-2-1  B1(0) B0(0) =window= F0(4) F1(4) =lane= B1(2)
//          2 mini-batches in F0+B0 + F1+B1, without any meeting: the strict alternation of a
//          replica makes B1(2) wait for F1(4), and the window of the first stage makes that wait
//          for B1(0)
TEST_CASE("plans 1-2, 2-1-1 and 1-2-1 pay for the cycles through their replicas") {
  const Plan tail{{1, 2}};
  const Plan head{{2, 1, 1}};
  const Plan middle{{1, 2, 1}};
  for (const auto& [light, heavy] : {std::pair(6, 12), std::pair(6, 10), std::pair(6, 7)}) {
    const Costs first = stage_costs(tail, {{light, 2 * light}, {heavy, 2 * heavy}});
    // 120 mini-batches in 60 rounds of 2
    CHECK(growth(tail, first) ==
          std::max(ideal_growth(tail, first), 30 * (both(first, 0) + 2 * both(first, 1))));
    const Costs second = stage_costs(head, {{heavy, 2 * heavy}, {light, 2 * light}});
    CHECK(growth(head, second) ==
          std::max(ideal_growth(head, second), 60 * (both(second, 0) + both(second, 1))));
    const Costs third =
        stage_costs(middle, {{light, 2 * light}, {heavy, 2 * heavy}, {light, 2 * light}});
    CHECK(growth(middle, third) ==
          std::max(ideal_growth(middle, third), 60 * (both(third, 0) + both(third, 1))));
  }
}

TEST_CASE("without meeting at updates, plans 1-2 and 2-1-1 have the period max (F+B)/r") {
  for (const Plan& plan : {Plan{{1, 2}}, Plan{{2, 1, 1}}, Plan{{1, 1, 2}}, Plan{{4, 2, 1}}}) {
    CAPTURE(plan.schedule());
    std::vector<std::pair<int, int>> times;
    for (const int r : plan.r) times.emplace_back(6 * r, 12 * r);
    const Costs costs = stage_costs(plan, times);
    const ScheduleSpec spec = test::spec(plan.schedule());
    const auto end = [&](int m) {
      // The scheduler's own program, without the updates that complete() adds.
      const Program program =
          spec.scheduler->schedule(test::problem_for(spec, plan.workers(), costs, m));
      return makespan(sweep(compile(program, costs)));
    };
    const int round = plan.round();
    CHECK(end(180 * round) - end(120 * round) == ideal_growth(plan, costs));
    CHECK(growth(plan, costs) > ideal_growth(plan, costs));
  }
}

}  // namespace
}  // namespace stageline::closed_forms_pipedream_tests
