// What ran when: the type that both the simulator and an executor return.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/block_allocator.hpp"
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

/// Those of one lane. A large timeline has one block of memory for all its lanes.
using Spans = std::vector<Span, BlockAllocator<Span>>;

/// Spans by lane, each lane in order of start. Every device has all five lanes, maybe empty.
/// In compute, send and copy lanes spans do not overlap (the two halves of an overlapped pair are
/// two spans with the same times); receives may, and where messages are batched sends of one batch.
struct Timeline {
  std::vector<std::string> devices;
  std::vector<Spans> lanes;  // devices × lane_kinds

  const Spans& lane(int device, LaneKind kind) const {
    return lanes[static_cast<std::size_t>(device) * lane_kinds + static_cast<std::size_t>(kind)];
  }
  friend bool operator==(const Timeline&, const Timeline&) = default;
};

/// Last end of all spans.
Time makespan(const Timeline& timeline);

}  // namespace stageline
