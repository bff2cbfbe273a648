#include "tools/study/whatif/slow_devices.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "cost_models/network/ranked_cluster.hpp"
#include "sim/base/index.hpp"

namespace stageline {
namespace {

// A name, or with a '*' behind it all that begin so.
bool names(const std::string& pattern, const std::string& name) {
  if (pattern.empty() || pattern.back() != '*') return pattern == name;
  return name.compare(0, pattern.size() - 1, pattern, 0, pattern.size() - 1) == 0;
}

}  // namespace

bool is_called(const std::string& pattern, const Cluster& cluster, const Device& device) {
  return names(pattern, device.name) ||
         (device.host >= 0 && names(pattern, nth(cluster.hosts, device.host).name));
}

void slow_down(Device& device, double factor) {
  device.rate /= factor;
  device.memory_rate /= factor;
  device.op_overhead = Time{std::llround(static_cast<double>(device.op_overhead.count()) * factor)};
}

std::vector<std::vector<int>> members_of_devices(const Case& asked) {
  std::vector<std::vector<int>> members(asked.cluster.devices.size());
  const RankedCluster* const ranked = asked.ranked.get();
  for (int d = 0; d < static_cast<int>(members.size()); ++d) {
    if (ranked == nullptr) {
      nth(members, d) = {d};
      continue;
    }
    const int pipelines = ranked->grid().degrees().pipeline;
    const int data = ranked->replicas() > 1 ? d / pipelines : -1;
    for (int t = 0; t < ranked->grid().degrees().tensor; ++t) {
      for (const int member : ranked->grid().holders(d % pipelines, t, data)) {
        nth(members, d).push_back(member);
      }
    }
  }
  return members;
}

bool is_about(const std::string& name, const Case& asked, const std::vector<std::string>& devices,
              int device, int member) {
  if (names(name, nth(devices, device))) return true;
  const RankedCluster* const ranked = asked.ranked.get();
  const Cluster& cluster = ranked != nullptr ? ranked->devices() : asked.cluster;
  if (is_called(name, cluster, nth(cluster.devices, member))) return true;
  return ranked != nullptr &&
         names(name, fmt::format("pp{}", device % ranked->grid().degrees().pipeline));
}

Perturbation with_devices(Perturbation perturbation, const Case& asked,
                          const std::vector<std::string>& devices) {
  const std::vector<std::vector<int>> members = members_of_devices(asked);
  for (Slow& item : perturbation.slow) {
    if (item.name == "links") continue;
    item.devices.clear();
    for (int d = 0; d < static_cast<int>(devices.size()); ++d) {
      const bool is = std::any_of(nth(members, d).begin(), nth(members, d).end(), [&](int member) {
        return is_about(item.name, asked, devices, d, member);
      });
      if (is) item.devices.push_back(d);
    }
  }
  return perturbation;
}

}  // namespace stageline
