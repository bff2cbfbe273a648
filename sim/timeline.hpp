// What ran when: the type that both the simulator and an executor return.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/op.hpp"
#include "sim/units.hpp"

namespace stageline {

/// [start, end)
struct Span {
  Op op;
  Time start{};
  Time end{};
  friend bool operator==(const Span&, const Span&) = default;
};

/// Spans by lane, each lane in order of start. Every device has all five lanes, maybe empty.
/// In compute, send and copy lanes spans do not overlap (the two halves of an overlapped pair are
/// two spans with the same times); receives may, and where messages are batched sends of one batch.
struct Timeline {
  std::vector<std::string> devices;
  std::vector<std::vector<Span>> lanes;  // devices × lane_kinds

  const std::vector<Span>& lane(int device, LaneKind kind) const {
    return lanes[static_cast<std::size_t>(device) * lane_kinds + static_cast<std::size_t>(kind)];
  }
  friend bool operator==(const Timeline&, const Timeline&) = default;
};

/// Last end of all spans.
Time makespan(const Timeline& timeline);

}  // namespace stageline
