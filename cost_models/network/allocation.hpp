// Which devices of a cluster of racks a job gets, as schedulers of jobs give them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/cluster.hpp"
#include "sim/degrees.hpp"

namespace stageline {

/// What a job asks of the scheduler.
struct AllocationRequest {
  enum class Rule : std::uint8_t {
    segment,  // as many machines of each rack
    fill,     // the first devices: each rack is filled before the next one is begun
    named,    // `devices`
  };
  Rule rule = Rule::segment;
  std::vector<std::string> devices{};  // names, in the order of the ranks

  friend bool operator==(const AllocationRequest&, const AllocationRequest&) = default;
};

/// The machines of a rack that a job of so many machines gets of each: the greatest divisor of
/// `machines` that is at most `in_rack`, as `--segment` of Slurm is set for racks of 18 machines
/// (NVIDIA-NeMo/Megatron-Bridge, scripts/performance/utils/executors.py, 2026-11).
///
///     GPUs of GB200, four a machine   machines   of a rack      racks
///                              128         32           16          2
///                              256         64           16          4
///                              576        144           18          8
///
/// Throws UsageError where one of the two is below 1.
int machines_of_a_rack(int machines, int in_rack);

/// So many devices of the cluster, in the order of the ranks. Of a cluster without racks, and of a
/// job that one rack holds, the first ones, unless they are named.
///
/// By segments a job of whole machines gets equal shares of racks, the first machines of each:
/// those of machines_of_a_rack(), or the next smaller share, or full racks, with which no tensor-,
/// context- or expert-parallel group and no shard group is in several racks. Where the cluster has
/// too few racks for equal shares, it fills them, and Allocation::needed says how many it takes.
///
/// `degrees.pipeline` is set, unless there is nothing beside the pipeline. Throws UsageError where
/// the cluster has fewer devices, or a name is unknown or there twice, or there are fewer names.
Cluster allocated(Cluster cluster, int devices, const AllocationRequest& request,
                  const Degrees& degrees);

/// What a reader of an answer must know of it: where the job stands, and which groups are in
/// several racks, what that costs and what avoids it. Whole sentences without a full stop; none
/// where no devices are named and the cluster has no racks, or the job is in one.
std::vector<std::string> allocation_notes(const Cluster& cluster);

}  // namespace stageline
