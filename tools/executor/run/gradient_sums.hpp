// The sums of weight gradients that one device gathers for its updates, and their sum over
// replicas.
//
// Includes ATen: for the files of this folder only.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "tools/executor/run/device_model.hpp"
#include "tools/executor/run/stage_messages.hpp"

namespace stageline::executor {

class GradientSums {
 public:
  /// All outlive it. W finds its sums allocated from the beginning, as an optimizer that zeroes
  /// gradients would have it.
  GradientSums(DeviceModel& here, Exchange& exchange, const StageMessages& messages);

  /// The update that the op's gradient goes into.
  std::uint32_t update_of(Op op) const;
  /// What the op adds to, by layer of the stage and weight.
  std::vector<Tensors>& of(Op op) { return of(op.stage, update_of(op)); }
  /// After a W or B: a replica that has all its gradients of an update shows them to the others.
  void note_weight_grad(Op op);

  /// For U: the sum over the replicas, the same on all of them, in the tensors that this device has
  /// summed into; without replicas what is in these. With a sharded optimizer only the elements of
  /// this device's shard are sums (a reduce-scatter).
  std::vector<Tensors> reduced(Op update);
  /// After U: sums that are zero again.
  void give_back(Op update, std::vector<Tensors> zeros);

  void clear();
  /// Sums of zero, to be used again; by stage.
  const std::vector<std::vector<std::vector<Tensors>>>& spare() const { return spare_; }

 private:
  std::vector<Tensors>& of(int stage, std::uint32_t update);
  void sum_up(Reduction& reduction, std::size_t me) const;
  void scatter_sums(Reduction& reduction) const;
  Tensors sum_of_own_shard(int stage, const Reduction& reduction, std::size_t me) const;
  double divisor(std::size_t summed) const;

  DeviceModel& here_;
  Exchange& exchange_;
  const StageMessages& messages_;
  std::vector<std::map<std::uint32_t, std::vector<Tensors>>> sums_;  // by stage and update
  std::vector<std::map<std::uint32_t, int>> summed_;                 // micro-batches in them
  std::vector<std::vector<std::vector<Tensors>>> spare_;             // by stage
};

/// Puts sums into the model as the gradients of a stage's weights while it lives.
class SumsInUse {
 public:
  SumsInUse(DeviceModel& here, int stage, std::vector<Tensors>& sums)
      : here_(here), stage_(stage), sums_(sums) {
    swap();
  }
  ~SumsInUse() { swap(); }
  SumsInUse(const SumsInUse&) = delete;
  SumsInUse& operator=(const SumsInUse&) = delete;

 private:
  void swap();
  DeviceModel& here_;
  int stage_;
  std::vector<Tensors>& sums_;
};

}  // namespace stageline::executor
