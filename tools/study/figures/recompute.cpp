// Adds up the recompute ops of a timeline.
#include "tools/study/figures/recompute.hpp"

#include <algorithm>

#include "sim/base/index.hpp"

namespace stageline {
namespace {

Time recomputed(const Spans& lane) {
  Time sum{};
  bool in_pair = false;  // as the second op
  for (const Span& span : lane) {
    const bool overlaps = in_pair || span.op.overlapped != 0;
    in_pair = !in_pair && span.op.overlapped != 0;
    if (span.op.kind == OpKind::recompute && !overlaps) sum += span.end - span.start;
  }
  return sum;
}

}  // namespace

double recompute_fraction(const Outcome& outcome) {
  if (outcome.facts) return outcome.facts->recompute;
  if (outcome.step_time == Time{}) return 0;
  double seconds = 0;
  for (int device = 0; device < outcome.devices; ++device) {
    seconds += to_seconds(recomputed(outcome.timeline.lane(device, LaneKind::compute)));
  }
  return seconds / outcome.program.steps / (outcome.devices * to_seconds(outcome.step_time));
}

std::vector<std::int64_t> repeats_by_stage(const Outcome& outcome) {
  if (outcome.facts) return outcome.facts->repeats;
  std::vector<std::int64_t> repeats(
      as_size(std::max(outcome.plan.partition.stages, outcome.program.stages())));
  for (const std::vector<Op>& list : outcome.program.ops) {
    for (const Op op : list) {
      if (op.kind == OpKind::recompute) ++nth(repeats, op.stage);
    }
  }
  return repeats;
}

}  // namespace stageline
