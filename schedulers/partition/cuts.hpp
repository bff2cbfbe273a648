// What partitioners that cut the topological order share.
#pragma once

#include <string>
#include <vector>

#include "schedulers/partition/partitioner.hpp"

namespace stageline {

/// Throws UsageError unless every one of request.stages stages can have a layer.
void check_stages(const PartitionRequest& request);

/// A plan with one device a stage. `last_layers` as in partition_from_cuts: of every stage but the
/// last.
PartitionPlan plan_from_cuts(const PartitionRequest& request, const std::vector<int>& last_layers,
                             std::string reason);

/// Forward + backward of the slowest stage against the mean, and the bytes of one micro-batch that
/// move between stages: "largest stage 21.60 ms, 3.1 % over the mean; 12.30 MB a micro-batch
/// between stages". Stage s is on device s mod devices; its time is divided by that device's rate.
std::string balance_of(const PartitionRequest& request, const Partition& partition);

/// Relative rate of the device of stage s, in a looped placement: device s mod devices.
double rate_of_stage(const Cluster& cluster, int stage);

/// `time` on a device of that relative rate, rounded to whole picoseconds.
Time on_device(Time time, double rate);

/// "a,b,,c" → "a" "b" "" "c"; an empty text is one empty item.
std::vector<std::string> split_at_commas(const std::string& text);

}  // namespace stageline
