// The balanced cut, its ends then moved until the devices' sums are even: for schedules that give a
// device several stages. Whether it pays depends on the schedule: a V or a wave gains, a loop whose
// stages take turns wants equal stages more.
#include "schedulers/partition/cuts.hpp"
#include "schedulers/partition/device_loads.hpp"

namespace stageline::by_device_partitioner {
namespace {

PartitionPlan plan(const PartitionRequest& request) {
  PartitionPlan plan = partition("balanced", request);
  if (!holds_several(request)) return plan;
  const std::vector<int> cuts = even_out(request, last_layers_of(plan.partition));
  plan = plan_from_cuts(request, cuts, "");
  plan.reason = balance_of(request, plan.partition);
  return plan;
}

}  // namespace

extern const Partitioner entry = {
    "by_device", "balanced, then even sums for devices with several stages; try both",
    "local search from the balanced cut, not exact", "", plan};

}  // namespace stageline::by_device_partitioner
