// Adds up the times of the layers that each device has.
#include "tools/lab/evidence/whole_device.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "sim/base/index.hpp"

namespace stageline::lab {

bool has_whole_device(const Model& model, const Partition& partition, const Placement& placement) {
  std::vector<Time> of_stage(placement.stage.size());
  Time all{};
  for (std::size_t layer = 0; layer < model.layers.size(); ++layer) {
    const Time time = model.layers[layer].forward + model.layers[layer].backward;
    nth(of_stage, partition.stage_of[layer]) += time;
    all += time;
  }
  std::map<int, Time> of_device;
  for (std::size_t s = 0; s < of_stage.size(); ++s) {
    std::set<int> devices;
    for (const Role role : {Role::forward, Role::input_grad, Role::weight_grad}) {
      const std::vector<int>& homes = placement.stage[s].homes(role);
      devices.insert(homes.begin(), homes.end());
    }
    for (const int device : devices) of_device[device] += of_stage[s];
  }
  return std::any_of(of_device.begin(), of_device.end(),
                     [&](const auto& device) { return device.second > all / 4 * 3; });
}

}  // namespace stageline::lab
