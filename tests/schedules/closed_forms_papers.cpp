// Do stale weights, LayerPipe and PipeFB give the numbers of their papers?
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "sim/analysis/memory.hpp"
#include "sim/analysis/steady_state.hpp"
#include "sim/analysis/versions.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tests/make.hpp"

namespace stageline::closed_forms_papers_tests {
namespace {

using test::Ran;

// The exact time of one mini-batch, as a fraction of picoseconds; 0 when no round repeats.
struct Pace {
  std::int64_t time = 0;
  std::int64_t rounds = 1;
  friend bool operator==(const Pace& a, const Pace& b) {
    return a.time * b.rounds == b.time * a.rounds;
  }
};
Pace pace_of(const Ran& ran) {
  const auto events =
      event_graph(ran.graph, ran.times, static_cast<int>(ran.program.total_microbatches()), 1);
  if (!events) return {};
  const Period period = period_of(*events);
  return {period.time.count(), period.rounds};
}

Costs unequal(int stages, int devices, std::uint32_t seed) {
  std::mt19937 random(seed);
  Costs costs = uniform_costs(stages, devices, Time{1}, Time{1}, Time{1});
  for (StageCosts& stage : costs.stage) {
    stage.forward = Time{1 + static_cast<int>(random() % 9)};
    stage.input_grad = Time{1 + static_cast<int>(random() % 9)};
    stage.weight_grad = Time{1 + static_cast<int>(random() % 9)};
    stage.backward = stage.input_grad + stage.weight_grad;
    stage.update = Time{static_cast<int>(random() % 3)};
  }
  return costs;
}

// Most mini-batches of a stage between the start of F and the end of B.
int live(const Ran& ran, int stage) {
  std::vector<std::pair<Time, int>> changes;
  for (const auto& lane : ran.timeline.lanes) {
    for (const Span& span : lane) {
      if (span.op.stage != stage) continue;
      if (span.op.kind == OpKind::forward) changes.push_back({span.start, +1});
      if (span.op.kind == OpKind::backward) changes.push_back({span.end, -1});
    }
  }
  std::sort(changes.begin(), changes.end());
  int now = 0;
  int most = 0;
  for (const auto& change : changes) most = std::max(most, now += change.second);
  return most;
}

TEST_CASE("stale weights in lockstep: M mini-batches take M + 2K cycles") {
  for (int k = 0; k <= 5; ++k) {
    for (const int m : {1, 2, 9}) {
      // The last accelerator does F and B in a cycle; with F = 1, B = 0 a cycle lasts 1.
      const Costs costs = uniform_costs(k + 1, 2 * k + 1, Time{1}, Time{1}, Time{0});
      const Ran ran = test::run_schedule("stale_weights:clock=lockstep", 2 * k + 1, costs, m);
      // Cycles with the last stage at work last 2, the K before and after it 1.
      CHECK(makespan(ran.times) == Time{2 * m + 2 * k});
      std::int64_t last = 0;
      std::map<int, Time> begins;  // of each cycle
      for (const auto& lane : ran.timeline.lanes) {
        for (const Span& span : lane) {
          const bool forward = span.op.kind == OpKind::forward;
          if (!forward && span.op.kind != OpKind::backward) continue;
          const int cycle = static_cast<int>(span.op.microbatch) +
                            (forward ? span.op.stage : 2 * k - span.op.stage);
          last = std::max<std::int64_t>(last, cycle);
          const auto [found, fresh] = begins.try_emplace(cycle, span.start);
          if (!fresh) found->second = std::min(found->second, span.start);
        }
      }
      CHECK(last + 1 == m + 2 * k);
      for (int cycle = 1; cycle <= last; ++cycle) CHECK(begins[cycle] > begins[cycle - 1]);
    }
  }
}

TEST_CASE("stale weights: degree 2(K-i+1), live mini-batches one more, under both clocks") {
  for (int k = 1; k <= 4; ++k) {
    for (const char* const clock : {"free", "lockstep"}) {
      for (const char* const mapping : {"apart", "paired"}) {
        for (std::uint32_t seed = 0; seed < 4; ++seed) {
          const int devices = std::string(mapping) == "apart" ? 2 * k + 1 : k + 1;
          const Costs costs = seed == 0 ? uniform_costs(k + 1, devices, Time{1}, Time{1}, Time{1})
                                        : unequal(k + 1, devices, seed);
          const std::string text =
              std::string("stale_weights:clock=") + clock + ",mapping=" + mapping;
          CAPTURE(text);
          const Ran ran = test::run_schedule(text, devices, costs, 6 * k + 6);
          const std::vector<StageVersions> versions = versions_of(ran.program, ran.timeline);
          for (int s = 0; s <= k; ++s) {
            const StageVersions& stage = nth(versions, s);
            CHECK(stage.staleness_max == 2 * (k - s));
            CHECK(stage.staleness.back().microbatches == 6 * k + 6 - 2 * (k - s));
            CHECK(live(ran, s) == 2 * (k - s) + 1);
            CHECK(stage.held_peak == 1);
            CHECK(stage.consistent == (s == k));
          }
        }
      }
    }
  }
}

TEST_CASE("stale weights on two accelerators: backward first lowers the degree from 2 to 1") {
  const Costs costs = unequal(2, 2, 7);
  const Ran ran =
      test::run_schedule("stale_weights:mapping=paired,order=backward_first", 2, costs, 12);
  const std::vector<StageVersions> versions = versions_of(ran.program, ran.timeline);
  CHECK(versions[0].staleness_max == 1);
  CHECK(versions[1].staleness_max == 0);
}

TEST_CASE("stale weights use 2K+1 accelerators; one that is left over is idle") {
  for (int devices = 1; devices <= 9; ++devices) {
    const ScheduleSpec spec = test::spec("stale_weights");
    const Placement placement = spec.scheduler->place(devices, spec.knobs);
    CHECK(placement.stages() == (devices + 1) / 2);
    std::vector<int> used;
    for (const StagePlace& place : placement.stage) {
      used.push_back(place.replicas[0]);
      if (place.apart()) used.push_back(place.weight_grad[0]);
    }
    std::sort(used.begin(), used.end());
    std::vector<int> all(as_size(devices - (devices + 1) % 2));
    std::iota(all.begin(), all.end(), 0);
    CHECK(used == all);
  }
}

TEST_CASE("stale weights: the pace is that of the busiest accelerator") {
  for (int k = 1; k <= 3; ++k) {
    Costs costs = uniform_costs(k + 1, 2 * k + 1, Time{3}, Time{3}, Time{3});
    CHECK(pace_of(test::run_schedule("stale_weights", 2 * k + 1, costs, 64)) == Pace{9, 1});
    costs.stage[0].backward = Time{20};
    CHECK(pace_of(test::run_schedule("stale_weights", 2 * k + 1, costs, 64)) == Pace{20, 1});
  }
}

// With one copy of the weights an update waits for the last forward that reads the old ones, also
// where it waits for a reduction, which takes no time here.
TEST_CASE("stale weights: replicas over free links are as fast, and as late, as one") {
  Costs costs = uniform_costs(2, 3, Time{17}, Time{6}, Time{7});
  costs.stage[0].update = Time{26};
  const auto pace = [&](int replicas) {
    const ScheduleSpec spec = test::spec("stale_weights:clock=free");
    Program program = spec.scheduler->schedule(test::problem_for(spec, 3, costs, 64));
    program.settings.data_ranks = replicas;
    const Ran ran = test::run_program(std::move(program), costs);
    CHECK(versions_of(ran.program, ran.timeline)[0].staleness_max == 2);
    return pace_of(ran);
  };
  CHECK(pace(1) == Pace{17 + 26, 1});
  CHECK(pace(2) == pace(1));
}

TEST_CASE("LayerPipe: L equal layers on L processors have the period 3 - 1/L") {
  for (int l = 2; l <= 8; ++l) {
    const Time each{static_cast<std::int64_t>(l) * 840};
    const Costs costs = uniform_costs(l, l, each, each, each);
    const ScheduleSpec spec = test::spec("layerpipe");
    const Placement placement = test::placement_for(spec, l, costs);
    for (int s = 1; s < l; ++s) {
      // x_l = 1 - (l-1)/L of I_l at the lower neighbour, counting layers from 1
      const StagePlace& place = nth(placement.stage, s);
      REQUIRE(place.input_grad == std::vector<int>{s - 1, s});
      CHECK(place.share[0] == doctest::Approx(1 - static_cast<double>(s) / l));
    }
    const Ran ran = test::run_schedule("layerpipe", l, costs, 20 * l);
    CHECK(pace_of(ran) == Pace{each.count() / l * (3 * l - 1), 1});
    CHECK(pace_of(test::run_schedule("pipedream", l, costs, 20 * l)) == Pace{3 * each.count(), 1});
    // Every layer is a group of its own: delay 2 S(l).
    const std::vector<StageVersions> versions = versions_of(ran.program, ran.timeline);
    for (int s = 0; s < l; ++s) {
      CHECK(nth(ran.program.settings.delay, s) == 2 * (l - 1 - s));
      CHECK(nth(versions, s).staleness_max <= 2 * (l - 1 - s));
      CHECK(nth(versions, s).consistent);
    }
  }
}

TEST_CASE("LayerPipe: where F and W are apart there is one more delay") {
  // Two layers on three processors: F1 W1 F2 | ... the cut parts F from W of one of them.
  Costs costs = uniform_costs(1, 2, Time{2}, Time{1}, Time{2});
  const Ran ran = test::run_schedule("layerpipe", 2, costs, 40);
  REQUIRE(ran.program.placement.stage[0].replicas == std::vector<int>{0});
  REQUIRE(ran.program.placement.stage[0].weight_grad == std::vector<int>{1});
  CHECK(ran.program.settings.delay[0] == 1);
  CHECK(pace_of(ran) == Pace{2, 1});
}

TEST_CASE("LayerPipe: the largest piece is the period, for random layers") {
  std::mt19937 random(5);
  for (int i = 0; i < 60; ++i) {
    const int layers = 2 + static_cast<int>(random() % 6);
    const int devices = 1 + static_cast<int>(random() % 5);
    const Costs costs = unequal(layers, devices, static_cast<std::uint32_t>(random()));
    const char* const mode = i % 2 == 0 ? "layerpipe" : "layerpipe:mode=intra";
    CAPTURE(mode);
    const Ran ran = test::run_schedule(mode, devices, costs, 60);
    std::vector<Time> busy(ran.graph.lanes.size());
    for (std::uint32_t task = 0; task < ran.graph.tasks(); ++task) {
      busy[ran.graph.lane[task]] += ran.graph.duration[task];
    }
    const Time most = *std::max_element(busy.begin(), busy.end());
    CHECK(pace_of(ran) == Pace{most.count(), 60});
  }
}

// One stage a node pair, or one a node; copies of a stash take `copy` each way on links of their
// own.
Costs with_copies(int stages, int devices, Time forward, Time backward, Time copy) {
  Costs costs = uniform_costs(stages, devices, forward, backward, Time{});
  for (StageCosts& stage : costs.stage) {
    stage.stash_input_grad = Bytes{0};
    stage.stash_weight_grad = Bytes{copy.count()};
  }
  for (auto* const way : {&costs.network.to_host, &costs.network.from_host}) {
    for (Route& route : *way) route.bandwidth = Bandwidth{1'000'000'000'000};
  }
  return costs;
}

TEST_CASE(
    "PipeDream with data transfer: F+B+2D blocking, max(F+B, 2D) in turns, max(F+B, D) both ways") {
  for (const int d : {0, 1, 3, 6, 9, 12, 20}) {
    const Costs costs = with_copies(4, 4, Time{4}, Time{8}, Time{d});
    const auto pace = [&](const char* const transfer) {
      return pace_of(
          test::run_schedule(std::string("pipedream:transfer=") + transfer, 4, costs, 80));
    };
    CAPTURE(d);
    CHECK(pace("none") == Pace{12, 1});
    CHECK(pace("blocking") == Pace{12 + 2 * d, 1});
    CHECK(pace("half") == Pace{std::max(12, 2 * d), 1});
    // With one mini-batch of warm-up its way out and in again must fit into two rounds.
    const int second_last = 12 + 2 * d;
    CHECK(pace("full") == (second_last > 24 ? Pace{std::max(second_last, 2 * d), 2} : Pace{12, 1}));
  }
}

TEST_CASE("PipeFB on twice the nodes: max(F, B, D), and 1.5, 2.0, 2.5 over the blocking baseline") {
  const int stages = 3;
  const Time f{6};
  const Time b{12};
  for (const int d : {0, 3, 6, 12, 15}) {
    const Costs alone = with_copies(stages, stages, f, b, Time{d});
    const Pace base = pace_of(test::run_schedule("pipedream:transfer=blocking", stages, alone, 80));
    const Costs doubled = with_copies(stages, 2 * stages, f, b, Time{d});
    const Ran ran = test::run_schedule("pipefb:nodes=3-3", 2 * stages, doubled, 80);
    CAPTURE(d);
    CHECK(base == Pace{18 + 2 * d, 1});
    CHECK(pace_of(ran) == Pace{std::max(12, d), 1});
    if (d == 0) CHECK(base == Pace{3 * 12, 2});
    if (d == 3) CHECK(base == Pace{2 * 12, 1});
    if (d == 6) CHECK(base == Pace{5 * 12, 2});
    // The window: the loop's latency over the period; at least 2(S-1-s)+1 where F and B take turns.
    for (int s = 0; s < stages; ++s) {
      const int latency = 6 * (stages - s) + 12 * (stages - s) + 2 * d;
      const int period = std::max(12, d);
      CHECK(nth(ran.program.settings.window, s) == (latency + period - 1) / period);
    }
  }
}

TEST_CASE("PipeFB: activations on devices do not grow with depth, those on the host do") {
  const auto peaks = [](int stages, const char* const text) {
    const int devices = 2 * stages;
    const Costs costs = with_copies(stages, devices, Time{6}, Time{12}, Time{6});
    const Ran ran = test::run_schedule(text, devices, costs, 60);
    const MemoryProfile memory = memory_of(ran.program, ran.costs, ran.timeline);
    Bytes device{};
    for (const DeviceMemory& one : memory.device) {
      device = std::max(device, nth(one.at_peak, MemoryKind::stash));
    }
    return std::pair(device, memory.host.at(0).peak);
  };
  const auto shallow = peaks(2, "pipefb:nodes=2-2");
  const auto deep = peaks(6, "pipefb:nodes=6-6");
  CHECK(deep.first.count == shallow.first.count);
  CHECK(deep.second.count > 4 * shallow.second.count);
  CHECK(shallow.first.count == 2 * 6);
}

TEST_CASE("PipeFB: a host that is full holds F-nodes back") {
  const ScheduleSpec spec = test::spec("pipefb:nodes=3-3");
  const Costs costs = with_copies(3, 6, Time{6}, Time{12}, Time{6});
  Problem problem = test::problem_for(spec, 6, costs, 60);
  const Ran free = test::run_program(spec.scheduler->schedule(problem), costs);
  const auto held = [](const Ran& ran) {
    return memory_of(ran.program, ran.costs, ran.timeline).host.at(0).peak;
  };
  // As many bytes as it holds are enough; with fewer it holds no more than it has, and F-nodes
  // wait.
  problem.host_memory = {held(free)};
  CHECK(spec.scheduler->schedule(problem).settings.window == free.program.settings.window);
  problem.host_memory = {Bytes{held(free).count / 2}};
  const Ran full = test::run_program(spec.scheduler->schedule(problem), costs);
  CHECK(held(full) <= *problem.host_memory[0]);
  CHECK(held(full) > Bytes{});
  const Pace slow = pace_of(full);
  CHECK(slow.time > 12 * slow.rounds);
  problem.host_memory = {Bytes{5}};  // a stash is 6
  CHECK_THROWS_AS(spec.scheduler->schedule(problem), UsageError);
}

}  // namespace
}  // namespace stageline::closed_forms_papers_tests
