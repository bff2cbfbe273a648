// In the switch (NVLink SHARP): NVSwitch adds up what the ranks hold and sends each the result.
#include "cost_models/network/algorithm.hpp"

namespace stageline {
namespace {

bool nvls_handles(CollectiveKind kind, const GroupShape& shape) {
  return kind == CollectiveKind::all_reduce && shape.count() == 1 && shape.ranks() > 2 &&
         shape.known() && shape.inside == Tier::nvlink &&
         nccl_nvls_efficiency(shape.chip->generation) > 0;
}

// Each rank's port carries all n parts once, and the part that the rank itself reduces once more,
// in both directions: (n+1)/n. With NCCL's efficiency that is 1.02, 1.13, 1.21, 1.27 and 1.32 times
// the rate of a ring of 4 to 8 Hopper GPUs; measured: 1.00, 1.14, 1.19, 1.26 and 1.29
// (stas00/ml-engineering).
std::vector<RankTransfer> transfers_of_nvls(CollectiveKind /*kind*/, const GroupShape& shape) {
  const int ranks = shape.ranks();
  return ring_transfers(0, ranks, (ranks + 1.0) / ranks);
}

std::vector<CollectivePace> paces_of_nvls(CollectiveKind kind, Bytes /*bytes*/,
                                          const GroupShape& shape) {
  const double efficiency = nccl_nvls_efficiency(shape.chip->generation);
  std::vector<CollectivePace> paces = measured_paces("nvls", kind, shape, efficiency);
  if (!paces.empty()) return paces;
  return {{from_microseconds(nccl_nvls_latency(nccl_group(shape))), efficiency}};
}

}  // namespace

extern const Algorithm nvls_algorithm;
const Algorithm nvls_algorithm = {
    "nvls",
    "reduced and multiplied in NVSwitch; all-reduce within one NVLink domain, from Hopper on",
    "NVIDIA SHARP; NCCL",
    nvls_handles,
    transfers_of_nvls,
    paces_of_nvls};

}  // namespace stageline
