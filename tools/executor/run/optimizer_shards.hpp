// The sharded optimizer (ZeRO stage 1: Rajbhandari et al. 2020, arXiv 1910.02054). Each of a
// stage's n replicas keeps the optimizer's state of 1/n of the stage's parameters.
//
//  replica 0   gradients ─┐ reduce-  ┌─► sum of shard 0 ─► U steps shard 0 ─┐  all-   ┌─► weights
//  replica 1   gradients ─┘ scatter  └─► sum of shard 1 ─► U steps shard 1 ─┘ gather └─► weights
//
// The all-gather is no op of the program: the first op of the stage behind its U waits for the U of
// the other replicas and copies their shards.
//
// Includes ATen: for the files of this folder and its neighbours only.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/task_graph.hpp"
#include "tools/executor/run/device_model.hpp"
#include "tools/executor/run/stage_messages.hpp"

namespace stageline::executor {

/// Elements [from, from + count) of one weight, in the order of its memory.
struct Piece {
  std::size_t weight = 0;  // among those of the stage, layer after layer
  std::int64_t from = 0;
  std::int64_t count = 0;
};

/// The shard of one replica: 1/replicas of the elements of all weights, one after the other; shards
/// differ by one element at most. Of `weights` only the sizes are read.
std::vector<Piece> pieces_of(const Tensors& weights, std::size_t replica, std::size_t replicas);

/// The elements of the piece in `whole`, which is contiguous: a view of one dimension.
at::Tensor view_of(const at::Tensor& whole, const Piece& piece);

/// The views of a shard.
Tensors shard_of(const Tensors& weights, std::size_t replica, std::size_t replicas);

/// Layers one after the other.
Tensors flattened(const std::vector<Tensors>& by_layer);

/// Whether the optimizer's state of the stage is divided among its replicas.
bool is_sharded(const Job& job, int stage);

/// Replaces the optimizer's state of a sharded stage, which is zero, by that of this device's
/// shard.
void keep_own_shard(DeviceModel& here, int stage);

/// The tasks whose shards a task or the end of a run gathers: updates of other replicas.
struct GatherNeeds {
  std::vector<std::vector<std::uint32_t>> of_task;  // by task; empty without sharded stages
  std::vector<std::vector<std::uint32_t>> at_end;   // by device
};
/// Throws UsageError where an op would wait for an update that waits for it.
GatherNeeds gather_needs(const Job& job, const TaskGraph& graph);

/// One device's part in the updates of sharded stages.
class OptimizerShards {
 public:
  /// All outlive it.
  OptimizerShards(DeviceModel& here, Exchange& exchange, const StageMessages& messages);

  /// For U: steps the shard of the layers' weights by the gradients in the model, and shows it to
  /// the other replicas. `beside`, by layer of the stage: into new tensors.
  void update(Op op, const OptimizerStep& step, const std::vector<bool>& beside);
  /// Copies what the other replicas have made of the stage's last update, if that is still to be
  /// done. They are done with it.
  void gather(int stage);
  void gather_all();
  void restart();

 private:
  void show(Op op);

  DeviceModel& here_;
  Exchange& exchange_;
  const StageMessages& messages_;
  std::vector<std::optional<std::uint32_t>> to_gather_;  // by stage: an update
};

}  // namespace stageline::executor
