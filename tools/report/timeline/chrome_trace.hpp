// Writes a timeline as Chrome Trace Event JSON, which Perfetto and chrome://tracing open.
#pragma once

#include <string>

#include "tools/report/timeline/drawing.hpp"

namespace stageline::report {

/// `{"displayTimeUnit": "ns", "otherData": {...}, "traceEvents": [...]}`, one event per line, in
/// Google's "Trace Event Format". Times are microseconds, written from integer picoseconds, so that
/// ts × 10^6 is exactly the timeline's number. pid is the device, tid the lane
/// (LaneKind):
///   M  names and order of devices and lanes;
///   X  every span, name as print(op), args {stage, microbatch (update for U and REDUCE_GRAD),
///      kind}; spans that overlap, as receives and the two ops of an overlapped pair, get further
///      tids, from lane_kinds on, since viewers stack overlapping spans of one tid;
///   X  category "idle", on a tid of its own: every idle interval of a compute lane, args {cause,
///      before: the op that ends it};
///   s, f  a flow from every send to its receive, where both are in the timeline;
///   C  in bytes "memory" by kind, which chrome://tracing stacks and Perfetto draws one below the
///      other (the reserve, where there is one, at the bottom; communication buffers where the
///      device ever holds some); "stash" by what reads it; "total memory" without the reserve, and
///      "memory limit"; "weight versions" by stage; where the drawing has them.
/// An empty timeline gives a valid trace without spans.
std::string chrome_trace(const Drawing& drawing);

}  // namespace stageline::report
