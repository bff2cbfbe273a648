// One stage of a delayed training: a short history of its weights, its gradient sums and its
// running statistics. The order of its passes is in delayed.cpp.
//
// Includes ATen: for the files of this folder only.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "tools/executor/corrections/correction.hpp"
#include "tools/executor/train/delayed.hpp"

namespace stageline::executor {

class DelayedStage {
 public:
  /// Stage `stage` of the job; its layers in `model`. All outlive it.
  DelayedStage(const DelayedJob& job, const Corrections& corrections, TensorModel& model,
               std::size_t stage);

  const std::vector<std::size_t>& layers() const { return layers_; }
  const StageVersionPlan& plan() const { return plan_; }
  /// Versions made so far: the number of the newest one.
  std::uint32_t updated() const { return updated_; }
  /// Updates of the whole training.
  std::uint32_t updates() const;
  bool has(std::uint32_t version) const { return version <= updated_; }

  /// Puts weights into the model, until the next call: what F reads under this version, or what the
  /// backward of micro-batch m reads under it.
  void use_for_forward(std::uint32_t version) { use(for_forward(version)); }
  void use_for_backward(std::uint32_t m, std::uint32_t version) { use(for_backward(m, version)); }
  /// Puts the running statistics of this replica into the model.
  void use_statistics(int replica);

  /// Runs a pass over all layers, from the last to the first; gradients of weights go into the
  /// micro-batch's sums, or into `to`.
  using LayerPass = void (*)(TensorModel& model, std::size_t layer, MicroBatch& batch);
  void descend(std::uint32_t m, MicroBatch& batch, LayerPass pass) {
    descend(sums(m), batch, pass);
  }
  void descend(std::vector<Tensors>& to, MicroBatch& batch, LayerPass pass);
  /// Gradients that are not counted.
  std::vector<Tensors> no_sums() const;

  /// The optimizer's step with the gradients of the next update; makes the next version.
  void update();
  /// Drops versions that nothing reads any more. `pending`: the first micro-batch that not all
  /// passes have been through.
  void drop_unneeded(std::uint32_t pending);

  /// The stage's share of a state; `whole` as in Stop.
  StageState state(bool whole);

 private:
  void begin();
  void use(const std::vector<Tensors>& values);
  const StageVersion& newest() const { return versions_.at(updated_); }
  std::vector<Tensors> for_forward(std::uint32_t version) const;
  std::vector<Tensors> for_backward(std::uint32_t m, std::uint32_t version) const;
  std::vector<Tensors>& sums(std::uint32_t m);
  std::vector<Tensors> reduced();
  void swap_sums(std::vector<Tensors>& sums);

  const DelayedJob& job_;
  const VersionPlan& whole_plan_;
  const StageVersionPlan& plan_;
  const Corrections& corrections_;
  TensorModel& model_;
  const std::size_t stage_;
  std::vector<std::size_t> layers_;
  std::map<std::uint32_t, StageVersion> versions_;
  std::map<std::uint32_t, std::vector<std::vector<Tensors>>> sums_;  // by update and replica
  std::vector<std::vector<Tensors>> spare_;                          // sums of zero
  std::vector<std::vector<Tensors>> statistics_;  // by replica; the one in use is in the model
  int replica_in_use_ = 0;
  std::uint32_t updated_ = 0;
};

}  // namespace stageline::executor
