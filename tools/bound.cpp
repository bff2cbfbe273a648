#include "tools/bound.hpp"

#include <vector>

#include "cost_models/stage_costs.hpp"
#include "sim/errors.hpp"
#include "sim/passes.hpp"
#include "tools/layout.hpp"
#include "tools/steady.hpp"

namespace stageline {
namespace {

Bound bound_of_rounds(const EventGraph& events, const TaskGraph& graph, const Rhythm& rhythm,
                      int microbatches) {
  Bound bound;
  bound.round = rhythm.round;
  bound.period = period_of(events);
  bound.step = step_of(bound.period, rhythm, microbatches).time;
  std::vector<Time> busy(graph.lanes.size());
  for (std::size_t i = 0; i < events.op.size(); ++i) busy[events.lane[i]] += events.duration[i];
  for (std::size_t lane = 0; lane < busy.size(); ++lane) {
    if (graph.lanes[lane].kind != LaneKind::compute) continue;
    const Time load = step_of({busy[lane], 1, {}}, rhythm, microbatches).time;
    if (load <= bound.load) continue;
    bound.load = load;
    bound.busiest = graph.devices[static_cast<std::size_t>(graph.lanes[lane].device)];
  }
  return bound;
}

}  // namespace

std::optional<Bound> bound_of(const Case& asked) {
  if (asked.program) {
    throw UsageError(
        "a given program has the length it has; its steady state is that of the "
        "schedule it came from (--schedule)");
  }
  const Layout layout = lay_out(asked);
  const Costs costs =
      stage_costs(asked.model, layout.plan.partition, layout.placement, asked.cluster);
  const bool synchronous = asked.weights
                               ? *asked.weights == WeightRule::flush
                               : asked.spec.scheduler->synchrony == Synchrony::synchronous;
  Rhythm rhythm = rhythm_of(layout.placement, static_cast<int>(asked.cluster.devices.size()),
                            synchronous, asked.microbatches);
  // A flushed step is its own round, and a few of them show it. A stream's rounds and its steps
  // must end together. Where messages queue for a link, their order may come back after several
  // rounds.
  const int round = rhythm.round;
  for (const int together : {1, 2, 3, 4, 6, 8}) {
    if (synchronous && together > 1) break;
    rhythm.round = round * together;
    const int steps = synchronous ? 8
                                  : (total_microbatches(rhythm) + asked.microbatches - 1) /
                                        asked.microbatches * rhythm.round;
    const Program program = complete(program_of(asked, layout, costs, steps), costs);
    const TaskGraph graph = compile(program, costs);
    const auto events =
        event_graph(graph, simulate(graph), steps * asked.microbatches, rhythm.round);
    if (!events) continue;
    Bound bound = bound_of_rounds(*events, graph, rhythm, asked.microbatches);
    if (synchronous) {
      Case one = asked;
      one.microbatches = 1;
      const TaskGraph way = compile(complete(program_of(one, layout, costs, 1), costs), costs);
      bound.path = makespan(sweep(way));
    }
    return bound;
  }
  return std::nullopt;
}

}  // namespace stageline
