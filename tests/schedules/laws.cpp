// What holds for every scheduler, every knob, every size and any costs? A new scheduler is in
// schedulers() and so here too.
#include <doctest/doctest.h>

#include "sim/analysis/memory.hpp"
#include "sim/analysis/metrics.hpp"
#include "sim/analysis/versions.hpp"
#include "sim/base/index.hpp"
#include "sim/varied_costs.hpp"
#include "tests/make.hpp"
#include "tests/schedules/reference.hpp"
#include "tests/specs.hpp"
#include "tests/text.hpp"
#include "tests/thorough.hpp"

namespace stageline::laws_tests {
namespace {

using test::Ran;

// ---- the laws: each says what is wrong, or nothing ----------------------------------------------

std::string work_is_done_once(const ScheduleSpec&, const Ran& ran) {
  std::map<Op, int> count;
  for (const auto& list : ran.program.ops) {
    for (const Op one : list) ++count[test::plain(one)];
  }
  for (const auto& [op, times] : count) {
    if (times != 1) return print(op) + " is there more than once";
  }
  const auto has = [&](OpKind kind, int s, std::uint32_t m) {
    return count.count(test::op(kind, s, m)) > 0;
  };
  for (int s = 0; s < ran.program.stages(); ++s) {
    const bool first = std::none_of(ran.program.edges.begin(), ran.program.edges.end(),
                                    [&](StageEdge edge) { return edge.to == s; });
    for (std::uint32_t m = 0; m < ran.program.total_microbatches(); ++m) {
      const bool whole = has(OpKind::backward, s, m);
      const bool input = has(OpKind::input_grad, s, m);
      const bool weight = has(OpKind::weight_grad, s, m);
      const bool right = whole ? !input && !weight : weight && (input || first);
      if (!has(OpKind::forward, s, m) || !right) {
        return "stage " + std::to_string(s) + ", micro-batch " + std::to_string(m);
      }
    }
  }
  return "";
}

std::string lanes_do_one_thing_at_a_time(const ScheduleSpec&, const Ran& ran) {
  for (std::size_t lane = 0; lane < ran.timeline.lanes.size(); ++lane) {
    if (lane % lane_kinds == as_size(LaneKind::receive)) continue;
    const auto& spans = ran.timeline.lanes[lane];
    for (std::size_t i = 1; i < spans.size(); ++i) {
      const bool pair = spans[i - 1].op.overlapped && spans[i].start == spans[i - 1].start &&
                        spans[i].end == spans[i - 1].end;
      if (spans[i].start < spans[i - 1].end && !pair) return print(spans[i].op) + " is too early";
    }
  }
  return "";
}

std::string nothing_is_faster_than_it_can_be(const ScheduleSpec&, const Ran& ran) {
  const Metrics metrics = metrics_of(ran.program, ran.graph, ran.times);
  for (std::size_t d = 0; d < metrics.device.size(); ++d) {
    const DeviceMetrics& device = metrics.device[d];
    Time idle{};
    for (const Time one : device.idle_by) idle += one;
    if (device.busy > metrics.makespan) return "a device is busy for longer than the makespan";
    if (device.busy + device.idle != metrics.makespan) return "busy and idle are not all";
    if (idle != device.idle) return "the kinds of idle time do not add up";
  }
  Time at{};
  for (const PathPiece& piece : critical_path(ran.graph, ran.times)) {
    if (piece.start != at) return "the critical path has a gap";
    at = piece.end;
  }
  if (at != metrics.makespan) return "the critical path is not as long as the makespan";
  const std::vector<Time> ends = step_ends(ran.program, ran.graph, ran.times);
  if (*std::max_element(ends.begin(), ends.end()) != metrics.makespan) return "steps end early";
  return "";
}

std::string every_byte_is_freed(const ScheduleSpec&, const Ran& ran) {
  const MemoryProfile profile = memory_of(ran.program, ran.costs, ran.timeline, Curves::all);
  for (std::size_t d = 0; d < profile.device.size(); ++d) {
    const DeviceMemory& device = profile.device[d];
    for (const MemoryKind kind : {MemoryKind::stash, MemoryKind::buffers, MemoryKind::workspace,
                                  MemoryKind::versions, MemoryKind::communication}) {
      const auto at = as_size(kind);
      if (device.at_end[at] != Bytes{}) return std::string(name(kind)) + " is left";
      for (const MemoryPoint& point : device.curve) {
        if (point.use[at] < Bytes{}) return std::string(name(kind)) + " falls below nothing";
      }
    }
    if (total(device.at_peak) != device.peak) return "the peak is not the sum of its kinds";
    for (const MemoryPoint& point : device.curve) {
      if (total(point.use) > device.peak) return "the peak is not the highest point";
      Bytes stash{};
      for (const Bytes part : point.stash) {
        if (part < Bytes{}) return "a part of the stash falls below nothing";
        stash += part;
      }
      if (stash != nth(point.use, MemoryKind::stash)) return "the parts are not the stash";
    }
  }
  for (const DeviceMemory& host : profile.host) {
    if (total(host.at_end) != Bytes{}) return "a host keeps a stash";
    for (const MemoryPoint& point : host.curve) {
      for (const Bytes part : point.stash) {
        if (part < Bytes{}) return "a host's stash falls below nothing";
      }
    }
  }
  return "";
}

std::string forwards_wait_for_what_they_read(const ScheduleSpec&, const Ran& ran) {
  std::map<Op, Span> span;
  for (std::size_t lane = 0; lane < ran.timeline.lanes.size(); lane += lane_kinds) {
    for (const Span& one : ran.timeline.lanes[lane]) span[test::plain(one.op)] = one;
  }
  const test::Prices prices(ran.program, ran.costs);
  for (std::size_t e = 0; e < ran.costs.edges.size(); ++e) {
    for (std::uint32_t m = 0; m < ran.program.total_microbatches(); ++m) {
      const EdgeCosts& edge = ran.costs.edge(static_cast<int>(e), m);
      const int from = prices.home(edge.edge.from, m);
      const int to = prices.home(edge.edge.to, m);
      const Route& route = ran.costs.network.between(from, to);
      const Time wire = transfer_time(edge.activation, route.bandwidth) + route.latency;
      const Time made = span[test::op(OpKind::forward, edge.edge.from, m)].end;
      const Time read = span[test::op(OpKind::forward, edge.edge.to, m)].start;
      if (read < made + wire) {
        return std::to_string(edge.edge.to) + "F" + std::to_string(m) + " starts too early";
      }
    }
  }
  return "";
}

std::string text_and_passes_are_stable(const ScheduleSpec&, const Ran& ran) {
  if (parse_program(print(ran.program)) != ran.program) return "the text reads as another program";
  if (complete(ran.program, ran.costs) != ran.program) return "completing twice adds something";
  return "";
}

std::string synchronous_means_fresh_weights(const ScheduleSpec& spec, const Ran& ran) {
  for (const StageVersions& versions : versions_of(ran.program, ran.timeline)) {
    if (versions.staleness_min < 0) return "a forward reads weights of its own future";
    const bool mixes = ran.program.settings.weights == WeightRule::latest;
    if (!versions.consistent && !mixes) return "a backward reads another version than its forward";
    if (spec.scheduler->synchrony == Synchrony::asynchronous) continue;
    if (versions.staleness_max != 0) return "stale weights";
    if (versions.held_peak != 1) return "more than one version";
  }
  return "";
}

std::string the_same_again(const ScheduleSpec& spec, const Ran& ran) {
  const int microbatches = ran.program.microbatches / ran.program.settings.sequence_chunks;
  const Problem problem = test::problem_for(spec, static_cast<int>(ran.program.devices.size()),
                                            ran.costs, microbatches, ran.program.steps);
  const Ran again = test::run_program(spec.scheduler->schedule(problem), ran.costs);
  if (print(again.program) != print(ran.program)) return "another program";
  if (test::lanes(again.timeline) != test::lanes(ran.timeline)) return "another timeline";
  return "";
}

std::string times_scale(const ScheduleSpec&, const Ran& ran) {
  constexpr int k = 7;
  TaskGraph longer = ran.graph;
  for (Time& duration : longer.duration) duration *= k;
  for (Path& path : longer.paths) path.lag *= k;
  const TaskTimes times = simulate(longer);
  for (std::uint32_t task = 0; task < longer.tasks(); ++task) {
    if (times.available[task] != k * ran.times.available[task]) return "7 times is not 7 times";
  }
  return "";
}

std::string bandwidth_never_hurts(const ScheduleSpec&, const Ran& ran) {
  Time before = makespan(sweep(ran.graph));
  for (const int k : {2, 3, 1000}) {
    Costs faster = ran.costs;
    for (Route& route : faster.network.routes) {
      if (!route.bandwidth.is_unlimited()) route.bandwidth.bytes_per_second *= k;
    }
    const Time now = makespan(sweep(compile(ran.program, faster)));
    if (now > before) return "slower with " + std::to_string(k) + " times the bandwidth";
    before = now;
  }
  return "";
}

std::string the_reference_agrees(const ScheduleSpec&, const Ran& ran) {
  const Timeline timeline = timeline_of(ran.program, ran.graph, sweep(ran.graph));
  const std::map<Op, test::When> when = test::reference(ran.program, ran.costs);
  for (std::size_t lane = 0; lane < timeline.lanes.size(); ++lane) {
    if (lane % lane_kinds == as_size(LaneKind::receive)) continue;
    for (const Span& span : timeline.lanes[lane]) {
      const auto found = when.find(test::plain(span.op));
      if (found == when.end() || found->second.start != span.start ||
          found->second.end != span.end) {
        return print(span.op) + " runs at another time";
      }
    }
  }
  return "";
}

struct Law {
  const char* name;
  std::string (*breach)(const ScheduleSpec& spec, const Ran& ran);
};
constexpr Law laws[] = {
    {"each stage does each micro-batch once", work_is_done_once},
    {"a lane never does two things at once", lanes_do_one_thing_at_a_time},
    {"makespan, busy and idle time and critical path fit", nothing_is_faster_than_it_can_be},
    {"every byte allocated is freed", every_byte_is_freed},
    {"no forward starts before what it reads is there", forwards_wait_for_what_they_read},
    {"text and passes are stable", text_and_passes_are_stable},
    {"synchronous schedules read fresh weights", synchronous_means_fresh_weights},
    {"the same input gives the same bytes", the_same_again},
    {"all durations times k give all times times k", times_scale},
    {"more bandwidth never hurts", bandwidth_never_hurts},
};

enum class Shape { chain, branches, shares };

// How many programs of each scheduler have been through all laws.
using Held = std::map<std::string, int>;

void check_laws(const ScheduleSpec& spec, int devices, int microbatches, int steps,
                std::mt19937& random, bool transfer, Shape shape, Held& held) {
  Program program;
  Costs costs;
  try {
    const int stages = test::stages_for(spec, devices);
    costs = test::random_costs(random, stages, devices, transfer);
    if (shape == Shape::branches) test::branch(random, costs);
    if (shape == Shape::shares) {
      test::connect_shares(spec, devices, costs, Bytes{3}, Bytes{transfer ? 5 : 0});
    }
    program =
        spec.scheduler->schedule(test::problem_for(spec, devices, costs, microbatches, steps));
  } catch (const UsageError&) {
    return;  // a size that this schedule does not do
  }
  CAPTURE(spelled(spec));
  CAPTURE(print(program));
  REQUIRE_MESSAGE(parse_program(print(program)) == program, "the text reads as another program");
  const Ran ran = test::run_program(std::move(program), costs);
  for (const Law& law : laws) {
    const std::string breach = law.breach(spec, ran);
    CHECK_MESSAGE(breach.empty(), law.name << ": " << breach);
  }
  // The reference is slow; a part of all will do.
  if (random() % 4 == 0) {
    const std::string breach = the_reference_agrees(spec, ran);
    CHECK_MESSAGE(breach.empty(), breach);
  }
  ++held[std::string(spec.scheduler->name)];
}

void check_held(const Held& held) {
  for (const Scheduler* const scheduler : schedulers()) {
    CHECK_MESSAGE(held.count(std::string(scheduler->name)) > 0,
                  scheduler->name << " has not been through the laws at any size");
  }
}

TEST_CASE("the laws hold for every scheduler, knob and size, on chains of random stages") {
  std::mt19937 random(101);
  Held held;
  for (int devices = 1; devices <= 6; ++devices) {
    for (const ScheduleSpec& spec : test::all_specs(devices)) {
      for (int microbatches = 1; microbatches <= 9; ++microbatches) {
        for (int steps = 1; steps <= 3; ++steps) {
          if (held.count(std::string(spec.scheduler->name)) > 0 &&
              random() % (test::thorough ? 2 : 96) != 0) {
            continue;
          }
          const bool transfer = random() % 2 == 0;
          check_laws(spec, devices, microbatches, steps, random, transfer, Shape::chain, held);
        }
      }
    }
  }
  check_held(held);
}

TEST_CASE("the laws hold on stage graphs with branches and skips") {
  std::mt19937 random(102);
  Held held;
  for (int devices = 2; devices <= 6; ++devices) {
    for (const ScheduleSpec& spec : test::all_specs(devices)) {
      for (int microbatches = 1; microbatches <= 7; microbatches += 3) {
        for (const bool transfer : {false, true}) {
          if (held.count(std::string(spec.scheduler->name)) > 0 &&
              random() % (test::thorough ? 2 : 48) != 0) {
            continue;
          }
          check_laws(spec, devices, microbatches, 2, random, transfer, Shape::branches, held);
        }
      }
    }
  }
  check_held(held);
}

TEST_CASE("the laws hold where every device has a share of the vocabulary") {
  std::mt19937 random(105);
  Held held;
  for (int devices = 1; devices <= 6; ++devices) {
    for (const ScheduleSpec& spec : test::all_specs(devices)) {
      if (vocabulary_barriers(spec.knobs) == VocabularyBarriers::whole) continue;
      for (int microbatches = 1; microbatches <= 9; microbatches += 2) {
        for (const bool transfer : {false, true}) {
          check_laws(spec, devices, microbatches, 2, random, transfer, Shape::shares, held);
        }
      }
    }
  }
  CHECK(held["1f1b"] == 6 * 2 * 2 * 5 * 2);  // devices, values, recompute, sizes, transfer
}

TEST_CASE("the laws hold where stashes are rebuilt, offloaded or both, by stages at random") {
  std::mt19937 random(104);
  Held rebuilt;
  Held copied;
  for (const Scheduler* const scheduler : schedulers()) {
    const ScheduleSpec spec{scheduler, parse_schedules(std::string(scheduler->name))[0].knobs};
    for (int round = 0; round < (test::thorough ? 12 : 5); ++round) {
      const int devices = 2 + round % 4;
      Program program;
      Costs costs;
      try {
        const int stages = test::stages_for(spec, devices);
        costs = test::random_costs(random, stages, devices, round % 2 == 0);
        program = scheduler->schedule(
            test::problem_for(spec, devices, costs, 2 * devices + round % 3, 1 + round % 2));
      } catch (const UsageError&) {
        continue;
      }
      for (auto* const routes : {&costs.network.to_host, &costs.network.from_host}) {
        for (Route& route : *routes) route.bandwidth = Bandwidth{1'000'000'000'000};
      }
      std::vector<bool> some(program.placement.stage.size());
      const auto draw = [&] {
        for (std::size_t s = 0; s < some.size(); ++s) some[s] = random() % 3 > 0;
        return some;
      };
      program.settings.recompute = round % 3 == 0 ? RecomputeStart::late : RecomputeStart::early;
      if (round % 4 != 1) program = add_recompute(std::move(program), draw());
      if (round % 4 != 2) program = add_offload(std::move(program), draw(), round % 5);
      CAPTURE(spelled(spec));
      CAPTURE(print(program));
      const Ran ran = test::run_program(std::move(program), costs);
      for (const Law& law : laws) {
        if (law.breach == the_same_again) continue;  // the schedule alone
        const std::string breach = law.breach(spec, ran);
        CHECK_MESSAGE(breach.empty(), law.name << ": " << breach);
      }
      const std::string breach = the_reference_agrees(spec, ran);
      CHECK_MESSAGE(breach.empty(), breach);
      for (const auto& list : ran.program.ops) {
        for (const Op op : list) {
          if (op.kind == OpKind::recompute) ++rebuilt[std::string(scheduler->name)];
          if (op.kind == OpKind::offload) ++copied[std::string(scheduler->name)];
        }
      }
    }
  }
  check_held(rebuilt);
  // No op runs between a forward of theirs and its backward: there is nothing to gain.
  for (const char* const name : {"naive", "gems"}) CHECK(copied[name]++ == 0);
  check_held(copied);
}

TEST_CASE("the laws hold where every micro-batch has times and bytes of its own") {
  std::mt19937 random(105);
  Held held;
  for (const Scheduler* const scheduler : schedulers()) {
    const ScheduleSpec spec{scheduler, parse_schedules(std::string(scheduler->name))[0].knobs};
    for (int round = 0; round < 6; ++round) {
      const int devices = 2 + round % 3;
      const int microbatches = 2 * devices + round % 3;
      std::vector<double> factors;
      for (int m = 0; m < microbatches; ++m)
        factors.push_back(static_cast<double>(random() % 13) / 4);
      Program program;
      Costs costs;
      try {
        costs = scaled_by_microbatch(
            test::random_costs(random, test::stages_for(spec, devices), devices, round % 2 == 0),
            factors);
        program = scheduler->schedule(
            test::problem_for(spec, devices, costs, microbatches, 1 + round % 2));
      } catch (const UsageError&) {
        continue;
      }
      CAPTURE(spelled(spec));
      CAPTURE(print(program));
      const Ran ran = test::run_program(std::move(program), costs);
      for (const Law& law : laws) {
        const std::string breach = law.breach(spec, ran);
        CHECK_MESSAGE(breach.empty(), law.name << ": " << breach);
      }
      const std::string breach = the_reference_agrees(spec, ran);
      CHECK_MESSAGE(breach.empty(), breach);
      ++held[std::string(scheduler->name)];
    }
  }
  check_held(held);
}

TEST_CASE("no forward reads weights of its own future, however many stages take no time") {
  std::mt19937 random(103);
  int held = 0;
  for (int devices = 1; devices <= 6; ++devices) {
    for (const ScheduleSpec& spec : test::all_specs(devices)) {
      if (spec.scheduler->synchrony == Synchrony::synchronous) continue;
      for (const int microbatches : {1, 3, 8}) {
        Program program;
        Costs costs;
        try {
          costs = test::random_costs(random, test::stages_for(spec, devices), devices, false);
          program =
              spec.scheduler->schedule(test::problem_for(spec, devices, costs, microbatches, 2));
        } catch (const UsageError&) {
          continue;
        }
        CAPTURE(spelled(spec));
        CAPTURE(devices);
        CAPTURE(microbatches);
        for (StageCosts& stage : costs.stage) {
          stage.forward += Time{1};
          stage.input_grad += Time{1};
          stage.weight_grad += Time{1};
          stage.backward = stage.input_grad + stage.weight_grad;
        }
        const Ran usual = test::run_program(program, costs);
        const std::vector<StageVersions> wanted = versions_of(usual.program, usual.timeline);
        const bool all = random() % 3 == 0;
        for (StageCosts& stage : costs.stage) {
          if (!all && random() % 2 == 0) continue;
          stage.forward = stage.input_grad = stage.weight_grad = stage.backward = Time{};
          stage.update = Time{};
        }
        const Ran ran = test::run_program(program, costs);
        const std::vector<StageVersions> versions = versions_of(ran.program, ran.timeline);
        // One copy of the weights and a delay: F waits for one update, and the next one for F,
        // where there is an F that far ahead.
        const bool delayed =
            program.settings.weights == WeightRule::latest && !program.settings.delay.empty();
        for (std::size_t s = 0; s < versions.size(); ++s) {
          CHECK(versions[s].staleness_min >= 0);
          if (!delayed || program.settings.delay[s] >= 2 * microbatches) continue;
          CHECK(versions[s].staleness == wanted[s].staleness);
        }
        ++held;
      }
    }
  }
  CHECK(held > 100);
}

TEST_CASE("the specs to try hold every value of every enumerated knob") {
  std::map<std::string, int> seen;
  for (const ScheduleSpec& spec : test::all_specs(4)) {
    for (const auto& [knob, value] : spec.knobs) {
      ++seen[std::string(spec.scheduler->name) + " " + knob + "=" + value];
    }
  }
  for (const char* const one :
       {"gpipe recompute=never", "gpipe recompute=always", "gpipe recompute=except_last",
        "gpipe reverse=yes", "looped_bfs reverse=yes", "1f1b recompute=always",
        "pipedream vertical_sync=yes", "pipedream replicas=straight", "pipedream replicas=1-2-1",
        "pipedream replicas=3-1", "pipedream replicas=4"}) {
    CHECK_MESSAGE(seen[one] > 0, one);
  }
}

}  // namespace
}  // namespace stageline::laws_tests
