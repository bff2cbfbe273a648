// Runs the test set and hashes weights.
#include "tools/executor/train/evaluator.hpp"

#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/index.hpp"
#include "tools/executor/run/worker_pool.hpp"

namespace stageline::executor {
namespace {

constexpr std::size_t at_once = 250;  // images; no result depends on it

std::vector<std::vector<std::size_t>> layers_by_stage(const Partition& partition) {
  std::vector<std::vector<std::size_t>> layers(as_size(partition.stages));
  for (std::size_t layer = 0; layer < partition.stage_of.size(); ++layer) {
    nth(layers, partition.stage_of[layer]).push_back(layer);
  }
  return layers;
}

}  // namespace

Evaluator::Evaluator(const ModelShape& shape, const at::TensorOptions& options,
                     const lab::DataSource& data)
    : model_(tensor_model(shape, Optimizer::sgd, options, 1)), data_(data) {}

lab::Evaluation Evaluator::evaluate(const TrainingState& state, const Partition& partition,
                                    const std::atomic<bool>* stop) {
  const c10::NoGradGuard plain;
  const auto layers = layers_by_stage(partition);
  for (std::size_t s = 0; s < layers.size(); ++s) {
    const StageState& stage = state.stage[s];
    const StageVersion& newest = stage.versions.at(stage.newest);
    for (std::size_t i = 0; i < layers[s].size(); ++i) {
      std::vector<at::Tensor>& values = model_.weights[layers[s][i]].values;
      for (std::size_t k = 0; k < values.size(); ++k) {
        values[k] = newest.values[i][k].to(model_.options);
      }
    }
    set_statistics(model_, layers[s], stage.statistics[0]);
  }
  lab::Evaluation result;
  result.step = state.step;
  double lost = 0;
  std::int64_t right = 0;
  const std::size_t size = data_.test.size();
  for (std::size_t from = 0; from < size; from += at_once) {
    const std::size_t to = std::min(from + at_once, size);
    MicroBatch batch = empty_micro_batch(model_);
    batch.purpose = Purpose::evaluation;
    fill_test(data_, from, to, model_, batch);
    for (std::size_t layer = 0; layer < model_.layers.size(); ++layer) {
      stop_if(stop);
      forward(model_, layer, batch);
      if (layer + 1 < model_.layers.size()) batch.stash[layer].clear();
    }
    lost += batch.outputs.back().item<double>() * static_cast<double>(to - from);
    const at::Tensor& logs = batch.stash.back().back().kept[0].tensor;  // of the softmax
    right += logs.argmax(1).eq(batch.target).sum().item<std::int64_t>();
  }
  result.loss = lost / static_cast<double>(size);
  result.accuracy = static_cast<double>(right) / static_cast<double>(size);
  return result;
}

std::string digest(const TrainingState& state, const Partition& partition) {
  const auto layers = layers_by_stage(partition);
  std::vector<std::pair<std::size_t, const Tensors*>> ordered;
  for (std::size_t s = 0; s < layers.size(); ++s) {
    const StageVersion& newest = state.stage[s].versions.at(state.stage[s].newest);
    for (std::size_t i = 0; i < layers[s].size(); ++i) {
      ordered.emplace_back(layers[s][i], &newest.values[i]);
    }
  }
  std::sort(ordered.begin(), ordered.end());
  std::uint64_t sum = 14695981039346656037U;
  for (const auto& [layer, tensors] : ordered) {
    for (const at::Tensor& one : *tensors) {
      const at::Tensor here = one.detach().cpu().contiguous();
      const auto* const bytes = static_cast<const unsigned char*>(here.data_ptr());
      for (std::size_t i = 0; i < here.nbytes(); ++i) {
        sum = (sum ^ bytes[i]) * 1099511628211U;
      }
    }
  }
  return fmt::format("{:016x}", sum);
}

}  // namespace stageline::executor
