#include "tools/study/pace/bound.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "schedulers/search/cyclic_period.hpp"
#include "sim/analysis/cycle_words.hpp"
#include "sim/analysis/memory.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/lower/passes.hpp"
#include "sim/rules.hpp"
#include "tools/study/pace/pace.hpp"
#include "tools/study/pace/stash_gap.hpp"
#include "tools/study/run/layout.hpp"
#include "tools/study/run/overflow_guard.hpp"
#include "tools/study/run/run.hpp"

namespace stageline {
namespace {

std::string_view does(LaneKind kind) {
  switch (kind) {
    case LaneKind::compute:
      return "computes";
    case LaneKind::send:
      return "sends";
    case LaneKind::receive:
      return "receives";
    case LaneKind::copy_out:
      return "copies to the host";
    case LaneKind::copy_in:
      return "copies from the host";
  }
  return "";
}

// The busiest lane of a kind in one round. A device has several lanes for messages of one
// batch.
LowerBound busiest(const Derived& derived, const std::vector<std::string>& devices, LaneKind kind,
                   int microbatches) {
  struct Load {
    std::size_t device = 0;
    Time time{};
  };
  std::map<std::uint16_t, Load> lanes;
  const EventGraph& events = derived.events;
  for (std::size_t i = 0; i < events.op.size(); ++i) {
    if (events.lane[i].kind != kind) continue;
    Load& load = lanes[events.turn[i]];
    load.device = as_size(events.lane[i].device);
    load.time += events.duration[i];
  }
  Load most;
  for (const auto& [lane, load] : lanes) {
    if (load.time > most.time) most = load;
  }
  LowerBound bound;
  bound.name = kind == LaneKind::compute ? "load" : std::string(name(kind));
  bound.step = step_of({most.time, 1, {}}, derived.round, microbatches);
  bound.why = fmt::format("{} {} so long in a step", devices[most.device], does(kind));
  return bound;
}

// The busiest of the links that several lanes share.
std::optional<LowerBound> busiest_link(const Derived& derived, int microbatches) {
  if (derived.resources.empty()) return std::nullopt;
  std::vector<Time> busy(derived.resources.size());
  for (std::size_t i = 0; i < derived.events.op.size(); ++i) {
    for (const std::uint32_t r : derived.paths[derived.events.path[i]].resources) {
      busy[r] += derived.events.duration[i];
    }
  }
  const auto most = std::max_element(busy.begin(), busy.end());
  return LowerBound{"link", step_of({*most, 1, {}}, derived.round, microbatches),
                    fmt::format("{} carries messages so long in a step",
                                nth(derived.resources, most - busy.begin()))};
}

std::vector<LowerBound> loads(const Derived& derived, const std::vector<std::string>& devices,
                              int microbatches) {
  std::vector<LowerBound> bounds{busiest(derived, devices, LaneKind::compute, microbatches)};
  const Time compute = bounds.front().step;
  Time send = compute;
  for (const LaneKind kind :
       {LaneKind::send, LaneKind::receive, LaneKind::copy_out, LaneKind::copy_in}) {
    LowerBound bound = busiest(derived, devices, kind, microbatches);
    if (bound.step <= compute) continue;
    if (kind == LaneKind::send) send = bound.step;
    bounds.push_back(std::move(bound));
  }
  // The bound of a link that one lane alone fills is that of the lane.
  std::optional<LowerBound> link = busiest_link(derived, microbatches);
  if (link && link->step > send) bounds.push_back(*std::move(link));
  return bounds;
}

// The needs of each op of a program, without the order of its lane: tasks in topological
// order.
struct Needs {
  std::vector<std::uint32_t> begin{0};
  std::vector<std::uint32_t> of;
};

Needs needs_of(const Program& program, const TaskGraph& graph) {
  const StageGraph stages = stage_graph(program);
  const ProductIndex index(program, stages);
  constexpr std::uint32_t nobody = 0xffffffff;
  std::vector<std::uint32_t> maker(index.size(), nobody);
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    makes(stages, graph.op[task], [&](Product product, int at, std::uint32_t number, int part) {
      const std::int64_t slot = index.index(product, at, number, part);
      if (slot >= 0) nth(maker, slot) = task;
    });
  }
  const auto maker_of = [&](Product product, int at, std::uint32_t number, int part) {
    const std::int64_t slot =
        index.has(product) ? index.index(product, at, number, part) : std::int64_t{-1};
    return slot < 0 ? nobody : nth(maker, slot);
  };
  Needs result;
  for (const Op op : graph.op) {
    needs(
        program, stages, op,
        [&](Product product, int at, std::uint32_t number, int part) {
          return maker_of(product, at, number, part) != nobody;
        },
        [&](Product product, int at, std::uint32_t number, int part) {
          result.of.push_back(maker_of(product, at, number, part));
        });
    result.begin.push_back(static_cast<std::uint32_t>(result.of.size()));
  }
  return result;
}

// The longest way of one micro-batch in a flushed step: from a stage's forward by way of the last
// stage back to the stage's update on that device, behind which the next step's forward stands.
// Needs and messages alone count, as if every op had a lane of its own.
Time way_of_one(Program program, const Costs& costs) {
  program.settings.messages = Messages::async;
  for (auto& list : program.ops) {
    for (Op& op : list) op.overlapped = 0;
  }
  program = complete(std::move(program), costs);
  const TaskGraph graph = compile(program, costs);
  const Needs needs = needs_of(program, graph);
  constexpr Time never{-1};
  Time longest{};
  std::vector<Time> reached(graph.tasks());
  for (std::size_t s = 0; s < program.placement.stage.size(); ++s) {
    if (program.placement.stage[s].apart()) continue;
    for (const int device : program.placement.stage[s].replicas) {
      for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
        const Op op = graph.op[task];
        const bool own = op.stage == s && graph.lanes[graph.lane[task]].device == device;
        Time start = own && op.kind == OpKind::forward ? Time{} : never;
        for (std::uint32_t n = needs.begin[task]; n < needs.begin[task + 1]; ++n) {
          start = std::max(start, reached[needs.of[n]]);
        }
        reached[task] = start;
        if (start == never) continue;
        reached[task] += graph.duration[task] + graph.paths[graph.path_of[task]].lag;
        if (own && op.kind == OpKind::update) longest = std::max(longest, reached[task]);
      }
    }
  }
  return longest;
}

constexpr int longest_round = 64;  // micro-batches

// The pace of a plain step's middle round; empty: it has none.
std::optional<RoundPace> round_pace(const Program& program, const Costs& costs, int stashes) {
  Problem problem;
  problem.placement = program.placement;
  problem.costs = costs;
  problem.devices = program.devices;
  StepLists lists;
  for (const std::vector<Op>& ops : program.ops) {
    std::vector<Op>& list = lists.emplace_back();
    std::copy_if(ops.begin(), ops.end(), std::back_inserter(list), [](const Op& op) {
      return lane_of(op.kind) == LaneKind::compute && op.kind != OpKind::update;
    });
  }
  std::optional<CyclicRound> round;
  for (int each = 1; !round && each <= longest_round && 3 * each <= program.microbatches; ++each) {
    round = middle_round(lists, program.placement.stages(), each);
  }
  if (!round) return std::nullopt;
  const Time least = least_period(problem, stash_limit(problem, stashes));
  RoundPace pace{stashes, round->each, {}, least * round->each};
  const std::vector<StageTimes> stages = stage_times(problem, true);
  const std::optional<RoundTimes> times =
      RoundClock(stages, round->each).times(*round, pace.bound, Time::max());
  if (!times) return std::nullopt;
  pace.period = times->period;
  return pace;
}

// What its own stashes leave room for: beside the bound, the round in its middle.
void add_stashes(Bound& bound, const Case& asked, Program program, const Costs& costs) {
  if (!costs.kinds.empty()) return;  // these bounds take equal micro-batches
  const Run run = run_of(std::move(program), costs);
  const Timeline timeline = timeline_of(run.program, run.graph, run.times);
  if (!is_plain_step(asked, run.program)) return;
  const std::vector<int> peaks = memory_of(run.program, costs, timeline).device_stash_peak;
  bound.middle = round_pace(run.program, costs, *std::max_element(peaks.begin(), peaks.end()));
  const std::optional<StashGap> gap = stash_gap(asked, run.program, costs, peaks);
  if (!gap) return;
  bound.bounds.push_back({"stashes", gap->bound,
                          fmt::format("any order under {} stash{}; {}", gap->stashes,
                                      gap->stashes == 1 ? "" : "es", gap->why)});
}

}  // namespace

const LowerBound& Bound::largest() const {
  const auto less = [](const LowerBound& a, const LowerBound& b) { return a.step < b.step; };
  return *std::max_element(bounds.begin(), bounds.end(), less);
}

double Bound::distance() const {
  const Time best = largest().step;
  if (best == Time{}) return 0;
  return static_cast<double>((step - best).count()) / static_cast<double>(best.count());
}

std::optional<Bound> bound_of(const Case& asked) {
  if (asked.program) {
    validate(*asked.program);  // before any pass relies on it
    if (!repeats(asked)) {
      throw UsageError(
          "a given program of several steps, or without flush, has the length it has; its steady "
          "state is that of the schedule it came from (--schedule)");
    }
  }
  check_magnitudes(asked);
  const Layout layout = lay_out(asked);
  const Costs costs = costs_of(asked, layout);
  const bool flushed = asked.weights ? *asked.weights == WeightRule::flush
                                     : asked.spec.scheduler->synchrony == Synchrony::synchronous;
  const bool synchronous = asked.program || flushed;  // what repeats is
  Runs runs(asked, layout, costs, steps_of_a_pace(asked, layout, synchronous));
  Pace pace = pace_of(asked, layout, runs, synchronous, PaceOf::cycle);
  if (!pace.derived) return std::nullopt;
  Bound bound;
  for (const Device& device : asked.cluster.devices) bound.devices.push_back(device.name);
  bound.microbatches = asked.microbatches;
  bound.in_step = asked.microbatches * layout.sequence_chunks;
  bound.round = pace.derived->round;
  bound.step = pace.step.time;
  bound.bounds = loads(*pace.derived, bound.devices, bound.in_step);
  bound.cycle = in_words(pace.derived->period, bound.round, bound.devices);
  bound.period = std::move(pace.derived->period);
  if (synchronous) {
    bound.bounds.push_back({"path", way_of_one(runs.program(1), costs),
                            "one micro-batch forward, back, and the update"});
    add_stashes(bound, asked, runs.program(1), costs);
  }
  return bound;
}

}  // namespace stageline
