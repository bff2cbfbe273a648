// Adds up the recompute ops of a timeline.
#include "tools/study/recompute.hpp"

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
  if (outcome.step_time == Time{}) return 0;
  double seconds = 0;
  for (int device = 0; device < outcome.devices; ++device) {
    seconds += to_seconds(recomputed(outcome.timeline.lane(device, LaneKind::compute)));
  }
  return seconds / outcome.program.steps / (outcome.devices * to_seconds(outcome.step_time));
}

}  // namespace stageline
