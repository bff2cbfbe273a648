#include "tools/study/whatif/slow_devices.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

#include "cost_models/network/ranked_cluster.hpp"
#include "sim/base/index.hpp"
#include "sim/bus_bandwidth.hpp"
#include "sim/routes.hpp"

namespace stageline {
namespace {

// A name, or with a '*' behind it all that begin so.
bool names(const std::string& pattern, const std::string& name) {
  if (pattern.empty() || pattern.back() != '*') return pattern == name;
  return name.compare(0, pattern.size() - 1, pattern, 0, pattern.size() - 1) == 0;
}

constexpr std::string_view all_links = "links";

// The tier of the links that a word names.
std::optional<Tier> tier_called(const std::string& word) {
  if (word == "nic") return Tier::network;
  for (const Tier tier : {Tier::nvlink, Tier::pcie, Tier::network}) {
    if (word == name(tier)) return tier;
  }
  return std::nullopt;
}

void divide(Bandwidth& bandwidth, double factor) {
  if (bandwidth.is_unlimited()) return;
  const double slower = static_cast<double>(bandwidth.bytes_per_second) / factor;
  bandwidth.bytes_per_second = std::max<std::int64_t>(1, std::llround(slower));
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

bool names_links(const std::string& word) { return word == all_links || tier_called(word); }

bool slow_links(Cluster& cluster, const std::string& name, double factor) {
  bool any = false;
  if (names_links(name)) {
    const std::optional<Tier> tier = tier_called(name);
    for (Link& link : cluster.links) {
      if (tier && link.tier != *tier) continue;
      divide(link.bandwidth, factor);
      any = true;
    }
    for (MeasuredCollective& one : cluster.collectives) {
      const Tier of = one.machines == 1 ? Tier::nvlink : Tier::network;
      if (tier && of != *tier) continue;
      divide(one.bandwidth, factor);
      scale_times(one, 1 / factor);
      any = true;
    }
    return any;
  }
  const std::vector<std::string> resources = Routes(cluster).names();
  std::size_t resource = 0;
  for (Link& link : cluster.links) {
    const std::size_t ways = link.duplex == Duplex::half ? 1 : 2;
    for (std::size_t way = 0; way < ways; ++way) {
      if (resources[resource + way] != name) continue;
      divide(link.bandwidth, factor);
      any = true;
      break;
    }
    resource += ways;
  }
  return any;
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
    nth(members, d) = ranked->grid().members(d % pipelines, data);
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
