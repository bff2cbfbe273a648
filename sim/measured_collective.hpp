// What a cluster's own collectives were measured to take.
#pragma once

#include <string>

#include "sim/base/units.hpp"
#include "sim/model.hpp"

namespace stageline {

/// The α–β law of one collective on a group of `ranks` devices in `machines` machines: S bytes take
/// alpha + f·S / bandwidth, where f is bus_factor(kind, ranks) of nccl-tests.
struct MeasuredCollective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  int ranks = 2;
  int machines = 1;
  Time alpha{};
  Bandwidth bandwidth;  // bus bandwidth of large sizes
  std::string source;

  friend bool operator==(const MeasuredCollective&, const MeasuredCollective&) = default;
};

}  // namespace stageline
