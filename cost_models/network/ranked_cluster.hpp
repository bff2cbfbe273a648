// A cluster as the pipeline ranks of a run: each rank is the devices that do its work together.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "cost_models/gathers.hpp"
#include "cost_models/network/alike_links.hpp"
#include "cost_models/network/collectives.hpp"
#include "cost_models/network/rank_grid.hpp"
#include "cost_models/network/rank_routes.hpp"
#include "cost_models/recomputation.hpp"
#include "cost_models/state_bytes.hpp"
#include "sim/cluster.hpp"
#include "sim/costs.hpp"
#include "sim/degrees.hpp"
#include "sim/model.hpp"
#include "sim/placement.hpp"
#include "sim/routes.hpp"

namespace stageline {

/// How collectives among the groups of a dimension are carried out, each of so many bytes.
struct UsedAlgorithm {
  Dimension dimension = Dimension::data;
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::string_view algorithm;
  Bytes least{};
  Bytes most{};
  PricingEntry entry{};  // that their times are taken from
  // In F and B of one micro-batch through all stages, where ops contain it.
  Time exposed{};
  Time hidden{};  // under the ops' own compute
};

/// Whether what ops wait for is told apart from what runs under them: of context-parallel ranks.
inline bool has_op_times(const UsedAlgorithm& one) {
  return one.dimension == Dimension::context &&
         (one.hidden > Time{} || one.kind == CollectiveKind::all_to_all ||
          one.algorithm == ring_of_messages);
}

/// A layer with weights as ZeRO exchanges it.
struct StageUnit {
  GatheredUnit unit;
  Time weight_grad{};
  int place = 0;  // of the layer in its stage
};

/// Data-parallel replicas that are alike do the same at the same time: one is simulated, and its
/// messages and collectives load the links of all. All are simulated, each with its own messages,
/// if they differ in a device or in a route between neighbours or to a host; up to 63 are if they
/// differ only in what they share their links with. Device data × pipelines + pipeline is rank
/// `pipeline` of replica `data`.
class RankedCluster {
 public:
  /// Takes the first devices, as many as RankGrid has. `algorithms` of collectives are as
  /// parse_algorithms() takes them. `buckets` is the rule by which gradients are reduced while the
  /// backward runs (cost_models/buckets.hpp). With `all`, all replicas are simulated, alike or not.
  /// Throws UsageError where the cluster has fewer devices, or where two that communicate are not
  /// joined.
  RankedCluster(Cluster cluster, const Degrees& degrees, const std::string& algorithms = "best",
                const std::string& buckets = "megatron", bool all = false);
  RankedCluster(const RankedCluster&) = delete;
  RankedCluster& operator=(const RankedCluster&) = delete;

  /// The same degrees and settings on other devices.
  std::shared_ptr<RankedCluster> on(Cluster cluster) const;

  /// The simulated ranks as devices: as fast as the slowest device of the rank, with the memory
  /// and the reserve of the one that training can fill least of, and without links.
  const Cluster& ranks() const { return ranks_; }
  const RankGrid& grid() const { return grid_; }
  /// The pipelines that are simulated: 1, or all data-parallel replicas.
  int replicas() const { return replicas_; }
  /// The pipelines that each simulated one represents.
  int copies() const { return grid_.degrees().data / replicas_; }
  /// The ranks that reduce gradients with a simulated one, and have no stages of their own in its
  /// program: data- and context-parallel ones; of a lone rank those that hold the same experts.
  int data_ranks() const;
  /// Whether replicas are alike but for what they share their links with. One that stands for all
  /// of them has the fullest links of every hop.
  bool shares_unequally() const { return uneven_; }
  /// All devices of the run.
  const Cluster& devices() const { return cluster_; }

  /// Adds to the costs of stages on ranks() the network between ranks and these collectives:
  ///   blocking    in the times of ops; a layer that is recomputed selectively repeats none in R
  ///   reductions  of gradients: those of experts among the ranks that hold the same experts, all
  ///               others among all data- and context-parallel ranks, one behind the other; with
  ///               shard groups within each, then among them
  ///   tied        the reduction of tied weights on two ranks, which blocks the update
  /// `model` has the layers of one rank, with all its gradients (as without ZeRO).
  ///
  /// The memory of communication is the largest tensor that the ops of a stage with sequence
  /// parallelism gather (Megatron-LM, megatron/core/tensor_parallel/layers.py: all_gather_buffer,
  /// one for all layers). Buckets are views of the gradients with Megatron-LM, which holds nothing
  /// beyond them. With PyTorch's DDP they are copies as large as the gradients, and counted with
  /// them. Gathered weights are in the workspaces (state_bytes.hpp). Throws UsageError where a
  /// collective cannot be done.
  Costs priced(Costs costs, const Model& model, const Partition& partition,
               const Placement& placement, const Recomputation& recomputed = {});

  /// The algorithms of the collectives that priced() adds: one entry for each dimension, kind,
  /// algorithm and what prices it. Throws as priced().
  std::vector<UsedAlgorithm> algorithms(const Model& model, const Partition& partition,
                                        const Placement& placement);

  /// The blocking collectives of each layer on the simulated rank where they are fastest: no stage
  /// that priced() makes has less of them than its layers here. Throws as priced().
  /// `group`: of that group alone.
  std::vector<BlockingTimes> least_blocking(const Model& model,
                                            std::optional<Dimension> group = std::nullopt);

 private:
  struct Blocking {
    Time time{};
    std::string_view algorithm;
    PricingEntry entry;
  };
  PipelineRank rank_of(int device) const;
  int device_at(int pipeline, int data) const;
  // What must be equal of a route of two replicas.
  using Way = std::tuple<Bandwidth, Time, Tier>;
  static Way way_on(const Route& route) { return {route.bandwidth, route.latency, route.tier}; }
  bool replicas_differ();
  bool routes_differ();
  bool links_are_shared_unequally();
  std::vector<Way> ways_in(Dimension dimension, const PipelineRank& rank);
  std::vector<Way> ways_to_host(const PipelineRank& rank);
  void make_ranks();
  void make_network();
  void fold(Costs& costs, bool scattered);
  bool scatters_messages(const Model& model) const;
  CollectiveCosts planned(const Collective& collective);
  const Blocking& blocking(const LayerCollective& collective, const PipelineRank& rank);
  void add_op_times(const LayerCollective& collective, const StagePlace& place);
  Time blocking_time(const LayerCollective& collective, const PipelineRank& rank);
  Time blocking_time(const LayerCollective& collective, const StagePlace& place);
  Model as_run(const Costs& costs, Model model, const Partition& partition,
               const Placement& placement);
  void use(Dimension dimension, CollectiveKind kind, Bytes bytes, std::string_view algorithm,
           const PricingEntry& entry);
  void add_blocking(Costs& costs, const Model& model, const Partition& partition,
                    const Placement& placement, const std::vector<StageRecomputation>& rebuilt);
  void add_collectives(Costs& costs, const Model& model, const Partition& partition,
                       const Placement& placement, const Recomputation& recomputed);
  void add_exchanges(Costs& costs, const Model& model, const Partition& partition,
                     const Placement& placement, const std::vector<StageRecomputation>& rebuilt);
  void add_tied(Costs& costs, const Model& model, const Partition& partition,
                const Placement& placement);
  CollectiveCosts overlapped(const Model& model, const Partition& partition, int stage,
                             const StagePlace& place);
  std::vector<StageUnit> units_of(const Model& model, const Partition& partition, int stage,
                                  const StagePlace& place);
  void add_gathers(StageCosts& stage, const std::vector<StageUnit>& layers,
                   const StageRecomputation& rebuilt);
  void add_first_gathers(Costs& costs, const Model& model, const Partition& partition,
                         const Placement& placement);
  std::vector<WeightKind> kinds_in(const Model& model) const;
  int holders_of(const StagePlace& place, WeightKind weights) const;
  CollectiveCosts among_holders(CollectiveKind kind, Bytes bytes, const StagePlace& place,
                                WeightKind weights, Among among);
  void add_groups(const std::map<int, std::vector<int>>& holders, Among among,
                  std::vector<std::vector<int>>& groups) const;

  std::shared_ptr<RankRoutes> shared_;  // with the networks
  const Cluster& cluster_;
  const RankGrid& grid_;
  Routes& routes_;
  Collectives collectives_;
  std::string algorithms_;
  std::string buckets_;
  bool all_ = false;
  int replicas_ = 1;
  Cluster ranks_;
  // Between ranks; its resources, of which numbers_ has the names, are those that its routes take.
  Network network_;
  ResourceNumbers numbers_;
  bool folds_ = false;  // numbers_ and network_ have one resource for all that are alike
  std::map<std::uint64_t, FoldedNetwork> folded_;  // by pattern_of() the reductions
  std::shared_ptr<FoundRoutes> scattered_;         // its routes where messages are scattered
  std::map<std::tuple<CollectiveKind, Dimension, std::int64_t, TokenRouting, GroupUse, int, int>,
           Blocking>
      blocking_;
  std::vector<UsedAlgorithm> used_;  // so far, sorted
  bool uneven_ = false;              // replicas are alike but for what they share their links with
};

}  // namespace stageline
