// Parallel aggregated trees (PAT): in round r every rank sends to the one 2^r places on, what it
// has gathered so far; log2 n rounds.
#include <algorithm>

#include "cost_models/network/algorithm.hpp"

namespace stageline {
namespace {

// NCCL uses it by default where each node has one rank, for reduce-scatter and all-gather.
bool pat_handles(CollectiveKind kind, const GroupShape& shape) {
  if (!shape.known() || shape.count() == 1 || shape.largest() > 1) return false;
  switch (kind) {
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_gather:
      return true;
    case CollectiveKind::all_reduce:
    case CollectiveKind::all_to_all:
    case CollectiveKind::broadcast:
      return false;
  }
  return false;
}

std::vector<RankTransfer> transfers_of_pat(CollectiveKind /*kind*/, const GroupShape& shape) {
  const int ranks = shape.ranks();
  std::vector<RankTransfer> transfers;
  for (int far = 1; far < ranks; far *= 2) {
    const double share = static_cast<double>(std::min(far, ranks - far)) / ranks;
    for (int rank = 0; rank < ranks; ++rank) {
      transfers.push_back({rank, (rank + far) % ranks, share});
    }
  }
  return transfers;
}

std::vector<CollectivePace> paces_of_pat(CollectiveKind /*kind*/, Bytes /*bytes*/,
                                         const GroupShape& shape) {
  return {{from_microseconds(nccl_pat_latency(nccl_group(shape))), nccl_pat_efficiency}};
}

}  // namespace

extern const Algorithm pat_algorithm;
const Algorithm pat_algorithm = {
    "pat",
    "parallel aggregated trees; reduce-scatter and all-gather where each machine has one rank",
    "Jeaugey 2025, arXiv 2506.20252; NCCL from 2.23 on",
    pat_handles,
    transfers_of_pat,
    paces_of_pat};

}  // namespace stageline
