// What a cluster's own collectives were measured to take.
#pragma once

#include <string>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/model.hpp"

namespace stageline {

/// How long one size took.
struct MeasuredTime {
  Bytes bytes{};  // of the full tensor a rank
  Time time{};

  friend bool operator==(const MeasuredTime&, const MeasuredTime&) = default;
};

/// The α–β law of one collective on a group of `ranks` devices in `machines` machines: S bytes take
/// alpha + f·S / bandwidth, where f is bus_factor(kind, ranks) of nccl-tests. Where single
/// times are kept, each size takes what measured_pace() says instead.
struct MeasuredCollective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  int ranks = 2;
  int machines = 1;
  Time alpha{};
  Bandwidth bandwidth;  // bus bandwidth of large sizes
  std::string source;
  std::vector<MeasuredTime> times{};  // by ascending size, all above 0; empty: the law alone

  friend bool operator==(const MeasuredCollective&, const MeasuredCollective&) = default;
};

}  // namespace stageline
