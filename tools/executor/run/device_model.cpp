// Builds one device's share of the model.
#include "tools/executor/run/device_model.hpp"

#include <algorithm>
#include <utility>

#include "tools/executor/run/optimizer_shards.hpp"

namespace stageline::executor {
namespace {

std::vector<bool> layers_held(const Job& job, const std::vector<bool>& stages) {
  std::vector<bool> wanted;
  for (const int stage : job.partition.stage_of) wanted.push_back(nth(stages, stage));
  return wanted;
}

std::vector<bool> stages_on(const Job& job, int device) {
  std::vector<bool> here(as_size(job.program.stages()));
  for (const Op op : nth(job.program.ops, device)) {
    if (lane_of(op.kind) == LaneKind::compute) here[op.stage] = true;
  }
  return here;
}

}  // namespace

DeviceModel::DeviceModel(const Job& job_of_run, int device_here, at::Device device_of_tensors)
    : job(job_of_run),
      device(device_here),
      where(device_of_tensors),
      holds(stages_on(job, device)),
      model(tensor_model(job.training.shape, job.training.optimizer,
                         at::TensorOptions(job.training.dtype).device(where), job.training.seed,
                         layers_held(job, holds))),
      cut(cut_of(model, job.partition, job.program.edges)) {
  // The optimizer's state is where the stage is updated.
  for (int stage = 0; stage < job.program.stages(); ++stage) {
    if (!place(stage).apart() || place(stage).device(Role::weight_grad) == device) continue;
    for (const std::size_t layer : layers_of(stage)) model.weights[layer].state.clear();
  }
  for (int stage = 0; stage < job.program.stages(); ++stage) {
    if (holds[as_size(stage)] && is_sharded(job, stage)) keep_own_shard(*this, stage);
  }
}

bool DeviceModel::has_role(int stage, OpKind kind) const {
  const auto& ops = nth(job.program.ops, device);
  return std::any_of(ops.begin(), ops.end(), [&](Op op) {
    const bool both =
        op.kind == OpKind::backward && (kind == OpKind::weight_grad || kind == OpKind::input_grad);
    return op.stage == stage && (op.kind == kind || both);
  });
}

bool DeviceModel::backward_reads_weights(int stage) const {
  const std::vector<std::size_t>& layers = layers_of(stage);
  const TensorLayer& first = model.layers[layers.front()];
  return layers.size() > 1 || first.input >= 0 || first.ops.size() > 1;
}

int DeviceModel::replica_of(int stage) const {
  const std::vector<int>& replicas = place(stage).replicas;
  const auto found = std::find(replicas.begin(), replicas.end(), device);
  return found == replicas.end() ? -1 : static_cast<int>(found - replicas.begin());
}

std::vector<Tensors> DeviceModel::values_of(int stage) const {
  std::vector<Tensors> all;
  for (const std::size_t layer : layers_of(stage)) all.push_back(model.weights[layer].values);
  return all;
}

WeightsInUse::WeightsInUse(DeviceModel& here, int stage, std::vector<Tensors> weights)
    : here_(here), stage_(stage), weights_(std::move(weights)) {
  swap();
}

void WeightsInUse::swap() {
  const std::vector<std::size_t>& layers = here_.layers_of(stage_);
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    std::swap(here_.model.weights[layers[i]].values, weights_[i]);
  }
}

}  // namespace stageline::executor
