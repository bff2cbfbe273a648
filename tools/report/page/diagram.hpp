// The section "diagram": space-time diagrams of runs on one time axis, to zoom and to ask.
//
// data { devices, kinds, lanes, causes, categories: the words of the numbers below; runs[] { title,
// subtitle, devices, hosts, limits, bytes [[kind, stage, part, bytes], …], peaks, exact_curves } }.
// Blobs of run r, spans by device and lane, each lane in order of start ("v": varints, see
// varint.hpp; "d": each the difference to the one before; times in picoseconds):
//
//     r.lane_sizes     u32 by lane, devices × 5    r.idle_sizes  u32 by device
//     r.kind           u8                          r.idle_gap    v from the end of the one before
//     r.stage          u16                         r.idle_time   v
//     r.part           u8, 128: overlapped         r.idle_cause  u8
//     r.number         vd, in its lane             r.path_kind   u8: task, queue, latency
//     r.gap            v signed: from the end of   r.path_time   v, without gaps from 0
//                      the span before in its lane r.path_span   vd, of tasks
//     r.time           v                           r.curve_sizes u32 by device
//     r.version        vd, of all, or missing      r.curve_at    vd by device
//     r.need_sizes     v                           r.curve_bytes vd by device, point and category
//     r.need           v signed: less the span     (the last is the difference to the point before)
#pragma once

#include <string>
#include <vector>

#include "tools/report/page/page.hpp"
#include "tools/report/timeline/drawing.hpp"
#include "tools/study/outcome.hpp"

namespace stageline::report {

/// A run, and the result that it is of, which knows bytes and the critical path; null: measured.
struct DiagramRun {
  Drawing drawing;
  const Outcome* outcome = nullptr;
};

PageSection diagram_section(std::string title, const std::vector<DiagramRun>& runs);

}  // namespace stageline::report
