// Direct: every rank sends every other one its part (an all-to-all).
#include "cost_models/network/algorithm.hpp"

namespace stageline {
namespace {

bool direct_handles(CollectiveKind kind, const GroupShape& /*shape*/) {
  return kind == CollectiveKind::all_to_all;
}

std::vector<RankTransfer> transfers_to_all(CollectiveKind /*kind*/, const GroupShape& shape) {
  const int ranks = shape.ranks();
  std::vector<RankTransfer> transfers;
  for (int from = 0; from < ranks; ++from) {
    for (int to = 0; to < ranks; ++to) {
      if (to != from) transfers.push_back({from, to, 1.0 / ranks});
    }
  }
  return transfers;
}

std::vector<CollectivePace> paces_to_all(CollectiveKind /*kind*/, Bytes /*bytes*/,
                                         const GroupShape& shape) {
  if (shape.known()) return {{from_microseconds(nccl_direct_latency(nccl_group(shape)))}};
  const int inside = shape.largest() - 1;
  const int across = shape.ranks() - 1 - inside;
  return {{rounds(inside, shape.inside_latency) + rounds(across, shape.across_latency)}};
}

}  // namespace

extern const Algorithm direct_algorithm;
const Algorithm direct_algorithm = {"direct",
                                    "each rank sends every other one its part; all-to-all only",
                                    "NCCL's point-to-point messages",
                                    direct_handles,
                                    transfers_to_all,
                                    paces_to_all};

}  // namespace stageline
