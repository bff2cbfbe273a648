// Merges the routes of the devices of a rank.
#include "cost_models/network/rank_routes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "cost_models/network/alike_links.hpp"
#include "cost_models/network/collectives.hpp"
#include "sim/base/bits.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"

namespace stageline {
namespace {

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

// Routes of devices that send at once. `each`: bytes on the way of one for a byte of the message.
class Merge {
 public:
  void add(const Route& route, double each) {
    all_.latency = std::max(all_.latency, route.latency);
    all_.tier = std::max(all_.tier, route.tier);
    for (std::size_t i = 0; i < route.resources.size(); ++i) {
      loads_.emplace_back(route.resources[i], each * (route.load.empty() ? 1 : route.load[i]));
    }
  }

  // Over the resources in the order of their numbers.
  Route route(const std::vector<Bandwidth>& capacity) {
    std::stable_sort(loads_.begin(), loads_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [resource, bytes] : loads_) {
      if (!all_.resources.empty() && all_.resources.back() == resource) {
        all_.load.back() += bytes;
        continue;
      }
      all_.resources.push_back(resource);
      all_.load.push_back(bytes);
    }
    all_.bandwidth = alone_on(all_, capacity);
    return std::move(all_);
  }

 private:
  Route all_;
  std::vector<std::pair<int, double>> loads_;
};

// What replicas ask of links, one replica behind the other.
class LinkUses {
 public:
  explicit LinkUses(std::size_t resources) : now_(resources), asked_(resources) {}

  // Bytes on each of the links, on a hop of the replica.
  void add(const std::vector<int>& resources, int hop, double load) {
    const std::uint64_t use =
        mixed(mixed(static_cast<std::uint64_t>(hop)) + same_bits<std::uint64_t>(load));
    for (const int resource : resources) {
      std::uint64_t& uses = nth(now_, resource);
      if (uses == 0) taken_.push_back(resource);
      uses += use;
    }
  }

  void end_replica() {
    begin_.push_back(uses_.size());
    for (const int resource : taken_) {
      const std::uint64_t uses = std::exchange(nth(now_, resource), 0);
      uses_.emplace_back(resource, uses);
      nth(asked_, resource) += mixed(uses);
    }
    taken_.clear();
  }

  // Two links are alike where as many replicas use them in the same way, and two replicas are where
  // they use links alike on every hop.
  bool alike(const std::vector<Bandwidth>& capacity) const {
    std::optional<std::uint64_t> first;
    for (std::size_t replica = 0; replica < begin_.size(); ++replica) {
      const std::size_t end = replica + 1 < begin_.size() ? begin_[replica + 1] : uses_.size();
      std::uint64_t links = 0;
      for (std::size_t i = begin_[replica]; i < end; ++i) {
        const auto [resource, uses] = uses_[i];
        const Bandwidth limit = nth(capacity, resource);
        if (limit.is_unlimited()) continue;
        const auto rate = static_cast<std::uint64_t>(limit.bytes_per_second);
        links += mixed(mixed(mixed(rate) + nth(asked_, resource)) + uses);
      }
      if (first.value_or(links) != links) return false;
      first = links;
    }
    return true;
  }

 private:
  std::vector<std::uint64_t> now_;    // by resource, of this replica
  std::vector<int> taken_;            // by this replica
  std::vector<std::uint64_t> asked_;  // by resource, of all replicas
  std::vector<std::size_t> begin_;    // by replica, into uses_
  std::vector<std::pair<int, std::uint64_t>> uses_;
};

Cluster first_of(Cluster cluster, const RankGrid& grid) {
  const int have = static_cast<int>(cluster.devices.size());
  const int want = grid.devices();
  if (have < want) {
    const Degrees& degrees = grid.degrees();
    const EncoderDegrees& encoder = degrees.encoder;
    if (encoder.pipeline > 0) {
      throw UsageError(fmt::format(
          "--dp {} × (--encoder-tp {} × --encoder-pp {} + --tp {} × {} of --pp {}) are {} devices, "
          "but \"{}\" has {}; give smaller degrees, or a cluster of {}",
          degrees.data, degrees.tensor_of_encoder(), encoder.pipeline, degrees.tensor,
          degrees.pipeline - encoder.pipeline, degrees.pipeline, want, cluster.name, have, want));
    }
    throw UsageError(fmt::format(
        "--tp {} × --cp {} × --dp {} × --pp {} are {} devices, but \"{}\" has {}; give smaller "
        "degrees, or a cluster of {}",
        degrees.tensor, degrees.context, degrees.data, degrees.pipeline, want, cluster.name, have,
        want));
  }
  return first_devices(std::move(cluster), want);
}

// The lengths of the runs of neighbours that `together` says are one.
template <class Together>
std::set<int> run_lengths(std::vector<int> devices, const Together& together) {
  std::sort(devices.begin(), devices.end());
  std::set<int> lengths;
  int length = 0;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    ++length;
    if (i + 1 < devices.size() && together(devices[i], devices[i + 1])) continue;
    lengths.insert(length);
    length = 0;
  }
  return lengths;
}

// The ranks of a shard group that is a machine, or what NVLink joins.
int ranks_in_span(const RankGrid& grid, const Cluster& cluster, Routes& routes) {
  const Degrees& degrees = grid.degrees();
  const bool machine = degrees.shard_group.span == ShardSpan::machine;
  const bool known = machine
                         ? std::all_of(cluster.devices.begin(), cluster.devices.end(),
                                       [](const Device& device) { return device.host >= 0; })
                         : std::any_of(cluster.links.begin(), cluster.links.end(),
                                       [](const Link& link) { return link.tier == Tier::nvlink; });
  if (!known) {
    throw UsageError(
        machine ? fmt::format("--shard-group machine: \"{}\" does not say which machines its "
                              "devices are in; give a number of ranks",
                              cluster.name)
                : fmt::format("--shard-group domain: no NVLink joins the devices of \"{}\"; take "
                              "machine, or give a number of ranks",
                              cluster.name));
  }
  const auto together = [&](int one, int other) {
    if (!machine) return same_domain(cluster, routes, one, other);
    return nth(cluster.devices, one).host == nth(cluster.devices, other).host;
  };
  std::set<int> lengths;
  for (int p = 0; p < degrees.pipeline; ++p) {
    for (int t = 0; t < degrees.tensor_at(p); ++t) {
      lengths.merge(run_lengths(grid.holders(p, t), together));
    }
  }
  if (lengths.size() > 1) {
    const int holders = degrees.data * degrees.context;
    throw UsageError(fmt::format(
        "--shard-group {0}: one {0} has {1} and another {2} of the {3} ranks that hold the same "
        "weights, and groups are equal; give a divisor of {3}",
        machine ? "machine" : "domain", *lengths.begin(), *lengths.rbegin(), holders));
  }
  return *lengths.begin();
}

bool is_to_be_counted(const Degrees& degrees) {
  const ShardSpan span = degrees.shard_group.span;
  return degrees.zero != Zero::none && (span == ShardSpan::machine || span == ShardSpan::domain);
}

}  // namespace

RankRoutes::RankRoutes(Cluster cluster, const Degrees& degrees)
    : cluster_(first_of(std::move(cluster), RankGrid(degrees))), grid_(degrees), routes_(cluster_) {
  if (!is_to_be_counted(degrees)) return;
  Degrees counted = degrees;
  counted.shard_group = {ShardSpan::ranks, ranks_in_span(grid_, cluster_, routes_)};
  grid_ = RankGrid(counted);
}

// Counterparts of equal ranks are at the same position.
std::vector<int> RankRoutes::members(const PipelineRank& rank) const {
  return grid_.members(rank.pipeline, rank.data);
}

RankRoutes::Counterparts RankRoutes::counterparts(const PipelineRank& from,
                                                  const PipelineRank& to) const {
  const Degrees& degrees = grid_.degrees();
  const int of_from = degrees.tensor_at(from.pipeline);
  const int of_to = degrees.tensor_at(to.pipeline);
  if (of_from == of_to) return {members(from), members(to)};
  const int pieces = std::lcm(of_from, of_to);
  Counterparts found;
  for (int piece = 0; piece < pieces; ++piece) {
    const auto add = [&](std::vector<int>& all, const PipelineRank& rank, int tensor) {
      const std::vector<int> part =
          grid_.holders(rank.pipeline, piece * tensor / pieces, rank.data);
      all.insert(all.end(), part.begin(), part.end());
    };
    add(found.senders, from, of_from);
    add(found.receivers, to, of_to);
  }
  found.load = static_cast<double>(degrees.tensor_of_encoder()) / pieces;
  return found;
}

Route RankRoutes::between(const PipelineRank& from, const PipelineRank& to) {
  const auto [senders, receivers, load] = counterparts(from, to);
  Merge pairs;
  for (std::size_t i = 0; i < senders.size(); ++i) {
    pairs.add(routes_.between(senders[i], receivers[i]), load);
  }
  return pairs.route(routes_.capacity());
}

std::array<Route, 2> RankRoutes::to_host(const PipelineRank& rank) {
  Merge there;
  Merge back;
  for (const int device : members(rank)) {
    const Routes::ToHost host = routes_.host_routes(device);
    there.add(host.there, 1);
    back.add(host.back, 1);
  }
  return {there.route(routes_.capacity()), back.route(routes_.capacity())};
}

bool RankRoutes::messages_share_alike() {
  const Degrees& degrees = grid_.degrees();
  LinkUses uses(routes_.names().size());
  std::vector<int> taken;
  const auto add = [&](int hop, const PipelineRank& from, const PipelineRank& to) {
    taken.clear();
    const auto [senders, receivers, load] = counterparts(from, to);
    for (std::size_t i = 0; i < senders.size(); ++i) {
      routes_.append_resources(senders[i], receivers[i], taken);
    }
    uses.add(taken, hop, load);
  };
  for (int d = 0; d < degrees.data; ++d) {
    for (int p = 0; p < degrees.pipeline; ++p) {
      const int next = (p + 1) % degrees.pipeline;
      if (next != p) {
        add(4 * p, {p, d}, {next, d});
        add(4 * p + 1, {next, d}, {p, d});
      }
      for (const int device : members({p, d})) {
        const Routes::ToHost host = routes_.host_routes(device);
        uses.add(host.there.resources, 4 * p + 2, 1);
        uses.add(host.back.resources, 4 * p + 3, 1);
      }
    }
    uses.end_replica();
  }
  return uses.alike(routes_.capacity());
}

bool RankRoutes::groups_share_alike(Dimension dimension, int pipeline) {
  LinkUses uses(routes_.names().size());
  std::vector<int> taken;
  for (int d = 0; d < grid_.degrees().data; ++d) {
    for (const std::vector<int>& group : grid_.groups(dimension, pipeline, d)) {
      for (std::size_t i = 0; group.size() > 1 && i < group.size(); ++i) {
        taken.clear();
        try {
          routes_.append_resources(group[i], group[(i + 1) % group.size()], taken);
        } catch (const UsageError&) {
          continue;  // no route: what needs one refuses
        }
        uses.add(taken, 0, 1);
      }
    }
    uses.end_replica();
  }
  return uses.alike(routes_.capacity());
}

RouteUses RankRoutes::first_uses(const std::vector<PipelineRank>& ranks) {
  RouteUses uses;
  std::vector<int>& used = uses.first;
  std::vector<bool> is_used(routes_.names().size());
  std::vector<std::vector<int>> members_of;
  for (const PipelineRank& rank : ranks) members_of.push_back(members(rank));
  std::vector<int> tensor_of;
  for (const PipelineRank& rank : ranks) {
    tensor_of.push_back(grid_.degrees().tensor_at(rank.pipeline));
  }
  std::vector<int> passed_now;
  for (std::size_t from = 0; from < ranks.size(); ++from) {
    const std::vector<int>& senders = members_of[from];
    std::vector<std::vector<bool>> passed(senders.size());
    for (std::size_t to = 0; to < ranks.size(); ++to) {
      if (to == from || ranks[to].data != ranks[from].data) continue;
      passed_now.clear();
      if (tensor_of[from] == tensor_of[to]) {
        for (std::size_t i = 0; i < senders.size(); ++i) {
          routes_.append_resources(senders[i], members_of[to][i], passed[i], passed_now);
        }
      } else {
        const Counterparts pairs = counterparts(ranks[from], ranks[to]);
        for (std::size_t i = 0; i < pairs.senders.size(); ++i) {
          std::vector<bool> anew;
          routes_.append_resources(pairs.senders[i], pairs.receivers[i], anew, passed_now);
        }
      }
      // As Merge sorts them.
      std::sort(passed_now.begin(), passed_now.end());
      for (const int resource : passed_now) {
        if (is_used[as_size(resource)]) continue;
        is_used[as_size(resource)] = true;
        used.push_back(resource);
      }
    }
  }
  return uses;
}

RouteUses RankRoutes::uses_with_loads(const std::vector<PipelineRank>& ranks) {
  RouteUses uses;
  uses.loads.resize(routes_.names().size());
  std::vector<std::vector<int>> members_of;
  for (const PipelineRank& rank : ranks) members_of.push_back(members(rank));
  std::uint64_t route = 0;
  std::vector<int> passed;
  for (std::size_t from = 0; from < ranks.size(); ++from) {
    for (std::size_t to = 0; to < ranks.size(); ++to) {
      if (to == from || ranks[to].data != ranks[from].data) continue;
      passed.clear();
      for (std::size_t i = 0; i < members_of[from].size(); ++i) {
        routes_.append_resources(members_of[from][i], members_of[to][i], passed);
      }
      const std::uint64_t load = mixed(++route);
      std::vector<int> now;
      for (const int resource : passed) {
        std::uint64_t& known = nth(uses.loads, resource);
        if (known == 0) now.push_back(resource);
        known += load;
      }
      std::sort(now.begin(), now.end());  // as Merge sorts them
      uses.first.insert(uses.first.end(), now.begin(), now.end());
    }
  }
  for (const PipelineRank& rank : ranks) {
    for (const Route& host : to_host(rank)) {
      const std::uint64_t load = mixed(++route);
      for (std::size_t i = 0; i < host.resources.size(); ++i) {
        nth(uses.loads, host.resources[i]) += mixed(load + same_bits<std::uint64_t>(host.load[i]));
      }
    }
  }
  return uses;
}

void ResourceNumbers::renumber(Route& route) {
  for (int& resource : route.resources) resource = number(resource);
  if (kind_.empty()) return;
  std::vector<bool> taken(used_.size());
  std::size_t kept = 0;
  for (std::size_t i = 0; i < route.resources.size(); ++i) {
    const int resource = route.resources[i];
    if (taken[as_size(resource)]) continue;
    taken[as_size(resource)] = true;
    if (!route.load.empty()) route.load[kept] = route.load[i];
    route.resources[kept++] = resource;
  }
  route.resources.resize(kept);
  if (!route.load.empty()) route.load.resize(kept);
}

}  // namespace stageline
