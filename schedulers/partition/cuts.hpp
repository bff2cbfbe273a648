// What partitioners that cut the topological order share.
#pragma once

#include <string>
#include <vector>

#include "schedulers/partition/partitioner.hpp"
#include "sim/rates.hpp"

namespace stageline {

/// Throws UsageError unless every one of request.stages stages can have a layer.
void check_stages(const PartitionRequest& request);

/// Throws UsageError unless request.replicas is empty or has at least 1 device for every stage, all
/// of the cluster's devices together.
void check_replicas(const PartitionRequest& request);

/// A plan with the request's replicas, or with one device a stage. `last_layers` as in
/// partition_from_cuts: of every stage but the last.
PartitionPlan plan_from_cuts(const PartitionRequest& request, const std::vector<int>& last_layers,
                             std::string reason);

/// The other way round, of a contiguous cut.
std::vector<int> last_layers_of(const Partition& partition);

/// Forward + backward of the slowest stage, divided by its rate, against the mean of all stages,
/// and the bytes of one micro-batch that move between stages: "largest stage 21.60 ms, 3.1 % over
/// the mean; 12.30 MB a micro-batch between stages". With replicas that time is what a stage needs
/// for each micro-batch while its replicas work side by side, "largest stage 21.60 ms a
/// micro-batch"; where devices hold several stages, "busiest device 21.60 ms in 8 stages".
std::string balance_of(const PartitionRequest& request, const Partition& partition);

/// Devices of stage s: where the request has replicas, so many in order (stage 0 has devices
/// 0..r0-1, and so on); else those where it is placed; else device s mod devices, as in a looped
/// placement. request.replicas as check_replicas wants them.
std::vector<int> devices_of_stage(const PartitionRequest& request, int stage);

/// How fast a stage's devices are, and whether F and B have one each and go on side by side.
struct StageSpeed {
  /// Rates of its devices, each different pair once. Devices that the request counts as replicas
  /// take turns and have so many times as long for a micro-batch: their rates are that many times.
  std::vector<Rates> rates{Rates{}};
  bool apart = false;
  friend bool operator==(const StageSpeed&, const StageSpeed&) = default;
};
StageSpeed speed_of_stage(const PartitionRequest& request, int stage);

/// The times of a layer's F, and of its B.
ClassTimes forward_times(const Layer& layer);
ClassTimes backward_times(const Layer& layer);

/// The time that a stage needs for each micro-batch: F + B, or where they are apart the larger of
/// them; of several devices that of the slowest.
Time stage_time(ClassTimes forward, ClassTimes backward, const StageSpeed& speed);

/// `time` on a device of that relative rate, rounded to whole picoseconds.
Time on_device(Time time, double rate);

/// "a,b,,c" → "a" "b" "" "c"; an empty text is one empty item.
std::vector<std::string> split_at_commas(const std::string& text);

}  // namespace stageline
