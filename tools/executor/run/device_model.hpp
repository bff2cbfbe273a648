// One device's share of the model: the layers of the stages that compute on it, with their weights.
//
// Includes ATen: for the files of this folder only.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "sim/base/index.hpp"
#include "tools/executor/run/exchange.hpp"
#include "tools/executor/run/job.hpp"
#include "tools/executor/tensors/cut.hpp"
#include "tools/executor/tensors/tensor_model.hpp"

namespace stageline::executor {

/// Shared by all that works on a device's stages. `job` outlives it.
struct DeviceModel {
  DeviceModel(const Job& job, int device, at::Device where);

  const Job& job;
  int device;
  at::Device where;
  std::vector<bool> holds;  // by stage: it has compute ops here
  TensorModel model;
  Cut cut;

  const std::vector<std::size_t>& layers_of(int stage) const { return nth(cut.layers, stage); }
  const StagePlace& place(int stage) const { return nth(job.program.placement.stage, stage); }
  /// Whether this device runs ops of the kind for the stage; B counts as I and as W.
  bool has_role(int stage, OpKind kind) const;
  bool runs_backward(int stage) const {
    return has_role(stage, OpKind::input_grad) || has_role(stage, OpKind::weight_grad);
  }
  /// Whether a backward of the stage reads its weights. Where one op that reads the data is all of
  /// the stage, as an embedding, none does.
  bool backward_reads_weights(int stage) const;
  /// The device's position among the replicas of the stage; -1 where its F is elsewhere.
  int replica_of(int stage) const;
  /// The values of the stage's weights, by layer. The tensors themselves, not copies.
  std::vector<Tensors> values_of(int stage) const;
};

/// Puts the weights that an op reads into the model while it lives.
class WeightsInUse {
 public:
  /// `weights`: by layer of the stage. Empty: the newest, which are in the model already.
  WeightsInUse(DeviceModel& here, int stage, std::vector<Tensors> weights);
  ~WeightsInUse() { swap(); }
  WeightsInUse(const WeightsInUse&) = delete;
  WeightsInUse& operator=(const WeightsInUse&) = delete;

 private:
  void swap();
  DeviceModel& here_;
  int stage_;
  std::vector<Tensors> weights_;
};

}  // namespace stageline::executor
