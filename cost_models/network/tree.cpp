// Double binary tree: an all-reduce up and down two trees over the domains, each with half of the
// bytes, and along a chain within each domain.
#include <bit>

#include "cost_models/network/algorithm.hpp"
#include "sim/base/index.hpp"

namespace stageline {
namespace {

bool tree_handles(CollectiveKind kind, const GroupShape& /*shape*/) {
  return kind == CollectiveKind::all_reduce;
}

// The parent of a node in NCCL's binary tree (ncclGetBtree), whose leaves are the odd nodes; -1: it
// is the root, node 0.
int tree_parent(int node, int count) {
  int bit = 1;
  while (bit < count && (node & bit) == 0) bit *= 2;
  if (node == 0) return -1;
  const int up = (node ^ bit) | (bit * 2);
  return up >= count ? node ^ bit : up;
}

std::vector<RankTransfer> transfers_of_tree(CollectiveKind /*kind*/, const GroupShape& shape) {
  std::vector<RankTransfer> transfers;
  const auto both_ways = [&](int one, int other, double share) {
    transfers.push_back({one, other, share});
    transfers.push_back({other, one, share});
  };
  std::vector<int> head;
  int first = 0;
  for (const int ranks : shape.domains) {
    head.push_back(first);
    for (int rank = first + 1; rank < first + ranks; ++rank) both_ways(rank - 1, rank, 1);
    first += ranks;
  }
  const int count = shape.count();
  for (int node = 0; node < count; ++node) {
    const int parent = tree_parent(node, count);
    if (parent < 0) continue;
    both_ways(nth(head, node), nth(head, parent), 0.5);
    // The second tree is the first one moved by one node, so that the leaves of one are nodes with
    // children in the other.
    both_ways(nth(head, (node + 1) % count), nth(head, (parent + 1) % count), 0.5);
  }
  return transfers;
}

// 2((g−1) + log2 k) latencies.
Time latency_of_tree(const GroupShape& shape) {
  const auto levels =
      static_cast<std::int64_t>(std::bit_width(static_cast<unsigned>(shape.count() - 1)));
  return rounds(2 * (std::int64_t{shape.largest()} - 1), shape.inside_latency) +
         rounds(2 * levels, shape.across_latency);
}

std::vector<CollectivePace> paces_of_tree(CollectiveKind /*kind*/, Bytes bytes,
                                          const GroupShape& shape) {
  if (!shape.known()) return {{latency_of_tree(shape)}};
  std::vector<CollectivePace> paces;
  const NcclGroup group = nccl_group(shape);
  for (const Protocol protocol : all_protocols) {
    if (!nccl_uses(protocol, group)) continue;
    CollectivePace pace{from_microseconds(nccl_tree_latency(group, protocol)),
                        nccl_tree_efficiency(bytes, group, protocol)};
    if (protocol == Protocol::ll) {
      const double correction = pace.efficiency * 3.8 / 0.92;
      pace.most = nccl_ll_most(group) / 2 * correction;
    }
    paces.push_back(pace);
  }
  return paces;
}

}  // namespace

extern const Algorithm tree_algorithm;
const Algorithm tree_algorithm = {
    "tree",
    "two binary trees over the machines, chains within; all-reduce only",
    "Sanders, Speck, Träff 2009; NCCL",
    tree_handles,
    transfers_of_tree,
    paces_of_tree};

}  // namespace stageline
