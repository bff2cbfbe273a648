#include "tools/study/slow_devices.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "cost_models/network/ranked_cluster.hpp"
#include "sim/index.hpp"

namespace stageline {
namespace {

// A name, or with a '*' behind it all that begin so.
bool names(const std::string& pattern, const std::string& name) {
  if (pattern.empty() || pattern.back() != '*') return pattern == name;
  return name.compare(0, pattern.size() - 1, pattern, 0, pattern.size() - 1) == 0;
}

bool names_any(const std::string& pattern, const Cluster& cluster,
               const std::vector<int>& devices) {
  return std::any_of(devices.begin(), devices.end(), [&](int number) {
    return is_called(pattern, cluster, nth(cluster.devices, number));
  });
}

// The simulated devices that an item is about: by their names, by those of pipeline ranks ("pp1" of
// all replicas), or by those of the GPUs that a rank has and of their machines.
std::vector<int> slow_devices(const std::string& name, const Case& asked,
                              const std::vector<std::string>& devices) {
  const RankedCluster* const ranked = asked.ranked.get();
  const int pipelines = ranked != nullptr ? ranked->grid().degrees().pipeline : 0;
  std::vector<int> found;
  for (int d = 0; d < static_cast<int>(devices.size()); ++d) {
    bool is = names(name, nth(devices, d));
    if (ranked == nullptr) {
      is = is || names_any(name, asked.cluster, {d});
    } else {
      const int pipeline = d % pipelines;
      const int data = ranked->replicas() > 1 ? d / pipelines : -1;
      is = is || names(name, fmt::format("pp{}", pipeline));
      for (int t = 0; t < ranked->grid().degrees().tensor && !is; ++t) {
        is = names_any(name, ranked->devices(), ranked->grid().holders(pipeline, t, data));
      }
    }
    if (is) found.push_back(d);
  }
  return found;
}

}  // namespace

bool is_called(const std::string& pattern, const Cluster& cluster, const Device& device) {
  return names(pattern, device.name) ||
         (device.host >= 0 && names(pattern, nth(cluster.hosts, device.host).name));
}

Perturbation with_devices(Perturbation perturbation, const Case& asked,
                          const std::vector<std::string>& devices) {
  for (Slow& item : perturbation.slow) {
    if (item.name != "links") item.devices = slow_devices(item.name, asked, devices);
  }
  return perturbation;
}

}  // namespace stageline
