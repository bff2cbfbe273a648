// What ran when: the type that both the simulator and an executor return.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/base/block_allocator.hpp"
#include "sim/base/units.hpp"
#include "sim/op.hpp"

namespace stageline {

/// An op and the time it takes: [start, end).
struct Span {
  Op op;
  Time start{};
  Time end{};
  friend bool operator==(const Span&, const Span&) = default;
};

/// The spans of one lane. All lanes of a simulated timeline share one block of memory.
using Spans = std::vector<Span, BlockAllocator<Span>>;

/// Spans by lane, each lane in order of start. Every device has all five lanes; a lane may be
/// empty. Spans of a compute, send or copy lane do not overlap (the two ops of an overlapped pair
/// are two spans with the same times). Receives may overlap, and so may the sends of one batch.
struct Timeline {
  std::vector<std::string> devices;
  std::vector<Spans> lanes;  // devices × lane_kinds

  const Spans& lane(int device, LaneKind kind) const {
    return lanes[static_cast<std::size_t>(device) * lane_kinds + static_cast<std::size_t>(kind)];
  }
  friend bool operator==(const Timeline&, const Timeline&) = default;
};

/// The last end of all spans; 0 if there are none.
Time makespan(const Timeline& timeline);

}  // namespace stageline
