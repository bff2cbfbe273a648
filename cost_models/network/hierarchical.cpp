// Hierarchical: a ring within each domain, and one between the domains for each of a domain's ranks
// (rails), which has its share of the bytes.
#include "cost_models/network/algorithm.hpp"
#include "sim/bus_bandwidth.hpp"

namespace stageline {
namespace {

bool hierarchical_handles(CollectiveKind kind, const GroupShape& shape) {
  if (shape.count() == 1 || shape.largest() == 1 || !shape.even()) return false;
  switch (kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_gather:
      return true;
    case CollectiveKind::all_to_all:
    case CollectiveKind::broadcast:
      return false;
  }
  return false;
}

std::vector<RankTransfer> transfers_of_hierarchy(CollectiveKind kind, const GroupShape& shape) {
  const int inside = shape.largest();
  const int domains = shape.count();
  std::vector<RankTransfer> transfers;
  for (int domain = 0; domain < domains; ++domain) {
    const auto ring = ring_transfers(domain * inside, inside, bus_factor(kind, inside));
    transfers.insert(transfers.end(), ring.begin(), ring.end());
  }
  const double share = bus_factor(kind, domains) / inside;
  for (int rail = 0; rail < inside; ++rail) {
    for (const RankTransfer& one : ring_transfers(0, domains, share)) {
      transfers.push_back({one.from * inside + rail, one.to * inside + rail, share});
    }
  }
  return transfers;
}

std::vector<CollectivePace> paces_of_hierarchy(CollectiveKind kind, Bytes /*bytes*/,
                                               const GroupShape& shape) {
  if (!shape.known()) {
    return {{rounds(ring_steps(kind, shape.largest()), shape.inside_latency) +
             rounds(ring_steps(kind, shape.count()), shape.across_latency)}};
  }
  std::vector<CollectivePace> paces;
  const NcclGroup group = nccl_group(shape);
  for (const Protocol protocol : all_protocols) {
    if (!nccl_uses(protocol, group)) continue;
    CollectivePace pace{from_microseconds(nccl_hierarchical_latency(kind, group, protocol)),
                        nccl_ring_efficiency(protocol)};
    if (protocol == Protocol::ll) pace.most = nccl_ll_most(group) / bus_factor(kind, group.ranks);
    paces.push_back(pace);
  }
  return paces;
}

}  // namespace

extern const Algorithm hierarchical_algorithm;
const Algorithm hierarchical_algorithm = {
    "hierarchical",
    "rings within the machines and, of each rank's share, between them; pipelined",
    "BlueConnect (Cho et al. 2019); NCCL's rings over all NICs of a machine",
    hierarchical_handles,
    transfers_of_hierarchy,
    paces_of_hierarchy};

}  // namespace stageline
