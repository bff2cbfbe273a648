// Is idle time called by its cause, for every scheduler, every knob and any size?
#include <doctest/doctest.h>

#include <set>

#include "sim/analysis/metrics.hpp"
#include "sim/base/index.hpp"
#include "tests/make.hpp"
#include "tests/specs.hpp"
#include "tests/thorough.hpp"

namespace stageline::idle_tests {
namespace {

using test::Ran;

Time idle(const DeviceMetrics& device, IdleKind kind) { return nth(device.idle_by, kind); }
Time idle(const Metrics& metrics, IdleKind kind) {
  Time sum{};
  for (const DeviceMetrics& device : metrics.device) sum += idle(device, kind);
  return sum;
}
Metrics metrics_of(const Ran& ran) { return metrics_of(ran.program, ran.graph, ran.times); }

// Random costs, of which every stage has the first one's.
Costs equal_costs(std::mt19937& random, int stages, int devices, bool transfer) {
  Costs costs = test::random_costs(random, stages, devices, transfer);
  for (StageCosts& stage : costs.stage) stage = costs.stage[0];
  return costs;
}

bool equally_replicated(const Program& program) {
  return std::all_of(program.placement.stage.begin(), program.placement.stage.end(),
                     [&](const StagePlace& place) {
                       return place.replicas.size() == program.placement.stage[0].replicas.size();
                     });
}

bool moves_stashes(const Program& program) {
  return std::any_of(program.placement.stage.begin(), program.placement.stage.end(),
                     [](const StagePlace& place) { return !place.stash_homes.empty(); });
}

// Calls check(spec, ran) for every schedule that does the size, on the costs that make(stages)
// gives.
template <class Make, class Check>
void for_all(const std::vector<ScheduleSpec>& specs, int devices, int microbatches, int steps,
             Make&& make, Check&& check) {
  for (const ScheduleSpec& spec : specs) {
    Costs costs;
    Program program;
    try {
      costs = make(test::stages_for(spec, devices));
      program =
          spec.scheduler->schedule(test::problem_for(spec, devices, costs, microbatches, steps));
    } catch (const UsageError&) {
      continue;  // a size that this schedule does not do
    }
    CAPTURE(spelled(spec));
    CAPTURE(devices);
    CAPTURE(microbatches);
    check(spec, test::run_program(std::move(program), costs));
  }
}

void check_exact(const Ran& ran, const Metrics& metrics) {
  for (std::size_t d = 0; d < metrics.device.size(); ++d) {
    // What is busy and what is idle are all there is, one behind the other.
    std::vector<std::pair<Time, Time>> pieces;
    std::array<Time, idle_kinds> by{};
    for (const IdleInterval& one : metrics.idle) {
      if (one.device != static_cast<int>(d)) continue;
      pieces.emplace_back(one.start, one.end);
      nth(by, one.kind) += one.end - one.start;
    }
    bool in_order = std::is_sorted(pieces.begin(), pieces.end());
    for (const Span& span : ran.timeline.lane(static_cast<int>(d), LaneKind::compute)) {
      if (span.end > span.start) pieces.emplace_back(span.start, span.end);
    }
    std::sort(pieces.begin(), pieces.end());
    pieces.erase(std::unique(pieces.begin(), pieces.end()), pieces.end());  // overlapped pairs
    Time at{};
    for (const auto& [start, end] : pieces) {
      in_order = in_order && start == at && end > start;
      at = end;
    }
    CHECK(in_order);
    CHECK(at == metrics.makespan);
    CHECK(by == metrics.device[d].idle_by);
    // A device is unused or not.
    const bool works = !ran.timeline.lane(static_cast<int>(d), LaneKind::compute).empty();
    CHECK(idle(metrics.device[d], IdleKind::unused) == (works ? Time{} : metrics.makespan));
  }
}

TEST_CASE("idle time and work fill the time of every device, without a gap") {
  std::mt19937 random(141);
  for (int devices = 1; devices <= 6; ++devices) {
    for (const int microbatches : {1, 2, 5, 8}) {
      if (!test::chosen(random, 6)) continue;
      const int steps = static_cast<int>(random() % 3) + 1;
      const bool transfer = random() % 2 == 0;
      for_all(
          test::all_specs(devices), devices, microbatches, steps,
          [&](int stages) { return test::random_costs(random, stages, devices, transfer); },
          [&](const ScheduleSpec&, const Ran& ran) { check_exact(ran, metrics_of(ran)); });
    }
  }
}

TEST_CASE("equal stages have no imbalance, and links add to nothing but what is the links'") {
  std::mt19937 random(142);
  int programs = 0;
  for (int devices = 1; devices <= 6; ++devices) {
    for (const int microbatches : {1, 3, 8}) {
      if (!test::chosen(random, devices < 4 ? 4 : 12)) continue;
      const int steps = static_cast<int>(random() % 3) + 1;
      for_all(
          test::all_specs(devices), devices, microbatches, steps,
          [&](int stages) { return equal_costs(random, stages, devices, true); },
          [&](const ScheduleSpec&, const Ran& ran) {
            if (!equally_replicated(ran.program)) return;  // a replica has a share of the work
            if (moves_stashes(ran.program)) return;        // copies on links keep their times
            const Metrics slow = metrics_of(ran);
            Costs costs = ran.costs;
            for (EdgeCosts& edge : costs.edges) edge.activation = edge.gradient = Bytes{};
            for (StageCosts& stage : costs.stage) stage.gradients = stage.weights = Bytes{};
            costs.network = uniform_costs(1, devices, Time{}, Time{}, Time{}).network;
            const TaskGraph graph = compile(ran.program, costs);
            const Metrics fast = stageline::metrics_of(ran.program, graph, sweep(graph));
            CHECK(fast.makespan == slow.makespan_free_links);
            CHECK(idle(fast, IdleKind::link) + idle(fast, IdleKind::collectives) == Time{});
            for (std::size_t d = 0; d < slow.device.size(); ++d) {
              for (const IdleKind kind :
                   {IdleKind::fill, IdleKind::drain, IdleKind::dependency, IdleKind::optimizer}) {
                CHECK(idle(slow.device[d], kind) <= idle(fast.device[d], kind));
              }
              CHECK(idle(slow.device[d], IdleKind::imbalance) == Time{});
              CHECK(idle(fast.device[d], IdleKind::imbalance) == Time{});
            }
            ++programs;
          });
    }
  }
  CHECK(programs > (test::thorough ? 1000 : 50));
}

TEST_CASE("1F1B and GPipe on equal stages wait to fill and to drain, with recompute or without") {
  for (const char* const schedule :
       {"1f1b", "1f1b:recompute=always", "dapple", "gpipe", "gpipe:recompute=always",
        "gpipe:recompute=except_last", "gpipe:reverse=yes"}) {
    for (int devices = 1; devices <= 6; ++devices) {
      for (const int microbatches : {1, 2, 4, 9, 16}) {
        for (const int steps : {1, 3}) {
          CAPTURE(std::string(schedule));
          CAPTURE(devices);
          CAPTURE(microbatches);
          const Ran ran = test::run_schedule(
              schedule, devices, uniform_costs(devices, devices, Time{3}, Time{2}, Time{5}),
              microbatches, steps);
          for (const DeviceMetrics& device : metrics_of(ran).device) {
            CHECK(idle(device, IdleKind::fill) + idle(device, IdleKind::drain) == device.idle);
          }
        }
      }
    }
  }
}

TEST_CASE("one slow stage is imbalance on all other devices") {
  for (const char* const schedule : {"1f1b", "gpipe", "eager_1f1b", "pipedream", "naive"}) {
    for (int devices = 2; devices <= 5; ++devices) {
      for (int slow = 0; slow < devices; ++slow) {
        for (const int microbatches : {1, 2, 4, 11}) {
          CAPTURE(std::string(schedule));
          CAPTURE(devices);
          CAPTURE(slow);
          CAPTURE(microbatches);
          Costs costs = uniform_costs(devices, devices, Time{20}, Time{20}, Time{20});
          StageCosts& stage = nth(costs.stage, slow);
          for (Time* const time : {&stage.forward, &stage.backward}) *time *= 2;
          const Ran ran = test::run_schedule(schedule, devices, costs, microbatches);
          const Metrics metrics = metrics_of(ran);
          for (int d = 0; d < devices; ++d) {
            const Time more = idle(nth(metrics.device, d), IdleKind::imbalance);
            CHECK((more > Time{}) == (d != slow));
          }
        }
      }
    }
  }
}

TEST_CASE("a cut that is better than equal stages has no imbalance") {
  // The second stage's device does its forwards and backwards, the first stage has one for each.
  Costs costs = uniform_costs(2, 3, Time{2}, Time{2}, Time{2});
  for (Time* const time : {&costs.stage[0].forward, &costs.stage[0].backward}) *time *= 2;
  const Metrics metrics = metrics_of(test::run_schedule("stale_weights", 3, costs, 20));
  CHECK(idle(metrics, IdleKind::imbalance) == Time{});
  CHECK(idle(metrics, IdleKind::dependency) > Time{});
}

TEST_CASE("an order that makes equal stages wait in between is a dependency") {
  for (const char* const schedule : {"naive", "gems", "hanayo", "dualpipe", "v_min"}) {
    const Costs costs =
        uniform_costs(test::stages_for(test::spec(schedule), 4), 4, Time{2}, Time{2}, Time{2});
    const Metrics metrics = metrics_of(test::run_schedule(schedule, 4, costs, 8));
    CAPTURE(std::string(schedule));
    CHECK(idle(metrics, IdleKind::dependency) > Time{});
  }
}

TEST_CASE("an asynchronous stream fills once and drains once") {
  std::mt19937 random(143);
  std::set<std::string> seen;
  for (int devices = 2; devices <= 5; ++devices) {
    for (const bool equal : {true, false}) {
      std::vector<ScheduleSpec> specs = test::all_specs(devices);
      std::erase_if(specs, [](const ScheduleSpec& spec) {
        return spec.scheduler->synchrony == Synchrony::synchronous;
      });
      for_all(
          specs, devices, 10 * devices, 2,
          [&](int stages) {
            return equal ? equal_costs(random, stages, devices, true)
                         : test::random_costs(random, stages, devices, true);
          },
          [&](const ScheduleSpec& spec, const Ran& ran) {
            const std::vector<Time> ends = microbatch_ends(ran.program, ran.graph, ran.times);
            const Time full = ends[std::size_t{4} * as_size(devices)];
            const Time last = ends[ends.size() - as_size(5 * devices)];
            for (const IdleInterval& one : metrics_of(ran).idle) {
              if (one.kind == IdleKind::fill) CHECK(one.start <= full);
              if (one.kind == IdleKind::drain) CHECK(one.end >= last);
            }
            seen.insert(std::string(spec.scheduler->name));
          });
    }
  }
  CHECK(seen.size() >= 5);
}

TEST_CASE("a device to spare is unused") {
  std::mt19937 random(144);
  const Ran ran = test::run_schedule("stale_weights", 4, equal_costs(random, 2, 4, true), 6);
  const Metrics metrics = metrics_of(ran);
  CHECK(ran.timeline.lane(3, LaneKind::compute).empty());
  CHECK(idle(metrics.device[3], IdleKind::unused) == metrics.makespan);
  CHECK(idle(metrics, IdleKind::unused) == metrics.makespan);
}

}  // namespace
}  // namespace stageline::idle_tests
