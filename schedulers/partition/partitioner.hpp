// Where to cut: a partitioner is a constant at the foot of its own .cpp, listed in
// schedulers/partition/meson.build.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cluster.hpp"
#include "sim/model.hpp"
#include "sim/placement.hpp"

namespace stageline {

/// What a partitioner is asked for.
struct PartitionRequest {
  const Model& model;      // layers in topological order
  const Cluster& cluster;  // the devices to use, all of them
  int stages = 1;          // to make; the pipedream partitioner with replication chooses by itself
  bool replicate = false;  // whether the schedule can replicate stages
  std::string options;     // the text behind "name:", empty when none
  /// Devices of each stage, where the schedule has fixed them; empty: one each.
  std::vector<int> replicas{};
  /// Stages with their backward on another device than their forward; empty: none.
  std::vector<bool> apart{};
  /// The devices of each stage, between which its micro-batches take turns, where `replicas` does
  /// not say; empty: stage s on device s mod how many there are.
  std::vector<std::vector<int>> placed{};
};

/// The cut, and how many devices each stage gets (the request's replicas; where it has none all 1,
/// unless the partitioner chose to replicate), and the reason as one sentence with numbers
/// ("largest stage 21.6 ms, 3.1 % over the mean").
struct PartitionPlan {
  Partition partition;
  std::vector<int> replicas;
  /// The devices of each stage, in the order of their micro-batches, where the partitioner chose
  /// them (a replicated stage that spans machines); empty: consecutive ones, as
  /// replicated_placement has it.
  std::vector<std::vector<int>> devices;
  std::string reason;
};

struct Partitioner {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  std::string_view options;  // "" or what may follow the colon
  /// Throws UsageError when the numbers do not fit (more stages than layers). The request's
  /// replicas as partition() lets them through.
  PartitionPlan (*plan)(const PartitionRequest& request);
};

std::span<const Partitioner* const> partitioners();

/// `text` is "balanced", "pipedream:cost=paper,…", an explicit list of layer ranges "0-5,6-11,12-",
/// a list of layer names, each the last of its stage "conv5,relu12", or a layout of Megatron's
/// "Et*3|(tt|)*4,L" (schedulers/partition/megatron.hpp). Throws UsageError, also unless the
/// request's replicas, if any, are one number a stage and all devices together.
PartitionPlan partition(const std::string& text, const PartitionRequest& request);

}  // namespace stageline
