// A timeline held against the reference, for tests only.
#pragma once

#include <map>
#include <string>

#include "sim/base/index.hpp"
#include "sim/engine.hpp"
#include "tests/schedules/reference.hpp"

namespace stageline::test {

/// The first span that is not when `when` says, in words; "" when all are. Receives follow their
/// sends by construction.
inline std::string difference(const Timeline& timeline, std::map<Op, When> when) {
  for (std::size_t lane = 0; lane < timeline.lanes.size(); ++lane) {
    if (lane % lane_kinds == as_size(LaneKind::receive)) continue;
    for (const Span& span : timeline.lanes[lane]) {
      const auto found = when.find(plain(span.op));
      if (found == when.end()) return print(span.op) + " is not in the reference";
      if (found->second.start != span.start || found->second.end != span.end) {
        return print(span.op) + " runs " + std::to_string(span.start.count()) + "-" +
               std::to_string(span.end.count()) + ", by the reference " +
               std::to_string(found->second.start.count()) + "-" +
               std::to_string(found->second.end.count());
      }
      when.erase(found);
    }
  }
  return when.empty() ? "" : print(when.begin()->first) + " is not in the timeline";
}

}  // namespace stageline::test
