// The op at which a device has its peak of memory.
#include <algorithm>
#include <array>
#include <iterator>

#include "sim/analysis/memory.hpp"

namespace stageline {
namespace {

// The first span that starts after a moment.
Spans::const_iterator behind(const Spans& spans, Time at) {
  return std::upper_bound(spans.begin(), spans.end(), at,
                          [](Time time, const Span& span) { return time < span.start; });
}

// The last span of a compute lane that has started; the first one of an overlapped pair.
std::optional<PeakOp> last_started(const Spans& compute, Time at) {
  const auto next = behind(compute, at);
  if (next == compute.begin()) return std::nullopt;
  const auto last = std::prev(next);
  PeakOp found;
  found.op = last->op;
  found.moment = last->end > at ? PeakOp::Moment::runs : PeakOp::Moment::has_ended;
  if (last != compute.begin() && std::prev(last)->op.overlapped) {
    found.op = std::prev(last)->op;
    found.other = last->op;
  }
  // An op that takes no time brings no memory.
  const bool idle = found.moment == PeakOp::Moment::has_ended;
  if (idle && (last->end != at || last->start == at)) return std::nullopt;
  return found;
}

// Whether a device holds more from the start of the op on. What a SEND or an OFFLOAD reads is there
// before.
bool brings_memory(OpKind kind) {
  return lane_of(kind) == LaneKind::receive || kind == OpKind::prefetch ||
         kind == OpKind::reduce_grad;
}

}  // namespace

std::optional<PeakOp> peak_op_of(const Timeline& timeline, int device, Time at) {
  const std::optional<PeakOp> own = last_started(timeline.lane(device, LaneKind::compute), at);
  if (own && own->moment == PeakOp::Moment::runs) return own;
  for (const LaneKind lane :
       {LaneKind::receive, LaneKind::copy_in, LaneKind::copy_out, LaneKind::send}) {
    const Spans& spans = timeline.lane(device, lane);
    const auto next = behind(spans, at);
    if (next == spans.begin()) continue;
    const Span& last = *std::prev(next);
    if (last.start != at || !brings_memory(last.op.kind)) continue;
    return PeakOp{last.op, std::nullopt, PeakOp::Moment::starts};
  }
  return own;
}

}  // namespace stageline
