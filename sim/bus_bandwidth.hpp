// The bus bandwidth of nccl-tests: a rate that does not depend on the number of ranks.
#pragma once

#include <optional>

#include "sim/base/units.hpp"
#include "sim/measured_collective.hpp"
#include "sim/model.hpp"

namespace stageline {

/// Bus bandwidth over algorithm bandwidth (bytes over time): 2(n−1)/n of an all-reduce, (n−1)/n of
/// a reduce-scatter, all-gather and all-to-all, 1 of a broadcast. Bytes are those of the full
/// tensor a rank. ranks >= 2. Source: NVIDIA/nccl-tests, doc/PERFORMANCE.md.
double bus_factor(CollectiveKind kind, int ranks);

/// In bytes a second. time > 0.
double bus_bandwidth(CollectiveKind kind, int ranks, Bytes bytes, Time time);

/// The time of that bus bandwidth, in bytes a second. Throws as from_seconds.
Time time_at_bus_bandwidth(CollectiveKind kind, int ranks, Bytes bytes, double bandwidth);

/// Several laws of one collective and group are lines, each up to the size where it and the next
/// take the same time. That size, in bytes and above 0; empty where there is none.
std::optional<double> meeting_size(const MeasuredCollective& before,
                                   const MeasuredCollective& next);

}  // namespace stageline
