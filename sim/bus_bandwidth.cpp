// The bus bandwidth of nccl-tests, both ways.
#include "sim/bus_bandwidth.hpp"

namespace stageline {

double bus_factor(CollectiveKind kind, int ranks) {
  const double share = (ranks - 1.0) / ranks;
  switch (kind) {
    case CollectiveKind::all_reduce:
      return 2 * share;
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_gather:
    case CollectiveKind::all_to_all:
      return share;
    case CollectiveKind::broadcast:
      return 1;
  }
  return 1;
}

double bus_bandwidth(CollectiveKind kind, int ranks, Bytes bytes, Time time) {
  return bus_factor(kind, ranks) * static_cast<double>(bytes.count) / to_seconds(time);
}

Time time_at_bus_bandwidth(CollectiveKind kind, int ranks, Bytes bytes, double bandwidth) {
  return from_seconds(bus_factor(kind, ranks) * static_cast<double>(bytes.count) / bandwidth);
}

std::optional<double> meeting_size(const MeasuredCollective& before,
                                   const MeasuredCollective& next) {
  const auto seconds_a_byte = [](const MeasuredCollective& line) {
    if (line.bandwidth.is_unlimited()) return 0.0;
    return bus_factor(line.kind, line.ranks) / static_cast<double>(line.bandwidth.bytes_per_second);
  };
  const double slope = seconds_a_byte(before) - seconds_a_byte(next);
  const double latency = to_seconds(next.alpha - before.alpha);
  if (slope == 0 || !(latency / slope > 0)) return std::nullopt;
  return latency / slope;
}

}  // namespace stageline
