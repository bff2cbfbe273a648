// The devices of a run by their ranks in each kind of parallelism.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "sim/degrees.hpp"

namespace stageline {

/// A device's place in the grid.
struct GridPlace {
  int tensor = 0;
  int context = 0;
  int data = 0;
  int pipeline = 0;
};

/// Numbers the devices of a run as Megatron does: the first dimension of Degrees::order varies
/// fastest.
///
/// Expert parallelism divides all devices of a pipeline rank once more, in their order: etp
/// neighbours share each expert, `expert` such neighbours share a layer's experts, and those that
/// many devices apart hold the same ones.
///
///     tp 2, dp 4, ep 4          devices   0 1 2 3 4 5 6 7
///     etp 2 (as tp)   expert-parallel groups   0 1 0 1 0 1 0 1
///                     experts held             a a b b c c d d    halves
///     etp 1           expert-parallel groups   0 0 0 0 1 1 1 1
///                     experts held             a b c d a b c d
///
/// So Megatron-LM's second RankGenerator nests them, which has no context-parallel ranks of its
/// own (megatron/core/parallel_state.py, initialize_model_parallel). Where etp is tp, the ranks
/// that share an expert are the tensor-parallel group in every order of dimensions.
///
/// An encoder's pipeline ranks come before the model's, each with as many devices as the encoder's
/// tensor degree makes:
///
///     encoder of pp 2 and tp 1, model of tp 2, dp 2        devices   0 1 | 2 3 | 4 5 6 7
class RankGrid {
 public:
  /// `degrees.pipeline` must be set. Throws UsageError where a degree is below 1, or ep × etp does
  /// not divide tp × cp × dp, or, where etp is tp, ep does not divide cp × dp, or the ranks of a
  /// shard group do not divide those that hold the same weights; or where there is an encoder
  /// beside context- or expert-parallel ranks, beside none of the model's own pipeline ranks, or pp
  /// is not the last of the order.
  explicit RankGrid(const Degrees& degrees);

  /// The number of devices.
  int devices() const { return degrees_.devices_of(degrees_.pipeline); }
  int device(const GridPlace& place) const;

  /// The groups of one dimension at a pipeline rank: of all replicas, or of replica `data` alone
  /// where that is not -1. Each is in the order of its ranks. A data-parallel group includes the
  /// context-parallel ranks, which hold the same weights. The groups of experts (ep, etp) are
  /// always those of all replicas, which they may span.
  std::vector<std::vector<int>> groups(Dimension dimension, int pipeline, int data = -1) const;

  /// All devices of a pipeline rank: of all replicas, or of replica `data` alone where that is not
  /// -1. Those of one tensor-parallel part are neighbours in the list.
  std::vector<int> members(int pipeline, int data = -1) const;

  /// The devices of a pipeline rank that hold its tensor-parallel part `tensor`: of all replicas,
  /// or of replica `data` alone where that is not -1.
  std::vector<int> holders(int pipeline, int tensor, int data = -1) const;

  /// The devices of a pipeline rank that hold part `tensor` (of etp) of the experts of
  /// expert-parallel rank `expert`: of all replicas, or of replica `data` alone where that is not
  /// -1.
  std::vector<int> expert_holders(int pipeline, int tensor, int expert, int data = -1) const;

  /// The shard groups of all ranks of a pipeline rank that hold the same weights, of holders() or
  /// of expert_holders(): neighbours. Each is in the order of its devices.
  std::vector<std::vector<int>> shards_of(std::vector<int> holders) const;

  const Degrees& degrees() const { return degrees_; }

 private:
  GridPlace place_among_holders(int position, int pipeline, int tensor) const;
  GridPlace place_among_experts(int position, int pipeline) const;

  Degrees degrees_at(int pipeline) const;

  Degrees degrees_;
  std::array<int, 5> stride_{};             // by Dimension
  std::array<int, 5> stride_of_encoder_{};  // likewise, of its pipeline ranks
};

/// "tp-cp-ep-dp-pp": the dimensions from the fastest to the slowest. `ep` may be left out; it is
/// inside dp. Throws UsageError where one is missing or named twice.
std::array<Dimension, 5> parse_order(std::string_view text);
std::string print_order(const std::array<Dimension, 5>& order);

}  // namespace stageline
