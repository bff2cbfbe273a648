#include "tools/study/waterfall.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "sim/analysis/metrics.hpp"
#include "sim/analysis/what_if.hpp"
#include "sim/index.hpp"
#include "sim/interference.hpp"
#include "tools/study/levers.hpp"
#include "tools/study/run_with_pace.hpp"

namespace stageline {
namespace {

__extension__ using Wide = __int128;

// Takes one cause after the other away, and writes down what that saves.
class Removal {
 public:
  Removal(const Case& asked, const Layout& layout, const Outcome& nominal, const Run& run)
      : asked_(asked),
        layout_(layout),
        program_(run.program),
        synchronous_(nominal.synchrony == Synchrony::synchronous),
        costs_(nominal.costs),
        graph_(compile(run.program, nominal.costs)),
        alone_(graph_),
        now_(pace_of(run).step.time) {
    found_.step = now_;
  }

  Waterfall all() {
    free(StepCause::copies, [](OpKind kind) { return class_of(kind) == OpClass::copy; });
    free(StepCause::optimizer, [](OpKind kind) { return kind == OpKind::update; });
    free(StepCause::reductions, [](OpKind kind) { return kind == OpKind::reduce_grad; });
    free_collectives();
    free(StepCause::messages, [](OpKind kind) { return class_of(kind) == OpClass::message; });
    separate();
    free(StepCause::recompute, [](OpKind kind) { return kind == OpKind::recompute; });
    found_.ideal = mean_work();
    equalize();
    split_idle();
    return found_;
  }

 private:
  void charge(StepCause cause) {
    const Time without = pace_with(program_, graph_, costs_).step.time;
    nth(found_.by, cause) = now_ - without;
    now_ = without;
  }

  // A path carries either messages, or reductions, or copies.
  void free(StepCause cause, bool (*is)(OpKind)) {
    bool any = false;
    for (std::uint32_t task = 0; task < graph_.tasks(); ++task) {
      if (!is(graph_.op[task].kind)) continue;
      Path& path = graph_.paths[graph_.path_of[task]];
      any = any || graph_.duration[task] > Time{} || path.lag > Time{};
      graph_.duration[task] = path.lag = path.setup = path.head_start = Time{};
      if (!graph_.bytes.empty()) graph_.bytes[task] = Bytes{};
    }
    if (any) charge(cause);
  }

  void free_collectives() {
    const auto any = [](const StageCosts& stage) { return stage.blocking != BlockingTimes{}; };
    if (std::none_of(costs_.stage.begin(), costs_.stage.end(), any)) return;
    const Levers levers(asked_, layout_, costs_, program_, alone_);
    const Lever collectives{LeverKind::collectives, "", {}, {}, {}, {}, {}};
    const TaskTable left = scaled(levers.times(), levers.part(collectives), 0);
    for (std::uint32_t task = 0; task < graph_.tasks(); ++task) {
      const OpKind kind = graph_.op[task].kind;
      if (lane_of(kind) != LaneKind::compute || kind == OpKind::update) continue;
      graph_.duration[task] = left.second.empty()
                                  ? left.duration[task]
                                  : std::max(left.duration[task], left.second[task]);
    }
    charge(StepCause::blocking_collectives);
  }

  // Devices that do not slow one another.
  void separate() {
    if (costs_.slowdown.empty()) return;
    costs_.slowdown.clear();
    charge(StepCause::interference);
  }

  Time mean_work() const {
    Wide work = 0;
    for (std::uint32_t task = 0; task < graph_.tasks(); ++task) {
      if (lane_of(graph_.op[task].kind) == LaneKind::compute) work += graph_.duration[task].count();
    }
    const Wide parts = Wide{program_.steps} * static_cast<Wide>(program_.devices.size());
    return Time{static_cast<std::int64_t>(work / parts)};
  }

  // Equal stages are no cause where they are no better: where a device has more work than others in
  // any case, an uneven cut makes up for it.
  void equalize() {
    TaskGraph before = graph_;
    WhatIf what_if(program_, before);
    if (!what_if.make_equal()) return;
    graph_.duration = what_if.duration();
    const Time without = pace_with(program_, graph_, costs_).step.time;
    if (without >= now_) {
      graph_ = std::move(before);
      return;
    }
    nth(found_.by, StepCause::imbalance) = now_ - without;
    now_ = without;
  }

  void split_idle() {
    const Time idle = now_ - found_.ideal;
    Time ends{};
    if (synchronous_) {
      const TaskTimes times = simulate_together(graph_, {});
      Wide filling = 0;
      Wide all = 0;
      for (const DeviceMetrics& device : metrics_of(program_, graph_, times).device) {
        const Time at_ends =
            nth(device.idle_by, IdleKind::fill) + nth(device.idle_by, IdleKind::drain);
        filling += at_ends.count();
        all += device.idle.count() - nth(device.idle_by, IdleKind::unused).count();
      }
      if (all > 0) ends = Time{static_cast<std::int64_t>(Wide{idle.count()} * filling / all)};
    }
    nth(found_.by, StepCause::fill_and_drain) = ends;
    nth(found_.by, StepCause::dependency) = idle - ends;
  }

  const Case& asked_;
  const Layout& layout_;
  const Program& program_;
  bool synchronous_;
  Costs costs_;
  TaskGraph graph_;
  TaskGraph alone_;  // as compiled
  Time now_;         // the step without what has been removed
  Waterfall found_;
};

}  // namespace

std::string_view name(StepCause cause) {
  switch (cause) {
    case StepCause::imbalance:
      return "imbalance";
    case StepCause::fill_and_drain:
      return "fill and drain";
    case StepCause::dependency:
      return "dependency";
    case StepCause::recompute:
      return "recompute";
    case StepCause::interference:
      return "interference";
    case StepCause::messages:
      return "messages";
    case StepCause::blocking_collectives:
      return "blocking collectives";
    case StepCause::reductions:
      return "gradient reductions";
    case StepCause::optimizer:
      return "optimizer";
    case StepCause::copies:
      return "copies to the host";
  }
  return "";
}

Waterfall waterfall_of(const Case& asked, const Outcome& nominal) {
  const Layout layout = checked_layout(asked);
  const Run run = run_with_pace(asked, layout, nominal);
  return Removal(asked, layout, nominal, run).all();
}

}  // namespace stageline
