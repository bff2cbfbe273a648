#include "tools/study/figures/drop_spans.hpp"

#include <utility>

namespace stageline {
namespace {

// Unlike `held = {}`, which leaves a vector its memory.
template <class T>
void free_all(T& held) {
  held = T();
}

}  // namespace

void drop_spans(Outcome& outcome) {
  free_all(outcome.graph);
  free_all(outcome.times);
  free_all(outcome.timeline);
  free_all(outcome.metrics.idle);
  free_all(outcome.critical_path);
  for (StageVersions& stage : outcome.versions) {
    free_all(stage.events);
    free_all(stage.copies);
  }
  free_all(outcome.program.ops);
  if (outcome.period) free_all(outcome.period->cycle);
  Costs kept;
  kept.bytes_known = outcome.costs.bytes_known;
  kept.network.hosts = std::move(outcome.costs.network.hosts);
  outcome.costs = std::move(kept);
}

std::size_t held_spans(const Outcome& outcome) {
  std::size_t held = outcome.graph.op.capacity() + outcome.metrics.idle.capacity() +
                     outcome.critical_path.capacity();
  for (const Spans& lane : outcome.timeline.lanes) held += lane.size();
  for (const std::vector<Op>& list : outcome.program.ops) held += list.capacity();
  for (const StageVersions& stage : outcome.versions) {
    held += stage.events.capacity() + stage.copies.capacity();
  }
  return held + outcome.costs.stage.capacity();
}

}  // namespace stageline
