// The tensors between layers, as each stage sees them.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "cost_models/memory/moments.hpp"
#include "cost_models/memory/op_memory.hpp"
#include "sim/base/index.hpp"
#include "sim/model.hpp"
#include "sim/placement.hpp"

namespace stageline {

/// The output of a layer as one stage sees it that makes or reads it. Places count the stage's
/// layers from 0; those of another stage are at -1 (before) and at the stage's size (behind).
struct StageTensor {
  int maker = -1;
  int last_reader = -1;          // in this stage; -1: none
  bool leaves = false;           // made here and read by a later stage
  bool is_result = false;        // read by no layer
  bool by_maker = false;         // the maker's backward reads it
  bool by_other_maker = false;   // the same of a maker in another stage, which has it of its own
  bool for_weight_grad = false;  // some W of this stage reads it
  Wide bytes = 0;
  // The layer whose share of the stash counts it; empty: no backward of this stage reads it.
  std::optional<int> counted;
  Wide share = 0;  // of that layer's share
  // The readers in this stage, where its layers are recomputed in different ways.
  std::vector<int> readers{};
};

/// Who makes, reads and keeps each tensor. Model and partition outlive it.
class StageTensors {
 public:
  StageTensors(const Model& model, const Partition& partition);

  std::size_t stage_of(std::size_t layer) const { return as_size(partition_.stage_of[layer]); }
  /// The layers that read a layer's output, ascending.
  const std::vector<std::size_t>& readers(std::size_t maker) const { return readers_[maker]; }
  /// The stages that make or read it, ascending.
  std::vector<std::size_t> stages(std::size_t maker) const;
  const std::vector<std::size_t>& layers(std::size_t stage) const { return stage_layers_[stage]; }
  /// By layer: whether it reads no other layer's output.
  const std::vector<bool>& reads_data() const { return reads_data_; }
  /// Whether the model tells which tensors are kept.
  bool says() const { return says_; }

  /// The output of a layer that no other reads.
  StageTensor result(std::size_t maker) const;
  /// The output of `maker` in a stage that makes or reads it; with its readers there, if asked.
  StageTensor in(std::size_t stage, std::size_t maker, const LayerStash& stash,
                 bool with_readers) const;

 private:
  bool keeps(std::size_t reader, std::size_t maker) const;

  const Model& model_;
  const Partition& partition_;
  std::vector<std::vector<std::size_t>> readers_;  // of each layer's output, ascending
  std::vector<std::size_t> input_;                 // the last of those that each layer reads
  std::vector<int> place_;                         // in its stage
  std::vector<std::vector<std::size_t>> stage_layers_;
  std::vector<bool> reads_data_;
  bool says_ = false;
};

}  // namespace stageline
