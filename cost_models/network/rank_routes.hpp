// Routes between the pipeline ranks of a run: those of all devices of a rank at once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "cost_models/network/rank_grid.hpp"
#include "sim/base/index.hpp"
#include "sim/cluster.hpp"
#include "sim/degrees.hpp"
#include "sim/routes.hpp"

namespace stageline {

/// A pipeline rank that is simulated.
struct PipelineRank {
  int pipeline = 0;
  int data = -1;  // its replica; -1: all replicas at once
};

/// Numbers for the resources that routes take, in the order of their first use.
class ResourceNumbers {
 public:
  explicit ResourceNumbers(std::size_t resources = 0) : number_(resources, -1) {}
  /// By resource the first one of its kind: those of one kind have one number.
  explicit ResourceNumbers(std::vector<int> first_of_kind)
      : number_(first_of_kind.size(), -1), kind_(std::move(first_of_kind)) {}

  int kind(int resource) const { return kind_.empty() ? resource : nth(kind_, resource); }
  int number(int resource) {
    int& known = nth(number_, kind(resource));
    if (known < 0) {
      known = static_cast<int>(used_.size());
      used_.push_back(resource);
    }
    return known;
  }
  /// -1: none of its kind is used yet.
  int find(int resource) const { return nth(number_, kind(resource)); }
  /// Keeps the first resource of each kind, whose load is that of the others.
  void renumber(Route& route);
  /// By number.
  const std::vector<int>& used() const { return used_; }

 private:
  std::vector<int> number_;  // by kind; -1: not used yet
  std::vector<int> used_;
  std::vector<int> kind_;  // by resource; empty: each is of its own
};

/// What routes between ranks take.
struct RouteUses {
  std::vector<int> first;  // resources, each once, in the order of their first use
  /// By resource: equal where all these routes, and those to hosts, load both alike. Empty if that
  /// was not asked for.
  std::vector<std::uint64_t> loads;
};

/// The devices of a run, and the routes between their ranks. The devices of a rank send together,
/// each to its counterpart. Where an encoder's rank and the model's have unlike tensor degrees a
/// and b, the tensor is cut into lcm(a, b) equal pieces, each of which travels once, from the rank
/// that has it to the one that reads it (DistTrain's brokers, arXiv 2408.04275; assumed).
class RankRoutes {
 public:
  /// Takes the first devices, as many as the grid has. The shard group of grid() is a number of
  /// ranks: one that is a machine, or what NVLink joins, is counted. Throws UsageError where the
  /// cluster has fewer devices, or where shard groups would not be equal.
  RankRoutes(Cluster cluster, const Degrees& degrees);
  RankRoutes(const RankRoutes&) = delete;
  RankRoutes& operator=(const RankRoutes&) = delete;

  const Cluster& cluster() const { return cluster_; }
  const RankGrid& grid() const { return grid_; }
  Routes& routes() { return routes_; }
  /// Threads take turns at this object and its routes().
  std::mutex& access() { return access_; }

  /// Over the resources of routes(). Throws as Routes::between().
  Route between(const PipelineRank& from, const PipelineRank& to);
  /// There and back.
  std::array<Route, 2> to_host(const PipelineRank& rank);

  /// Whether the messages of all replicas find links alike: on each hop around the ring of a
  /// pipeline, both ways, and to the hosts, what a replica shares its links with is the same as of
  /// any other one. Devices that share a NIC may belong to one hop of one replica and to two hops
  /// of another, where a rank does not end with a machine. Throws as Routes::between().
  bool messages_share_alike();
  /// The same of the rings of the groups of a dimension at a pipeline rank, which all run at once.
  /// Devices that no link joins share nothing.
  bool groups_share_alike(Dimension dimension, int pipeline);

  /// The resources of all routes between ranks of one replica, as between() gives them row by row.
  /// Throws as Routes::between(). O(ranks × devices) and, of a cluster's links, O(devices × links).
  RouteUses first_uses(const std::vector<PipelineRank>& ranks);
  /// The same, with `loads`. Every rank has as many devices.
  RouteUses uses_with_loads(const std::vector<PipelineRank>& ranks);

 private:
  // Devices that send to each other, and the bytes on their way for one that a rank sends or, of an
  // encoder and the model, that the encoder's has.
  struct Counterparts {
    std::vector<int> senders;
    std::vector<int> receivers;
    double load = 1;
  };
  Counterparts counterparts(const PipelineRank& from, const PipelineRank& to) const;
  std::vector<int> members(const PipelineRank& rank) const;

  Cluster cluster_;
  RankGrid grid_;
  Routes routes_;
  std::mutex access_;
};

}  // namespace stageline
