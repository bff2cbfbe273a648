// Simulates a run anew with the times of one lever multiplied.
#include "tools/study/whatif/resimulation.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/interference.hpp"
#include "tools/study/pace/lone_step.hpp"
#include "tools/study/pace/pace.hpp"
#include "tools/study/run/steps.hpp"

namespace stageline {

// The graph of a level whose times change with the factor, and where.
struct Resimulation::Bench {
  Bench(const Level& of, const Lever& lever, const Costs& costs)
      : level(of),
        part(of.levers->part(lever)),
        graph(*of.alone),
        setups(Levers::has_setups(lever)),
        together{costs.slowdown, costs.network.host} {
    std::vector<char> path_changes(graph.paths.size());
    const auto changes = [&](std::uint32_t task) {
      return longest_of(part, task) != Time{} || part.lag[task] != Time{} ||
             part.head_start[task] != Time{};
    };
    for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
      if (changes(task)) path_changes[graph.path_of[task]] = 1;
    }
    path_changes[0] = 0;
    for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
      if (changes(task) || path_changes[graph.path_of[task]] != 0) changed.push_back(task);
    }
  }

  static Time times(Time all, Time of_part, double factor) {
    return all - of_part + Time{std::llround(static_cast<double>(of_part.count()) * factor)};
  }

  TaskTimes simulated(double factor) {
    const TaskTable& all = level.levers->times();
    // A simulation of what slows one another leaves the durations that it has found.
    const bool rewritten = is_fair(graph) || !together.slowdown.empty();
    if (rewritten) graph.duration = level.alone->duration;
    for (const std::uint32_t task : changed) {
      Time& duration = graph.duration[task];
      duration = times(all.duration[task], part.duration[task], factor);
      for (std::size_t i = 0; i < all.others.size(); ++i) {
        duration = std::max(duration, times(all.others[i][task], part.others[i][task], factor));
      }
      Path& path = graph.paths[graph.path_of[task]];
      path.lag = times(all.lag[task], part.lag[task], factor);
      path.head_start = times(all.head_start[task], part.head_start[task], factor);
      if (!graph.bytes.empty()) scale_flow(task, factor);
    }
    return simulate_together(graph, together);
  }

  // A flow has as many times the bytes as they take the time.
  void scale_flow(std::uint32_t task, double factor) {
    const TaskGraph& alone = *level.alone;
    const Path& path = alone.paths[alone.path_of[task]];
    const Time all = alone.duration[task];
    const Time of_part = part.duration[task];
    if (of_part == Time{} || alone.bytes[task] == Bytes{}) return;
    const Time setup = std::min(path.setup, all);
    const Time of_setup = setups ? std::min(setup, of_part) : Time{};
    graph.paths[graph.path_of[task]].setup = times(setup, of_setup, factor);
    if (all == setup) return;
    const double share = static_cast<double>((of_part - of_setup).count()) /
                         static_cast<double>((all - setup).count());
    const double bytes = static_cast<double>(alone.bytes[task].count);
    graph.bytes[task] = Bytes{std::llround(bytes * (1 - share * (1 - factor)))};
  }

  Run run(double factor) {
    Run made;
    made.program = *level.program;
    made.times = simulated(factor);
    made.graph = graph;
    return made;
  }

  const Level& level;
  TaskTable part;
  TaskGraph graph;
  bool setups;
  Interference together;
  std::vector<std::uint32_t> changed;  // tasks, and those that share a path with one
};

Resimulation::Level Resimulation::level_of(Program program) const {
  Level level;
  level.own_program = std::make_unique<Program>(std::move(program));
  level.own_graph = std::make_unique<TaskGraph>(compile(*level.own_program, costs_));
  level.own_levers =
      std::make_unique<Levers>(asked_, layout_, costs_, *level.own_program, *level.own_graph);
  level.program = level.own_program.get();
  level.alone = level.own_graph.get();
  level.levers = level.own_levers.get();
  return level;
}

Resimulation::Resimulation(const Case& asked, const Layout& layout, const Costs& costs,
                           const Run& run, const TaskGraph& alone, const Levers& levers, Time step)
    : asked_(asked), layout_(layout), costs_(costs) {
  run_.program = &run.program;
  run_.alone = &alone;
  run_.levers = &levers;
  const bool flushes = run.program.settings.weights == WeightRule::flush;
  if (!flushes) return;
  if (!asked.program || repeats(asked)) {
    longest_ = most_steps_of_a_pace(asked, layout, /*synchronous=*/true);
  }
  const bool plain = run.program.settings.messages == Messages::async && costs.slowdown.empty();
  if (plain && run.program.steps == 3) quick_.emplace(run.program, alone);
  if (plain && run.program.steps > 1) find_lone(step);
}

// As pace_of() looks at one step first.
void Resimulation::find_lone(Time step) {
  Program one = beginning_of(*run_.program, 1);
  if (repeated(one, run_.program->steps).ops != run_.program->ops) return;
  Level level = level_of(std::move(one));
  if (!steps_wait_in_lanes(*level.program, *level.alone)) return;
  TaskGraph graph = *level.alone;
  const TaskTimes times = simulate_together(graph, {costs_.slowdown, costs_.network.host});
  const std::optional<Time> shown = lone_step(graph, times);
  if (shown && *shown == step) lone_ = std::move(level);
}

const Resimulation::Level& Resimulation::longer() const {
  std::call_once(made_longer_, [&] {
    Runs runs(asked_, layout_, costs_, longest_);
    longer_ = level_of(runs.of(longest_).program);
  });
  return longer_;
}

Resimulation::Changed::Changed(const Resimulation& of, const Lever& lever)
    : of_(of), lever_(lever) {}
Resimulation::Changed::~Changed() = default;

Time Resimulation::Changed::step(double factor) {
  const auto known = known_.find(factor);
  if (known != known_.end()) return known->second;
  std::optional<Time> found = lone_step_at(factor);
  if (!found) found = step_of_run(factor);
  if (!found) found = step_of_longer(factor);
  known_.emplace(factor, *found);
  return *found;
}

std::optional<Time> Resimulation::Changed::lone_step_at(double factor) {
  const Level& level = of_.lone_;
  if (level.program == nullptr) return std::nullopt;
  if (!lone_) lone_ = std::make_unique<Bench>(level, lever_, of_.costs_);
  const TaskTimes times = lone_->simulated(factor);
  const auto& places = level.program->placement.stage;
  const bool two_ways = std::any_of(places.begin(), places.end(), [](const StagePlace& place) {
    return place.replicas.size() > 1;
  });
  if (two_ways && ask_at_once(lone_->graph, times)) return std::nullopt;
  return lone_step(lone_->graph, times);
}

// Nothing where steps that differ would be taken for one another.
std::optional<Time> Resimulation::Changed::step_of_run(double factor) {
  const Level& level = of_.run_;
  if (!run_) run_ = std::make_unique<Bench>(level, lever_, of_.costs_);
  if (of_.quick_) {
    const TaskTimes times = run_->simulated(factor);
    if (const std::optional<Time> step = of_.quick_->step(run_->graph, times)) return step;
  }
  const Run run = run_->run(factor);
  const Pace pace = pace_of(run);
  const bool is_long = level.program->steps >= of_.longest_;
  const bool alike = pace.period || pace.step.settled ||
                     repeated_step(run.program, run.graph, run.times).has_value();
  if (is_long || alike) return pace.step.time;
  return std::nullopt;
}

Time Resimulation::Changed::step_of_longer(double factor) {
  const Level& level = of_.longer();
  if (!longer_) longer_ = std::make_unique<Bench>(level, lever_, of_.costs_);
  return pace_of(longer_->run(factor)).step.time;
}

}  // namespace stageline
