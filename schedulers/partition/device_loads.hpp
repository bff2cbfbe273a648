// Where devices hold several stages (loops, waves, V shapes, two directions), what counts is what a
// device has to do for a micro-batch in all of them.
#pragma once

#include <vector>

#include "schedulers/partition/partitioner.hpp"

namespace stageline {

/// Whether some device of request.placed holds more than one stage, and no stage has its roles
/// apart.
bool holds_several(const PartitionRequest& request);

/// By device, F + B of its stages for a micro-batch, over its rate: of a stage on r devices each
/// has one rth. `last_layers` as in partition_from_cuts.
std::vector<double> device_loads(const PartitionRequest& request,
                                 const std::vector<int>& last_layers);  // ps

/// The cut with its ends moved as long as that evens out the loads: until moving no run of
/// neighbouring ends by a layer lowers the sum of the loads' eighth powers, which follows the
/// largest. Not exact: with several stages a device the best cut is no longer a shortest path.
std::vector<int> even_out(const PartitionRequest& request, const std::vector<int>& last_layers);

}  // namespace stageline
