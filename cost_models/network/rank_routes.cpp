// Merges the routes of the devices of a rank.
#include "cost_models/network/rank_routes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "cost_models/network/collectives.hpp"
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

// What replicas ask of links: the bytes on each, by replica and hop.
class LinkUses {
 public:
  explicit LinkUses(int replicas) : replicas_(replicas) {}

  void add(int replica, int hop, const Route& route) {
    for (std::size_t i = 0; i < route.resources.size(); ++i) {
      const double load = route.load.empty() ? 1 : route.load[i];
      uses_[route.resources[i]][replica][hop] += load;
    }
  }

  // Two links are alike where as many replicas use them in the same way, and two replicas are where
  // they use links alike on every hop.
  bool alike(const std::vector<Bandwidth>& capacity) const {
    using ByHop = std::map<int, double>;
    std::map<std::pair<std::int64_t, std::vector<ByHop>>, int> kinds;
    std::vector<std::vector<std::pair<int, ByHop>>> of_replica(as_size(replicas_));
    for (const auto& [resource, by_replica] : uses_) {
      const Bandwidth limit = nth(capacity, resource);
      if (limit.is_unlimited()) continue;
      std::vector<ByHop> users;
      for (const auto& [replica, by_hop] : by_replica) users.push_back(by_hop);
      std::sort(users.begin(), users.end());
      const int next = static_cast<int>(kinds.size());
      const int kind =
          kinds.try_emplace({limit.bytes_per_second, std::move(users)}, next).first->second;
      for (const auto& [replica, by_hop] : by_replica) {
        nth(of_replica, replica).emplace_back(kind, by_hop);
      }
    }
    for (auto& links : of_replica) std::sort(links.begin(), links.end());
    return std::all_of(of_replica.begin(), of_replica.end(),
                       [&](const auto& links) { return links == of_replica.front(); });
  }

 private:
  int replicas_;
  std::map<int, std::map<int, std::map<int, double>>> uses_;  // by resource, replica, hop
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
  std::vector<const Route*> pairs;
  for (std::size_t i = 0; i < senders.size(); ++i) {
    pairs.push_back(&routes_.between(senders[i], receivers[i]));
  }
  return merged(pairs, load);
}

std::array<Route, 2> RankRoutes::to_host(const PipelineRank& rank) {
  std::vector<Routes::ToHost> host;
  for (const int device : members(rank)) host.push_back(routes_.host_routes(device));
  std::vector<const Route*> there;
  std::vector<const Route*> back;
  for (const Routes::ToHost& routes : host) {
    there.push_back(&routes.there);
    back.push_back(&routes.back);
  }
  return {merged(there), merged(back)};
}

bool RankRoutes::messages_share_alike() {
  const Degrees& degrees = grid_.degrees();
  LinkUses uses(degrees.data);
  for (int d = 0; d < degrees.data; ++d) {
    for (int p = 0; p < degrees.pipeline; ++p) {
      const int next = (p + 1) % degrees.pipeline;
      if (next != p) {
        uses.add(d, 4 * p, between({p, d}, {next, d}));
        uses.add(d, 4 * p + 1, between({next, d}, {p, d}));
      }
      const std::array<Route, 2> host = to_host({p, d});
      uses.add(d, 4 * p + 2, host[0]);
      uses.add(d, 4 * p + 3, host[1]);
    }
  }
  return uses.alike(routes_.capacity());
}

bool RankRoutes::groups_share_alike(Dimension dimension, int pipeline) {
  LinkUses uses(grid_.degrees().data);
  for (int d = 0; d < grid_.degrees().data; ++d) {
    for (const std::vector<int>& group : grid_.groups(dimension, pipeline, d)) {
      for (std::size_t i = 0; group.size() > 1 && i < group.size(); ++i) {
        try {
          uses.add(d, 0, routes_.between(group[i], group[(i + 1) % group.size()]));
        } catch (const UsageError&) {
          continue;  // no route: what needs one refuses
        }
      }
    }
  }
  return uses.alike(routes_.capacity());
}

std::vector<int> RankRoutes::first_uses(const std::vector<PipelineRank>& ranks) {
  std::vector<int> used;
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
      // As merged() sorts them.
      std::sort(passed_now.begin(), passed_now.end());
      for (const int resource : passed_now) {
        if (is_used[as_size(resource)]) continue;
        is_used[as_size(resource)] = true;
        used.push_back(resource);
      }
    }
  }
  return used;
}

Route RankRoutes::merged(const std::vector<const Route*>& routes, double each) const {
  Route all;
  std::map<int, double> load;
  for (const Route* const route : routes) {
    all.latency = std::max(all.latency, route->latency);
    all.tier = std::max(all.tier, route->tier);
    for (std::size_t i = 0; i < route->resources.size(); ++i) {
      load[route->resources[i]] += each * (route->load.empty() ? 1 : route->load[i]);
    }
  }
  for (const auto& [resource, bytes] : load) {
    all.resources.push_back(resource);
    all.load.push_back(bytes);
  }
  all.bandwidth = alone_on(all, routes_.capacity());
  return all;
}

}  // namespace stageline
