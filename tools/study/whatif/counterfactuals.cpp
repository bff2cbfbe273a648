// Takes causes away from a run, and simulates what is left.
#include "tools/study/whatif/counterfactuals.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "sim/analysis/what_if.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tools/study/pace/run_with_pace.hpp"
#include "tools/study/study.hpp"
#include "tools/study/whatif/levers.hpp"

namespace stageline {
namespace {

using Kinds = bool (*)(OpKind);

// The ops that a cause is made of, which take no time without it. Null of other causes.
Kinds ops_of(StepCause cause) {
  switch (cause) {
    case StepCause::copies:
      return [](OpKind kind) { return class_of(kind) == OpClass::copy; };
    case StepCause::optimizer:
      return [](OpKind kind) { return kind == OpKind::update; };
    case StepCause::reductions:
      return [](OpKind kind) { return kind == OpKind::reduce_grad; };
    case StepCause::messages:
      return [](OpKind kind) { return class_of(kind) == OpClass::message; };
    case StepCause::recompute:
      return [](OpKind kind) { return kind == OpKind::recompute; };
    case StepCause::imbalance:
    case StepCause::fill_and_drain:
    case StepCause::dependency:
    case StepCause::interference:
    case StepCause::blocking_collectives:
    case StepCause::memory_limit:
    case StepCause::jitter:
      return nullptr;
  }
  return nullptr;
}

bool take_time(const TaskGraph& graph, Kinds is) {
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    if (!is(graph.op[task].kind)) continue;
    if (graph.duration[task] > Time{}) return true;
    if (graph.paths[graph.path_of[task]].lag > Time{}) return true;
  }
  return false;
}

// A path carries either messages, or reductions, or copies.
void free_ops(TaskGraph& graph, Kinds is) {
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    if (!is(graph.op[task].kind)) continue;
    Path& path = graph.paths[graph.path_of[task]];
    graph.duration[task] = path.lag = path.setup = path.head_start = Time{};
    if (!graph.bytes.empty()) graph.bytes[task] = Bytes{};
  }
}

// Equal stages are no cause where they are no better: where a device has more work than others in
// any case, an uneven cut makes up for it.
void equalize(Counterfactual& run) {
  WhatIf what_if(*run.program, run.graph);
  if (!what_if.make_equal()) return;
  Counterfactual equal = run;
  equal.graph.duration = what_if.duration();
  if (equal.step() < run.step()) run = std::move(equal);
}

}  // namespace

struct Counterfactuals::Base {
  Case asked;
  Layout layout;
  Costs costs;
  Run run;
  TaskGraph graph;  // with the times that ops take alone

  Base(Case question, const Outcome& nominal)
      : asked(std::move(question)),
        layout(checked_layout(asked)),
        costs(nominal.costs),
        run(run_with_pace(asked, layout, nominal)),
        graph(compile(run.program, costs)) {}

  void free_collectives(TaskGraph& left) const {
    const Levers levers(asked, layout, costs, run.program, graph);
    const Lever collectives{LeverKind::collectives, "", {}, {}, {}, {}, {}};
    const TaskTable rest = scaled(levers.times(), levers.part(collectives), 0);
    for (std::uint32_t task = 0; task < left.tasks(); ++task) {
      const OpKind kind = left.op[task].kind;
      if (lane_of(kind) != LaneKind::compute || kind == OpKind::update) continue;
      left.duration[task] = longest_of(rest, task);
    }
  }
};

Counterfactuals::~Counterfactuals() = default;

Counterfactuals::Counterfactuals(const Case& asked, const Outcome& nominal)
    : given_(std::make_unique<Base>(asked, nominal)) {
  steps_[0] = pace_of(given_->run).step.time;
  find_unlimited(asked, nominal);
  for (int number = 0; number < step_causes; ++number) {
    const auto cause = static_cast<StepCause>(number);
    if (changes(*given_, cause)) present_.push_back(cause);
  }
}

// Whether the causes of a run have this one among them. For imbalance, whether equal stages are
// better once nothing else is left.
bool Counterfactuals::changes(const Base& base, StepCause cause) const {
  switch (cause) {
    case StepCause::copies:
    case StepCause::optimizer:
    case StepCause::reductions:
    case StepCause::messages:
    case StepCause::recompute:
      return take_time(base.graph, ops_of(cause));
    case StepCause::blocking_collectives:
      return base.costs.has_collectives();
    case StepCause::interference:
      return !base.costs.slowdown.empty();
    case StepCause::memory_limit:
      return unlimited_ != nullptr;
    case StepCause::imbalance:
      return WhatIf(base.run.program, base.graph).make_equal();
    case StepCause::fill_and_drain:
    case StepCause::dependency:
    case StepCause::jitter:
      return false;
  }
  return false;
}

// A schedule has a limit where it has a knob of that name.
void Counterfactuals::find_unlimited(const Case& asked, const Outcome& nominal) {
  const auto limit = asked.spec.knobs.find("limit");
  if (asked.program || asked.spec.scheduler == nullptr) return;
  const auto& knobs = asked.spec.scheduler->knobs;
  const bool knows = std::any_of(knobs.begin(), knobs.end(),
                                 [](const Knob& knob) { return knob.name == "limit"; });
  if (!knows || (limit != asked.spec.knobs.end() && limit->second == "none")) return;
  Case free = asked;
  free.spec.knobs["limit"] = "none";
  try {
    const Outcome outcome = study(free);
    if (outcome.step_time >= nominal.step_time) return;
    unlimited_ = std::make_unique<Base>(std::move(free), outcome);
  } catch (const UsageError&) {
    unlimited_.reset();
  } catch (const ProgramError&) {
    unlimited_.reset();
  }
}

Counterfactual Counterfactuals::without(Removed removed) const {
  const auto gone = [&](StepCause cause) { return (removed & bit_of(cause)) != 0; };
  const bool unlimited = unlimited_ != nullptr && gone(StepCause::memory_limit);
  const Base& base = unlimited ? *unlimited_ : *given_;
  Counterfactual run{&base.run.program, base.graph, base.costs};
  for (const StepCause cause : {StepCause::copies, StepCause::optimizer, StepCause::reductions}) {
    if (gone(cause)) free_ops(run.graph, ops_of(cause));
  }
  if (gone(StepCause::blocking_collectives)) base.free_collectives(run.graph);
  if (gone(StepCause::messages)) free_ops(run.graph, ops_of(StepCause::messages));
  if (gone(StepCause::interference)) run.costs.slowdown.clear();
  if (gone(StepCause::recompute)) free_ops(run.graph, ops_of(StepCause::recompute));
  if (gone(StepCause::imbalance)) equalize(run);
  return run;
}

Time Counterfactuals::step(Removed removed) {
  const auto known = steps_.find(removed);
  if (known != steps_.end()) return known->second;
  return steps_[removed] = without(removed).step();
}

Time Counterfactual::step() const { return pace_with(*program, graph, costs).step.time; }

std::vector<Time> Counterfactual::busy() const {
  std::vector<Time> sum(program->devices.size());
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    if (lane_of(graph.op[task].kind) != LaneKind::compute) continue;
    nth(sum, nth(graph.lanes, graph.lane[task]).device) += graph.duration[task];
  }
  for (Time& one : sum) one /= program->steps;
  return sum;
}

}  // namespace stageline
