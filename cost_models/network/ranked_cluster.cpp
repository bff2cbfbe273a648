// Makes pipeline ranks of devices, and the network between them.
#include "cost_models/network/ranked_cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cost_models/buckets.hpp"
#include "cost_models/state_bytes.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/checked.hpp"
#include "sim/op.hpp"
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

// Replicas that only share links unequally are simulated up to so many: a stage has at most
// max_parts replicas, of which a bidirectional schedule takes two a pipeline.
constexpr int most_uneven = max_parts / 2;

// Each of so many senders sends a part of the message.
void divide(Route& route, int senders) {
  for (double& load : route.load) load /= senders;
  route.bandwidth = side_by_side(route.bandwidth, senders);
}

}  // namespace

RankedCluster::RankedCluster(Cluster cluster, const Degrees& degrees, const std::string& algorithms,
                             const std::string& buckets, bool all)
    : shared_(std::make_shared<RankRoutes>(std::move(cluster), degrees)),
      cluster_(shared_->cluster()),
      grid_(shared_->grid()),
      routes_(shared_->routes()),
      collectives_(cluster_, routes_, algorithms),
      algorithms_(algorithms),
      buckets_(buckets),
      all_(all) {
  find_bucket_rule(buckets);
  const bool differ = all || replicas_differ();
  uneven_ = !differ && degrees.data > 1 && !cluster_.links.empty() && links_are_shared_unequally();
  if (differ || (uneven_ && degrees.data <= most_uneven)) replicas_ = degrees.data;
  make_ranks();
  make_network();
}

std::shared_ptr<RankedCluster> RankedCluster::on(Cluster cluster) const {
  return std::make_shared<RankedCluster>(std::move(cluster), grid_.degrees(), algorithms_, buckets_,
                                         all_);
}

PipelineRank RankedCluster::rank_of(int device) const {
  const int pipelines = grid_.degrees().pipeline;
  return {device % pipelines, replicas_ == 1 ? -1 : device / pipelines};
}

int RankedCluster::data_ranks() const {
  const Degrees& degrees = grid_.degrees();
  const int dense = copies() * degrees.context;
  return dense > 1 || degrees.data > 1 ? dense : ranks_that_hold(degrees, WeightKind::experts);
}

int RankedCluster::device_at(int pipeline, int data) const {
  return grid_.device({0, 0, data, pipeline});
}

bool RankedCluster::replicas_differ() {
  const Degrees& degrees = grid_.degrees();
  if (degrees.data == 1) return false;
  for (int p = 0; p < degrees.pipeline; ++p) {
    for (int c = 0; c < degrees.context; ++c) {
      for (int t = 0; t < degrees.tensor_at(p); ++t) {
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
    const auto there = [&](int d) { return way_on(shared_->between({p, d}, {next, d})); };
    const auto back = [&](int d) { return way_on(shared_->between({next, d}, {p, d})); };
    if (next != p && (differ(there) || differ(back))) return true;
    if (differ([&](int d) { return ways_to_host({p, d}); })) return true;
    for (const Dimension dimension : {Dimension::tensor, Dimension::context}) {
      if (differ([&](int d) { return ways_in(dimension, {p, d}); })) return true;
    }
  }
  return false;
}

bool RankedCluster::links_are_shared_unequally() {
  if (!shared_->messages_share_alike()) return true;
  for (int p = 0; p < grid_.degrees().pipeline; ++p) {
    for (const Dimension dimension : {Dimension::tensor, Dimension::context}) {
      if (!shared_->groups_share_alike(dimension, p)) return true;
    }
  }
  return false;
}

// Between neighbours of the rank's groups, both ways; where no link leads, none.
std::vector<RankedCluster::Way> RankedCluster::ways_in(Dimension dimension,
                                                       const PipelineRank& rank) {
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

std::vector<RankedCluster::Way> RankedCluster::ways_to_host(const PipelineRank& rank) {
  std::vector<Way> ways;
  for (const Route& route : shared_->to_host(rank)) ways.push_back(way_on(route));
  return ways;
}

void RankedCluster::make_ranks() {
  const Degrees& degrees = grid_.degrees();
  ranks_.name = cluster_.name;
  ranks_.source = cluster_.source;
  ranks_.kinds = cluster_.kinds;
  ranks_.pair_overlap = cluster_.pair_overlap;
  const bool each_is_one = grid_.devices() == degrees.pipeline;
  if (each_is_one) ranks_.interference = cluster_.interference;
  ranks_.handover = cluster_.handover;
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
      if (!each_is_one) {
        rank.name = replicas_ == 1 ? fmt::format("pp{}", p) : fmt::format("dp{}.pp{}", d, p);
      }
      std::optional<Bytes> host_memory;  // of a device: an equal share of its host's
      bool hosted = false;
      for (const int member : grid_.members(p, replicas_ == 1 ? -1 : d)) {
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
      rank.host = -1;
      if (hosted) {
        rank.host = static_cast<int>(ranks_.hosts.size());
        ranks_.hosts.push_back({fmt::format("host of {}", rank.name), host_memory, false});
      }
      ranks_.devices.push_back(std::move(rank));
    }
  }
}

// Routes between ranks are found when they are asked for: of the four million pairs of 2,048 ranks
// a pipeline uses four thousand.
void RankedCluster::make_network() {
  network_ = free_network(static_cast<int>(ranks_.devices.size()));
  if (!ranks_.hosts.empty()) network_.hosts.clear();
  for (const Host& host : ranks_.hosts) network_.hosts.push_back(host.name);
  std::vector<PipelineRank> ranks;
  for (int device = 0; device < network_.devices; ++device) {
    nth(network_.host, device) = std::max(nth(ranks_.devices, device).host, 0);
    ranks.push_back(rank_of(device));
  }
  if (cluster_.links.empty()) return;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    std::array<Route, 2> host = shared_->to_host(ranks[rank]);
    network_.to_host[rank] = std::move(host[0]);
    network_.from_host[rank] = std::move(host[1]);
  }
  folds_ = copies() > 1 && grid_.degrees().encoder.pipeline == 0;
  const RouteUses uses = folds_ ? shared_->uses_with_loads(ranks) : shared_->first_uses(ranks);
  numbers_ = folds_ ? ResourceNumbers(first_alike(uses, routes_.capacity()))
                    : ResourceNumbers(routes_.names().size());
  for (const int resource : uses.first) numbers_.number(resource);
  for (std::vector<Route>* const routes : {&network_.to_host, &network_.from_host}) {
    for (Route& route : *routes) numbers_.renumber(route);
  }
  // Networks may outlive this object.
  const auto found = [&, numbers = std::make_shared<ResourceNumbers>(numbers_)](bool scattered) {
    return std::make_shared<FoundRoutes>(
        [shared = shared_, ranks, numbers, scattered](int from, int to) {
          const PipelineRank here = nth(ranks, from);
          const PipelineRank there = nth(ranks, to);
          if (from == to || here.data != there.data) return Route{};
          const std::lock_guard lock(shared->access());
          Route route = shared->between(here, there);
          const int senders =
              shared->grid().degrees().tensor_at(std::min(here.pipeline, there.pipeline));
          if (scattered && senders > 1) divide(route, senders);
          numbers->renumber(route);
          return route;
        });
  };
  network_.found = found(false);
  scattered_ = found(true);
}

}  // namespace stageline
