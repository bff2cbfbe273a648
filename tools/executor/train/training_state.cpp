// Collects the parts of a state from several workers.
#include "tools/executor/train/training_state.hpp"

#include "sim/base/index.hpp"

namespace stageline::executor {

std::vector<Tensors> statistics_of(const TensorModel& model,
                                   const std::vector<std::size_t>& layers) {
  std::vector<Tensors> result;
  for (const std::size_t layer : layers) {
    Tensors& of_layer = result.emplace_back();
    for (const TensorOp& op : model.layers[layer].ops) {
      if (!keeps_statistics(op)) continue;
      for (const at::Tensor& buffer : op.buffers) of_layer.push_back(buffer.clone());
    }
  }
  return result;
}

void set_statistics(TensorModel& model, const std::vector<std::size_t>& layers,
                    const std::vector<Tensors>& statistics) {
  for (std::size_t i = 0; i < layers.size(); ++i) {
    std::size_t next = 0;
    for (TensorOp& op : model.layers[layers[i]].ops) {
      if (!keeps_statistics(op)) continue;
      for (at::Tensor& buffer : op.buffers)
        buffer = statistics[i].at(next++).to(buffer.device(), false, true);
    }
  }
}

StatesToShow::StatesToShow(const VersionPlan& plan, std::vector<Stop> stops, ShowState show)
    : show_(std::move(show)) {
  for (const Stop& stop : stops) {
    Awaited& one = awaited_.emplace_back();
    one.stop = stop;
    one.state.step = stop.step;
    one.state.stage.resize(plan.stage.size());
    for (std::size_t s = 0; s < plan.stage.size(); ++s) {
      one.state.stage[s].statistics.resize(as_size(plan.stage[s].replicas));
      one.parts_left += 1 + plan.stage[s].replicas;
    }
  }
}

void StatesToShow::put(std::size_t stop, const std::function<void(TrainingState&)>& part) {
  Awaited& one = awaited_[stop];
  const std::lock_guard lock(mutex_);
  part(one.state);
  if (--one.parts_left > 0) return;
  first_ = stop + 1;  // every stage passes them in their order
  show_(std::move(one.state));
}

}  // namespace stageline::executor
