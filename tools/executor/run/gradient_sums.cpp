// Sums weight gradients over micro-batches and replicas.
#include "tools/executor/run/gradient_sums.hpp"

#include <algorithm>
#include <utility>

namespace stageline::executor {
namespace {

using at::Tensor;

std::vector<Tensors> zeros_of(const DeviceModel& here, int stage) {
  std::vector<Tensors> all;
  for (const std::size_t layer : here.layers_of(stage)) {
    Tensors& zeros = all.emplace_back();
    for (const Tensor& value : here.model.weights[layer].values) {
      zeros.push_back(at::zeros_like(value));
    }
  }
  return all;
}

}  // namespace

GradientSums::GradientSums(DeviceModel& here, Exchange& exchange, const StageMessages& messages)
    : here_(here), exchange_(exchange), messages_(messages) {
  const int stages = here.job.program.stages();
  sums_.resize(as_size(stages));
  summed_.resize(as_size(stages));
  spare_.resize(as_size(stages));
  for (int s = 0; s < stages; ++s) {
    if (here.has_role(s, OpKind::weight_grad)) nth(spare_, s).push_back(zeros_of(here, s));
  }
}

std::uint32_t GradientSums::update_of(Op op) const {
  return op.microbatch /
         static_cast<std::uint32_t>(microbatches_per_update(here_.job.program, op.stage));
}

std::vector<Tensors>& GradientSums::of(int stage, std::uint32_t update) {
  const auto s = as_size(stage);
  const auto [at, fresh] = sums_[s].try_emplace(update);
  if (!fresh) return at->second;
  if (spare_[s].empty()) {
    at->second = zeros_of(here_, stage);
  } else {
    at->second = std::move(spare_[s].back());
    spare_[s].pop_back();
  }
  return at->second;
}

void GradientSums::note_weight_grad(Op op) {
  const auto s = as_size(op.stage);
  const std::vector<int>& replicas = here_.place(op.stage).replicas;
  if (replicas.size() < 2) return;
  const auto size =
      static_cast<std::uint32_t>(microbatches_per_update(here_.job.program, op.stage));
  const std::uint32_t number = update_of(op);
  const std::uint32_t last = std::min((number + 1) * size, here_.job.program.total_microbatches());
  int mine = 0;
  for (std::uint32_t m = number * size; m < last; ++m) {
    mine += replicas[m % replicas.size()] == here_.device ? 1 : 0;
  }
  if (++summed_[s][number] != mine) return;
  Tensors& shown = exchange_.reductions[s][number]->of_replica[op.microbatch % replicas.size()];
  for (const Tensors& layer : of(op)) shown.insert(shown.end(), layer.begin(), layer.end());
  sums_[s].erase(number);
}

std::vector<Tensors> GradientSums::reduced(Op update) {
  const auto s = as_size(update.stage);
  const std::size_t replicas = here_.place(update.stage).replicas.size();
  if (replicas < 2) {
    std::vector<Tensors> mine = std::move(of(update.stage, update.microbatch));
    sums_[s].erase(update.microbatch);
    return mine;
  }
  Reduction& reduction = *exchange_.reductions[s][update.microbatch];
  const std::vector<std::size_t>& layers = here_.layers_of(update.stage);
  std::vector<Tensors> sum(layers.size());
  double count = 0;
  for (const Tensors& of_replica : reduction.of_replica) {
    if (of_replica.empty()) continue;  // no micro-batch of this update was its own
    count += 1;
    std::size_t next = 0;
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i].resize(here_.model.weights[layers[i]].values.size());
      for (Tensor& gradient : sum[i]) {
        const Tensor its = messages_.for_use_here(of_replica[next++]);
        gradient = gradient.defined() ? gradient.add_(its) : its.clone();
      }
    }
  }
  // Each micro-batch is a mini-batch of its own: the update takes their mean.
  if (!updates_by_step(here_.job.program.settings.weights) && count > 1) {
    for (Tensors& layer : sum) {
      for (Tensor& gradient : layer) gradient.div_(count);
    }
  }
  if (++reduction.read == static_cast<int>(replicas)) reduction.of_replica.clear();
  return sum;
}

void GradientSums::give_back(Op update, std::vector<Tensors> zeros) {
  if (spare_[update.stage].empty()) spare_[update.stage].push_back(std::move(zeros));
  summed_[update.stage].erase(update.microbatch);
}

void GradientSums::clear() {
  for (auto& of_stage : sums_) of_stage.clear();
  for (auto& of_stage : summed_) of_stage.clear();
}

void SumsInUse::swap() {
  const std::vector<std::size_t>& layers = here_.layers_of(stage_);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    std::swap(here_.model.weights[layers[i]].gradients, sums_[i]);
  }
}

}  // namespace stageline::executor
