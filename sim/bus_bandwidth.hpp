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

/// What a size takes: setup + bytes / rate.
struct MeasuredPace {
  double setup = 0;  // seconds
  double rate = 0;   // bytes a second of the full tensor a rank; 0: the size does not matter
};

/// By the single times of `measured`, of which there is at least one: what a measured size took,
/// and between two of them what lies on the straight line between their logarithms. Setup and rate
/// are those of the tangent, so that what shares a link slows down the part that moves alone; times
/// that fall are all setup, and those that grow faster than the size have none. Outside of the
/// sizes that were measured, what the nearest took above `alpha` grows with the size. bytes > 0.
MeasuredPace measured_pace(const MeasuredCollective& measured, Bytes bytes);

/// Single times where links carry `rate` times as much: what they are above the latency changes
/// with it. The law stays. rate > 0.
void scale_times(MeasuredCollective& measured, double rate);

}  // namespace stageline
