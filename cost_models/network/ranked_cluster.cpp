// Makes pipeline ranks of devices, and the network between them.
#include "cost_models/network/ranked_cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cost_models/buckets.hpp"
#include "sim/errors.hpp"
#include "sim/index.hpp"
#include "sim/rates.hpp"

namespace stageline {
namespace {

// What must be equal on the same rank of two replicas.
struct Likeness {
  double rate = 0;
  double memory_rate = 0;
  std::optional<Bytes> memory;
  Bytes reserve{};
  Time overhead{};
  int kind = -1;
  friend bool operator==(const Likeness&, const Likeness&) = default;
};

Likeness likeness(const Device& device) {
  return {device.rate,    device.memory_rate, device.memory,
          device.reserve, device.op_overhead, device.kind};
}

// The bandwidth of a transfer that is alone on these resources.
Bandwidth alone_on(const Route& route, const std::vector<Bandwidth>& capacity) {
  double least = 0;
  bool limited = false;
  for (std::size_t i = 0; i < route.resources.size(); ++i) {
    const Bandwidth limit = nth(capacity, route.resources[i]);
    if (limit.is_unlimited()) continue;
    const double load = route.load.empty() ? 1 : route.load[i];
    const double share = static_cast<double>(limit.bytes_per_second) / load;
    if (!limited || share < least) least = share;
    limited = true;
  }
  if (!limited) return Bandwidth::unlimited();
  // Rounded down: a transfer that is alone stays at its bound.
  return {std::max<std::int64_t>(1, static_cast<std::int64_t>(least))};
}

Cluster first_of(Cluster cluster, const RankGrid& grid) {
  const int have = static_cast<int>(cluster.devices.size());
  const int want = grid.devices();
  if (have < want) {
    const Degrees& degrees = grid.degrees();
    throw UsageError(fmt::format(
        "--tp {} × --cp {} × --dp {} × --pp {} are {} devices, but \"{}\" has {}; give smaller "
        "degrees, or a cluster of {}",
        degrees.tensor, degrees.context, degrees.data, degrees.pipeline, want, cluster.name, have,
        want));
  }
  return first_devices(std::move(cluster), want);
}

}  // namespace

RankedCluster::RankedCluster(Cluster cluster, const Degrees& degrees, const std::string& algorithms,
                             const std::string& buckets, bool all)
    : cluster_(first_of(std::move(cluster), RankGrid(degrees))),
      grid_(degrees),
      routes_(cluster_),
      collectives_(cluster_, routes_, algorithms),
      algorithms_(algorithms),
      buckets_(buckets),
      all_(all) {
  find_bucket_rule(buckets);
  if (all || replicas_differ()) replicas_ = degrees.data;
  make_ranks();
  make_network();
}

std::shared_ptr<RankedCluster> RankedCluster::on(Cluster cluster) const {
  return std::make_shared<RankedCluster>(std::move(cluster), grid_.degrees(), algorithms_, buckets_,
                                         all_);
}

RankedCluster::Rank RankedCluster::rank_of(int device) const {
  const int pipelines = grid_.degrees().pipeline;
  return {device % pipelines, replicas_ == 1 ? -1 : device / pipelines};
}

int RankedCluster::device_at(int pipeline, int data) const {
  return grid_.device({0, 0, data, pipeline});
}

bool RankedCluster::replicas_differ() {
  const Degrees& degrees = grid_.degrees();
  if (degrees.data == 1) return false;
  for (int p = 0; p < degrees.pipeline; ++p) {
    for (int c = 0; c < degrees.context; ++c) {
      for (int t = 0; t < degrees.tensor; ++t) {
        const Device& first = nth(cluster_.devices, grid_.device({t, c, 0, p}));
        for (int d = 1; d < degrees.data; ++d) {
          const Device& other = nth(cluster_.devices, grid_.device({t, c, d, p}));
          if (likeness(first) != likeness(other)) return true;
        }
      }
    }
  }
  return !cluster_.links.empty() && routes_differ();
}

// Whether a route between neighbours of one replica is wider or shorter than that of another one:
// of its pipeline ranks around the ring, of tensor- and context-parallel groups, or to the host.
// Routes of ranks of several devices are those of all of them at once.
bool RankedCluster::routes_differ() {
  const Degrees& degrees = grid_.degrees();
  const auto differ = [&](const auto& ways_of) {
    const auto first = ways_of(0);
    for (int d = 1; d < degrees.data; ++d) {
      if (ways_of(d) != first) return true;
    }
    return false;
  };
  for (int p = 0; p < degrees.pipeline; ++p) {
    const int next = (p + 1) % degrees.pipeline;
    const auto there = [&](int d) { return way_on(merged(between_ranks(p, next, d))); };
    const auto back = [&](int d) { return way_on(merged(between_ranks(next, p, d))); };
    if (next != p && (differ(there) || differ(back))) return true;
    if (differ([&](int d) { return ways_to_host({p, d}); })) return true;
    for (const Dimension dimension : {Dimension::tensor, Dimension::context}) {
      if (differ([&](int d) { return ways_in(dimension, {p, d}); })) return true;
    }
  }
  return false;
}

std::vector<const Route*> RankedCluster::between_ranks(int from, int to, int data) {
  std::vector<const Route*> pairs;
  for (int t = 0; t < grid_.degrees().tensor; ++t) {
    const std::vector<int> senders = grid_.holders(from, t, data);
    const std::vector<int> receivers = grid_.holders(to, t, data);
    for (std::size_t i = 0; i < senders.size(); ++i) {
      pairs.push_back(&routes_.between(senders[i], receivers[i]));
    }
  }
  return pairs;
}

// Between neighbours of the rank's groups, both ways; where no link leads, none.
std::vector<RankedCluster::Way> RankedCluster::ways_in(Dimension dimension, const Rank& rank) {
  std::vector<Way> ways;
  for (const std::vector<int>& group : grid_.groups(dimension, rank.pipeline, rank.data)) {
    for (std::size_t i = 0; group.size() > 1 && i < group.size(); ++i) {
      const int next = group[(i + 1) % group.size()];
      for (const auto& [from, to] : {std::pair(group[i], next), std::pair(next, group[i])}) {
        try {
          ways.push_back(way_on(routes_.between(from, to)));
        } catch (const UsageError&) {
          ways.emplace_back();
        }
      }
    }
  }
  return ways;
}

std::vector<RankedCluster::Way> RankedCluster::ways_to_host(const Rank& rank) {
  std::vector<Way> ways;
  for (const Route& route : to_host(rank)) ways.push_back(way_on(route));
  return ways;
}

// There and back, of all devices of the rank together.
std::array<Route, 2> RankedCluster::to_host(const Rank& rank) {
  std::vector<Routes::ToHost> host;
  for (int t = 0; t < grid_.degrees().tensor; ++t) {
    for (const int device : grid_.holders(rank.pipeline, t, rank.data)) {
      host.push_back(routes_.host_routes(device));
    }
  }
  std::vector<const Route*> there;
  std::vector<const Route*> back;
  for (const Routes::ToHost& routes : host) {
    there.push_back(&routes.there);
    back.push_back(&routes.back);
  }
  return {merged(there), merged(back)};
}

void RankedCluster::make_ranks() {
  const Degrees& degrees = grid_.degrees();
  ranks_.name = cluster_.name;
  ranks_.source = cluster_.source;
  ranks_.kinds = cluster_.kinds;
  ranks_.pair_overlap = cluster_.pair_overlap;
  if (degrees.width() == 1) ranks_.interference = cluster_.interference;
  ranks_.overlap_slowdown = cluster_.overlap_slowdown;
  ranks_.message_slowdown = cluster_.message_slowdown;
  ranks_.transfer_slowdown = cluster_.transfer_slowdown;
  std::vector<int> on_host(cluster_.hosts.size());  // devices of the run
  for (const Device& device : cluster_.devices) {
    if (device.host >= 0) ++nth(on_host, device.host);
  }
  for (int d = 0; d < replicas_; ++d) {
    for (int p = 0; p < degrees.pipeline; ++p) {
      Device rank = nth(cluster_.devices, device_at(p, d));
      if (degrees.width() > 1) {
        rank.name = replicas_ == 1 ? fmt::format("pp{}", p) : fmt::format("dp{}.pp{}", d, p);
      }
      std::optional<Bytes> host_memory;  // of a device: an equal share of its host's
      bool hosted = false;
      for (int t = 0; t < degrees.tensor; ++t) {
        for (const int member : grid_.holders(p, t, replicas_ == 1 ? -1 : d)) {
          const Device& device = nth(cluster_.devices, member);
          const Rates slowest = rates_of(rank);
          const Rates rates = rates_of(device);
          rank.rate = std::min(slowest.matrix, rates.matrix);
          rank.memory_rate = std::min(slowest.memory, rates.memory);
          rank.op_overhead = std::max(rank.op_overhead, device.op_overhead);
          if (!device.memory) rank.memory.reset();
          if (rank.memory && *usable_memory(device) < *usable_memory(rank)) {
            rank.memory = device.memory;
            rank.reserve = device.reserve;
          }
          if (device.host < 0) continue;
          hosted = true;
          const std::optional<Bytes>& memory = nth(cluster_.hosts, device.host).memory;
          if (!memory) continue;
          const Bytes share{memory->count / nth(on_host, device.host)};
          host_memory = host_memory ? std::min(*host_memory, share) : share;
        }
      }
      rank.host = -1;
      if (hosted) {
        rank.host = static_cast<int>(ranks_.hosts.size());
        ranks_.hosts.push_back({fmt::format("host of {}", rank.name), host_memory, false});
      }
      ranks_.devices.push_back(std::move(rank));
    }
  }
}

Route RankedCluster::merged(const std::vector<const Route*>& routes) const {
  Route all;
  std::map<int, double> load;
  for (const Route* const route : routes) {
    all.latency = std::max(all.latency, route->latency);
    all.tier = std::max(all.tier, route->tier);
    for (std::size_t i = 0; i < route->resources.size(); ++i) {
      load[route->resources[i]] += route->load.empty() ? 1 : route->load[i];
    }
  }
  for (const auto& [resource, bytes] : load) {
    all.resources.push_back(resource);
    all.load.push_back(bytes);
  }
  all.bandwidth = alone_on(all, routes_.capacity());
  return all;
}

void RankedCluster::make_network() {
  const auto ranks = ranks_.devices.size();
  network_.devices = static_cast<int>(ranks);
  network_.routes.resize(ranks * ranks);
  network_.to_host.resize(ranks);
  network_.from_host.resize(ranks);
  for (const Device& rank : ranks_.devices) network_.host.push_back(std::max(rank.host, 0));
  for (const Host& host : ranks_.hosts) network_.hosts.push_back(host.name);
  if (network_.hosts.empty()) network_.hosts.emplace_back("host");
  network_.resources = routes_.names();
  network_.capacity = routes_.capacity();
  if (cluster_.links.empty()) return;
  for (int from = 0; from < network_.devices; ++from) {
    const Rank here = rank_of(from);
    std::array<Route, 2> host = to_host(here);
    nth(network_.to_host, from) = std::move(host[0]);
    nth(network_.from_host, from) = std::move(host[1]);
    for (int to = 0; to < network_.devices; ++to) {
      const Rank other = rank_of(to);
      if (to == from || other.data != here.data) continue;
      network_.routes[as_size(from) * ranks + as_size(to)] =
          merged(between_ranks(here.pipeline, other.pipeline, here.data));
    }
  }
}

}  // namespace stageline
