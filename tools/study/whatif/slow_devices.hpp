// Which simulated devices the slow items of a perturbation are about.
#pragma once

#include <string>
#include <vector>

#include "cost_models/perturbation/perturbation.hpp"
#include "sim/cluster.hpp"
#include "tools/study/case.hpp"

namespace stageline {

/// Whether the device of the cluster, or its machine, has that name; with a '*' behind it, one that
/// begins so.
bool is_called(const std::string& pattern, const Cluster& cluster, const Device& device);

/// A device on which compute takes `factor` times as long: both its rates and its overhead an op.
void slow_down(Device& device, double factor);

/// Whether the word names links by their kind: "links" all of them, "nvlink", "pcie", and "network"
/// or "nic" those of that tier.
bool names_links(const std::string& word);

/// Divides the bandwidth of these links, and of what was measured of collectives over them, by the
/// factor: links as names_links() takes them, or one that is called as a resource of Routes. A
/// latency stays. Returns whether there is any.
bool slow_links(Cluster& cluster, const std::string& name, double factor);

/// By simulated device, the devices of the cluster (with degrees, of RankedCluster::devices()) that
/// it is: itself, or those of the rank.
std::vector<std::vector<int>> members_of_devices(const Case& asked);

/// Whether the item of a perturbation is about that member of a simulated device: by the name of
/// either, of the machine, or of the pipeline rank. `devices`: names of the simulated ones.
bool is_about(const std::string& name, const Case& asked, const std::vector<std::string>& devices,
              int device, int member);

/// Sets Slow::devices of all items but "links". `devices`: names of the simulated ones. An item may
/// name one of these, a pipeline rank ("pp1", of all replicas), a device of the cluster or its
/// machine, or with a '*' behind it all whose names begin so: the ranks that have such a device.
/// None where no device is called so: then it is a link, or unknown.
Perturbation with_devices(Perturbation perturbation, const Case& asked,
                          const std::vector<std::string>& devices);

}  // namespace stageline
