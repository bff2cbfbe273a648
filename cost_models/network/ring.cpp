// Ring: every rank sends to the next one, 2(n−1) rounds for an all-reduce.
#include "cost_models/network/algorithm.hpp"
#include "sim/bus_bandwidth.hpp"

namespace stageline {
namespace {

bool ring_handles(CollectiveKind kind, const GroupShape& /*shape*/) {
  return kind != CollectiveKind::all_to_all;
}

std::vector<RankTransfer> transfers_of_ring(CollectiveKind kind, const GroupShape& shape) {
  const int ranks = shape.ranks();
  return ring_transfers(0, ranks, bus_factor(kind, ranks));
}

// The routes' latencies: those between domains as often as bytes of one rank cross a boundary.
Time latency_of_routes(CollectiveKind kind, const GroupShape& shape) {
  const int steps = ring_steps(kind, shape.ranks());
  const int across = shape.count() == 1 ? 0 : ring_steps(kind, shape.count());
  return rounds(steps - across, shape.inside_latency) + rounds(across, shape.across_latency);
}

std::vector<CollectivePace> paces_of_ring(CollectiveKind kind, Bytes bytes,
                                          const GroupShape& shape) {
  if (!shape.known()) return {{latency_of_routes(kind, shape)}};
  std::vector<CollectivePace> paces = measured_paces("ring", kind, shape, 1);
  if (!paces.empty()) return paces;
  const NcclGroup group = nccl_group(shape);
  for (const Protocol protocol : all_protocols) {
    if (!nccl_uses(protocol, group)) continue;
    double latency = nccl_ring_latency(kind, group, protocol);
    if (protocol == Protocol::simple) latency *= ring_plateau(kind, bytes, group);
    CollectivePace pace{from_microseconds(latency), nccl_ring_efficiency(protocol)};
    if (protocol == Protocol::ll) pace.most = nccl_ll_most(group) / bus_factor(kind, group.ranks);
    paces.push_back(pace);
  }
  return paces;
}

}  // namespace

extern const Algorithm ring_algorithm;
const Algorithm ring_algorithm = {
    "ring",
    "one ring through all ranks, which crosses each boundary of a machine once",
    "Patarasuk, Yuan 2009; NCCL",
    ring_handles,
    transfers_of_ring,
    paces_of_ring};

}  // namespace stageline
