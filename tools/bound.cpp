#include "tools/bound.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/errors.hpp"
#include "sim/passes.hpp"
#include "tools/cycle_words.hpp"
#include "tools/layout.hpp"
#include "tools/magnitudes.hpp"
#include "tools/pace.hpp"

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

// The busiest lane of a kind in one round.
LowerBound busiest(const Derived& derived, const std::vector<std::string>& devices, LaneKind kind,
                   int microbatches) {
  std::vector<Time> busy(devices.size());
  const EventGraph& events = derived.events;
  for (std::size_t i = 0; i < events.op.size(); ++i) {
    if (events.lane[i].kind != kind) continue;
    busy[static_cast<std::size_t>(events.lane[i].device)] += events.duration[i];
  }
  const auto most = std::max_element(busy.begin(), busy.end());
  LowerBound bound;
  bound.name = kind == LaneKind::compute ? "load" : std::string(name(kind));
  bound.step = step_of({*most, 1, {}}, derived.round, microbatches);
  bound.why = fmt::format("{} {} so long in a step",
                          devices[static_cast<std::size_t>(most - busy.begin())], does(kind));
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
                                derived.resources[static_cast<std::size_t>(most - busy.begin())])};
}

std::vector<LowerBound> loads(const Derived& derived, const std::vector<std::string>& devices,
                              int microbatches) {
  std::vector<LowerBound> bounds{busiest(derived, devices, LaneKind::compute, microbatches)};
  const Time compute = bounds.front().step;
  Time send = compute;
  for (const LaneKind kind : {LaneKind::send, LaneKind::copy_out, LaneKind::copy_in}) {
    LowerBound bound = busiest(derived, devices, kind, microbatches);
    if (bound.step <= compute) continue;
    if (kind == LaneKind::send) send = bound.step;
    bounds.push_back(std::move(bound));
  }
  // A link that one lane alone fills says nothing that the lane does not.
  std::optional<LowerBound> link = busiest_link(derived, microbatches);
  if (link && link->step > send) bounds.push_back(*std::move(link));
  return bounds;
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
    throw UsageError(
        "a given program has the length it has; its steady state is that of the "
        "schedule it came from (--schedule)");
  }
  check_magnitudes(asked);
  const Layout layout = lay_out(asked);
  const Costs costs = costs_of(asked, layout);
  const bool synchronous = asked.weights
                               ? *asked.weights == WeightRule::flush
                               : asked.spec.scheduler->synchrony == Synchrony::synchronous;
  Pace pace = pace_of(asked, layout, costs, synchronous);
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
    // Not of a schedule that one micro-batch does not suit.
    Case one = asked;
    one.microbatches = 1;
    try {
      const TaskGraph way = compile(complete(program_of(one, layout, costs, 1), costs), costs);
      bound.bounds.push_back(
          {"path", makespan(sweep(way)), "one micro-batch forward, back, and the updates"});
    } catch (const UsageError&) {
    }
  }
  return bound;
}

}  // namespace stageline
