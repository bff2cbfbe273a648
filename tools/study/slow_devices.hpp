// Which simulated devices the slow items of a perturbation are about.
#pragma once

#include <string>
#include <vector>

#include "cost_models/perturbation/perturbation.hpp"
#include "tools/study/case.hpp"

namespace stageline {

/// Whether the device of the cluster, or its machine, has that name; with a '*' behind it, one that
/// begins so.
bool is_called(const std::string& pattern, const Cluster& cluster, const Device& device);

/// Sets Slow::devices of all items but "links". `devices`: names of the simulated ones. An item may
/// name one of these, a pipeline rank ("pp1", of all replicas), a device of the cluster or its
/// machine, or with a '*' behind it all whose names begin so: the ranks that have such a device.
/// None where no device is called so: then it is a link, or unknown.
Perturbation with_devices(Perturbation perturbation, const Case& asked,
                          const std::vector<std::string>& devices);

}  // namespace stageline
