// The spans of a timeline in JSON, in the two forms that our files have:
//
//     named    {"device": "gpu0", "lane": "compute", "op": "0F3", "start_ps": 0, "end_ps": 5}
//              and "overlapped": true where the op and the next span of its lane are one
//     packed   [lane, "0F3", start, end], lanes counted through all devices;
//              "0F3;" where overlapped
//
// Times are in picoseconds.
#pragma once

#include <string>
#include <vector>

#include "sim/timeline.hpp"
#include "traces/json/tree.hpp"

namespace stageline {

/// Read the spans in `list` into the lanes of `timeline`, which has its devices and no lanes yet.
/// Throw TraceError, with the JSON pointer, for a device, lane or op that does not exist, a time
/// outside 0 to `longest`, and a span that ends before it starts.
///
/// Named spans may come in any order, and are sorted by start.
void read_named_spans(const JsonNode& list, Time longest, Timeline& timeline);
/// Packed spans must be in the order of start within each lane.
void read_packed_spans(const JsonNode& list, Time longest, Timeline& timeline);

/// Each span in the packed form.
std::vector<std::string> packed_spans(const Timeline& timeline);

/// All spans in the named form, as a list of the JSON library's type.
template <class Json>
Json named_spans(const Timeline& timeline) {
  Json spans = Json::array();
  for (std::size_t lane = 0; lane < timeline.lanes.size(); ++lane) {
    for (const Span& span : timeline.lanes[lane]) {
      Json one{{"device", timeline.devices[lane / lane_kinds]},
               {"lane", name(static_cast<LaneKind>(lane % lane_kinds))},
               {"op", print(span.op)},
               {"start_ps", span.start.count()},
               {"end_ps", span.end.count()}};
      if (span.op.overlapped) one["overlapped"] = true;
      spans.push_back(std::move(one));
    }
  }
  return spans;
}

}  // namespace stageline
