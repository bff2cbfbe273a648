#include "tools/study/pace/pace.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/analysis/metrics.hpp"
#include "sim/fair/shortest.hpp"
#include "tools/study/pace/lone_step.hpp"
#include "tools/study/pace/quick_pace.hpp"

namespace stageline {
namespace {

constexpr int flushed_steps = 3;       // show what a flushed step repeats
constexpr int streamed_steps = 8;      // and a stream whose rounds are steps
constexpr int most_tasks = 1'000'000;  // of a second look

// Whether the run, from its middle to where it empties, takes longer than that period: three rounds
// in the middle were alike, and others are not.
bool falls_behind(const Run& run, const Period& period, int round, int emptying) {
  constexpr std::int64_t least_rounds = 4;
  const std::vector<Time> ends = microbatch_ends(run.program, run.graph, run.times);
  const std::int64_t last = (static_cast<std::int64_t>(ends.size()) - emptying) / round;
  const std::int64_t middle = last / 2;
  if (last - middle < least_rounds) return false;
  const auto done = [&](std::int64_t rounds) {
    return ends[static_cast<std::size_t>(rounds * round) - 1];
  };
  const std::optional<Time> took = scaled(period.time, last - middle, period.rounds);
  return took && done(last) - done(middle) > *took + period.time;
}

// Whether the run keeps the period up to where it empties. The order in which messages are served
// is that of the middle of the run; it decides the pace only if it stays.
bool goes_on(const Run& run, const Period& period, int round, int emptying) {
  const std::vector<Time> ends = microbatch_ends(run.program, run.graph, run.times);
  const auto done = [&](std::int64_t rounds) {
    return ends[static_cast<std::size_t>(rounds * round) - 1];
  };
  const std::int64_t last = (static_cast<std::int64_t>(ends.size()) - emptying) / round;
  if (last <= period.rounds) return false;
  return done(last) - done(last - period.rounds) == period.time;
}

// Whether the period is shorter than what a shared link carries in it: its turns are not closed.
bool outruns_a_link(const Derived& derived) {
  std::vector<Time> busy(derived.resources.size());
  for (std::size_t i = 0; i < derived.events.op.size(); ++i) {
    for (const std::uint32_t r : derived.paths[derived.events.path[i]].resources) {
      busy[r] += derived.events.duration[i];
    }
  }
  return std::any_of(busy.begin(), busy.end(), [&](Time carried) {
    return derived.period.time < carried * derived.period.rounds;
  });
}

std::optional<Derived> derive(const Run& run, int round, int emptying) {
  if (flows_take_no_turns(run.graph)) return std::nullopt;
  std::optional<EventGraph> events =
      event_graph(run.graph, run.times, static_cast<int>(run.program.total_microbatches()), round);
  if (!events) return std::nullopt;
  Derived derived{round, *std::move(events), {}, run.graph.paths, run.graph.resources};
  derived.period = period_of(derived.events);
  if (falls_behind(run, derived.period, round, emptying)) return std::nullopt;
  if (shares_resources(run.graph) &&
      (!goes_on(run, derived.period, round, emptying) || outruns_a_link(derived))) {
    return std::nullopt;
  }
  return derived;
}

std::optional<Derived> derive_stream(const Run& run, const Rhythm& rhythm) {
  for (const int together : {1, 2, 3, 4, 6, 8}) {
    const int round = rhythm.round * together;
    if (auto found = derive(run, round, rhythm.warm_up * rhythm.round)) return found;
  }
  return std::nullopt;
}

// How long each resource of a path is occupied by so many tasks on it, `carried` alike, at its full
// capacity where several flows share it at once: then that is bytes, else a duration.
struct PathUse {
  std::int64_t carried = 0;
  std::int64_t tasks = 0;
};

void occupy(std::vector<Time>& resource, const TaskGraph& graph, const Path& path, PathUse use) {
  for (std::size_t i = 0; i < path.resources.size(); ++i) {
    Time time{use.carried};
    if (!graph.bytes.empty()) {
      const double load = path.load.empty() ? 1 : path.load[i];
      const auto capacity = static_cast<double>(graph.capacity[path.resources[i]].bytes_per_second);
      const double picoseconds = static_cast<double>(use.carried) * load / capacity * 1e12;
      time = Time{static_cast<std::int64_t>(picoseconds * (1 - 1e-9))};
    }
    resource[path.resources[i]] += time * use.tasks;
  }
}

// What the busiest lane does in a step of the run, or the busiest link: nothing is faster for long.
Time least_step(const Run& run, bool links, int microbatches) {
  const TaskGraph& graph = run.graph;
  std::vector<Time> lane(graph.lanes.size());
  std::vector<Time> resource(graph.resources.size());
  std::vector<PathUse> uses(graph.paths.size());  // tasks that resource does not hold yet
  for (std::uint32_t t = 0; t < graph.tasks(); ++t) {
    const std::uint16_t l = graph.lane[t];
    if (!links && is_communication(graph.lanes[l].kind)) continue;
    lane[l] += shortest(graph, t);
    if (!links) continue;
    const std::int64_t carried =
        graph.bytes.empty() ? graph.duration[t].count() : graph.bytes[t].count;
    PathUse& use = uses[graph.path_of[t]];
    if (use.carried != carried) {
      occupy(resource, graph, graph.paths[graph.path_of[t]], use);
      use = {carried, 0};
    }
    ++use.tasks;
  }
  for (std::size_t p = 0; p < uses.size(); ++p) {
    occupy(resource, graph, graph.paths[p], uses[p]);
  }
  Time most{};
  for (const Time busy : lane) most = std::max(most, busy);
  for (const Time busy : resource) most = std::max(most, busy);
  const int all = static_cast<int>(run.program.total_microbatches());
  return step_of({most, 1, {}}, all, microbatches);
}

// Where a link has more to carry than it can, what waits for it grows without end, and no stretch
// of the run shows the pace.
Pace measured(const Run& run, const Rhythm& rhythm, int microbatches) {
  const auto step = [&](const TaskTimes& times, bool links) {
    SteadyStep shown =
        steady_step(microbatch_ends(run.program, run.graph, times), rhythm, microbatches);
    const Time least = least_step(run, links, microbatches);
    if (shown.time < least) shown = {least, false};
    return shown;
  };
  const SteadyStep shown = step(run.times, true);
  const Time with_free_links = step(sweep_with_free_links(run.graph), false).time;
  return {shown, std::min(shown.time, with_free_links), 1, {}, {}};
}

// The mean step of a run of whole steps as long as it is, filling and draining included.
Pace mean_of(const Run& run) {
  const int all = static_cast<int>(run.program.total_microbatches());
  const auto step = [&](const TaskTimes& times) {
    return step_of({makespan(times), 1, {}}, all, run.program.microbatches);
  };
  return {{step(run.times), false}, step(sweep_with_free_links(run.graph)), 1, {}, {}};
}

// The mean step of a flushed run as long as it is. With two steps it is the last one's, from end to
// end. With more, which are not alike, it leaves out the first and the last, whose reductions share
// the links with no messages of a next step. It is no shorter than what the busiest lane does.
Pace mean_of_inner(const Run& run) {
  const auto step = [&](const TaskTimes& times, bool links) {
    const std::vector<Time> ends = step_ends(run.program, run.graph, times);
    const std::size_t count = ends.size();
    const std::size_t last = count < 3 ? count - 1 : count - 2;
    const Time mean =
        last == 0 ? ends[0] : (ends[last] - ends[0]) / static_cast<std::int64_t>(last);
    return std::max(mean, least_step(run, links, run.program.microbatches));
  };
  const Time shown = step(run.times, true);
  const Time with_free_links = step(sweep_with_free_links(run.graph), false);
  return {{shown, run.program.steps < flushed_steps}, std::min(shown, with_free_links), 1, {}, {}};
}

// The last of flushed steps that last equally long, up to rounding: rates of flows are rounded to a
// picosecond at every change.
std::optional<Time> last_step(const std::vector<Time>& ends) {
  constexpr Time rounding{1000};
  const std::size_t n = ends.size();
  if (n < 3) return std::nullopt;
  const Time last = ends[n - 1] - ends[n - 2];
  const Time before = ends[n - 2] - ends[n - 3];
  if (std::max(last, before) - std::min(last, before) > rounding) return std::nullopt;
  return last;
}

// The same order with free links repeats as well.
std::optional<Pace> repeated_pace(const Run& run) {
  const std::optional<Time> shown = last_step(step_ends(run.program, run.graph, run.times));
  const std::optional<Time> with_free_links =
      last_step(step_ends(run.program, run.graph, sweep_with_free_links(run.graph)));
  if (!shown || !with_free_links) return std::nullopt;
  return Pace{{*shown, true}, std::min(*shown, *with_free_links), 1, {}, {}};
}

bool sends(const std::vector<Lane>& lanes) {
  return std::any_of(lanes.begin(), lanes.end(),
                     [](const Lane& lane) { return is_communication(lane.kind); });
}

Pace of_derived(Derived derived, int microbatches) {
  Pace pace;
  pace.step = {step_of(derived.period, derived.round, microbatches), true};
  pace.with_free_links = pace.step.time;
  if (sends(derived.events.lane)) {
    pace.with_free_links =
        step_of(period_of(with_free_links(derived.events)), derived.round, microbatches);
  }
  pace.round = derived.round;
  pace.period = derived.period;
  pace.derived = std::move(derived);
  return pace;
}

// The pace of flushed steps that repeat this one, where it can be read off it.
std::optional<Pace> lone_pace(const Run& run) {
  if (!steps_wait_in_lanes(run.program, run.graph)) return std::nullopt;
  const auto& places = run.program.placement.stage;
  const bool two_ways = std::any_of(places.begin(), places.end(), [](const StagePlace& place) {
    return place.replicas.size() > 1;
  });
  if (two_ways && ask_at_once(run.graph, run.times)) return std::nullopt;
  const std::optional<Time> step = lone_step(run.graph, run.times);
  if (!step) return std::nullopt;
  const std::optional<Time> with_free_links =
      sends(run.graph.lanes) ? lone_step_with_free_links(run.graph) : step;
  if (!with_free_links) return std::nullopt;
  return Pace{{*step, true}, *with_free_links, run.program.microbatches, Period{*step, 1, {}}, {}};
}

// The pace of three flushed steps, where it can be read off them.
std::optional<Pace> quick_pace(const Run& run) {
  const Program& program = run.program;
  if (program.steps != flushed_steps || program.settings.messages != Messages::async) {
    return std::nullopt;
  }
  const QuickPace quick(program, run.graph);
  const std::optional<Time> step = quick.step(run.graph, run.times);
  if (!step) return std::nullopt;
  const std::optional<Time> with_free_links =
      sends(run.graph.lanes) ? quick.step_with_free_links(sweep_with_free_links(run.graph)) : step;
  if (!with_free_links) return std::nullopt;
  return Pace{{*step, true}, *with_free_links, program.microbatches, Period{*step, 1, {}}, {}};
}

// The pace of flushed steps.
std::optional<Pace> repeated_or_derived(const Run& run, PaceOf what) {
  if (what == PaceOf::steps) {
    if (auto quick = quick_pace(run)) return quick;
  }
  const int m = run.program.microbatches;
  auto derived = derive(run, m, m);
  if (!derived) return std::nullopt;
  return of_derived(*std::move(derived), m);
}

// Whether some updates of a stage reduce gradients and others of it do not, as where data-parallel
// ranks meet every so many steps (DiLoCo, Douillard et al. 2023, arXiv 2311.08105): the steps of
// such a program are not alike, and those in its middle do not show its pace.
bool reduces_now_and_then(const Program& program) {
  std::vector<int> updates(program.placement.stage.size());
  std::vector<int> reductions(updates.size());
  for (const std::vector<Op>& list : program.ops) {
    for (const Op op : list) {
      if (op.kind == OpKind::update) ++updates[op.stage];
      if (op.kind == OpKind::reduce_grad) ++reductions[op.stage];
    }
  }
  for (std::size_t s = 0; s < updates.size(); ++s) {
    if (reductions[s] > 0 && reductions[s] < updates[s]) return true;
  }
  return false;
}

Rhythm rhythm_of(const Case& asked, const Layout& layout, bool synchronous) {
  return rhythm_of(layout.placement, static_cast<int>(asked.cluster.devices.size()), synchronous,
                   microbatches_of(asked, layout));
}

int steps_of(const Rhythm& rhythm, int microbatches) {
  const int m = std::max(microbatches, 1);
  return (total_microbatches(rhythm) + m - 1) / m;
}

Rhythm stream_rhythm(const Program& program) {
  return rhythm_of(program.placement, static_cast<int>(program.devices.size()), false,
                   program.microbatches);
}

}  // namespace

int steps_of_a_pace(const Case& asked, const Layout& layout, bool synchronous) {
  if (synchronous) return flushed_steps;
  return steps_of(rhythm_of(asked, layout, false), microbatches_of(asked, layout));
}

int most_steps_of_a_pace(const Case& asked, const Layout& layout, bool synchronous) {
  const Rhythm rhythm = rhythm_of(asked, layout, synchronous);
  return std::max(steps_of_a_pace(asked, layout, synchronous),
                  steps_of(rhythm, microbatches_of(asked, layout)));
}

std::optional<Time> repeated_step(const Program& program, const TaskGraph& graph,
                                  const TaskTimes& times) {
  const std::optional<Time> shown = last_step(step_ends(program, graph, times));
  if (!shown || !last_step(step_ends(program, graph, sweep_with_free_links(graph)))) {
    return std::nullopt;
  }
  return shown;
}

Pace pace_of(const Case& asked, const Layout& layout, Runs& runs, bool synchronous, PaceOf what) {
  const int m = microbatches_of(asked, layout);
  const Rhythm rhythm = rhythm_of(asked, layout, synchronous);
  const int steps = steps_of(rhythm, m);
  if (synchronous) {
    // Ops of several devices that slow each other do so over the ends of steps.
    if (what == PaceOf::steps && runs.costs().slowdown.empty() && runs.repeat_one_step()) {
      if (auto found = lone_pace(runs.of(1))) return *std::move(found);
    }
    const Run& run = runs.of(flushed_steps);
    if (auto found = repeated_or_derived(run, what)) return *std::move(found);
    if (!run.graph.bytes.empty()) {
      if (const auto found = repeated_pace(run)) return *found;
    }
    return measured(steps > flushed_steps ? runs.of(steps) : run, rhythm, m);
  }
  const Run& run = runs.of(steps);
  if (auto found = derive_stream(run, rhythm)) return of_derived(*std::move(found), m);
  // A stream may repeat by steps: an order written for a flush, with other weights.
  const std::int64_t round = std::lcm(std::int64_t{rhythm.round}, std::int64_t{m});
  const std::int64_t in_a_step = run.graph.tasks() / run.program.steps + 1;
  if (in_a_step * (round / m) * streamed_steps < most_tasks) {
    const Run& whole = runs.of(static_cast<int>(round / m) * streamed_steps);
    const int in_it = static_cast<int>(round);
    if (auto found = derive(whole, in_it, in_it)) return of_derived(*std::move(found), m);
  }
  return measured(run, rhythm, m);
}

Pace pace_of(const Run& run, PaceOf what) {
  const Program& program = run.program;
  const int m = program.microbatches;
  const bool synchronous = program.settings.weights == WeightRule::flush;
  if (synchronous) {
    if (reduces_now_and_then(program)) return mean_of(run);
    if (auto found = repeated_or_derived(run, what)) return *std::move(found);
    const Rhythm flushes = rhythm_of(program.placement, static_cast<int>(program.devices.size()),
                                     /*synchronous=*/true, m);
    return program.steps == steps_of(flushes, m) ? measured(run, flushes, m) : mean_of_inner(run);
  }
  const Rhythm rhythm = stream_rhythm(program);
  if (auto found = derive_stream(run, rhythm)) return of_derived(*std::move(found), m);
  const int round = std::lcm(rhythm.round, m);
  if (auto found = derive(run, round, round)) return of_derived(*std::move(found), m);
  if (program.steps < steps_of_a_stream(program)) return mean_of(run);
  return measured(run, rhythm, m);
}

int steps_of_a_stream(const Program& program) {
  const int m = program.microbatches;
  const Rhythm rhythm = stream_rhythm(program);
  const int by_step = std::lcm(rhythm.round, m) / m * streamed_steps;
  return std::max(steps_of(rhythm, m), by_step);
}

}  // namespace stageline
