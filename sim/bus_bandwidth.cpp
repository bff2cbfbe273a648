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

}  // namespace stageline
