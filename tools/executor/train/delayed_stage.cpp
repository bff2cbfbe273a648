// Weights, gradients and statistics of one stage of a delayed training.
#include "tools/executor/train/delayed_stage.hpp"

#include <algorithm>
#include <utility>

#include "sim/base/index.hpp"

namespace stageline::executor {

using at::Tensor;

DelayedStage::DelayedStage(const DelayedJob& job, const Corrections& corrections,
                           TensorModel& model, std::size_t stage)
    : job_(job),
      whole_plan_(job.plan.versions),
      plan_(whole_plan_.stage[stage]),
      corrections_(corrections),
      model_(model),
      stage_(stage) {
  for (std::size_t layer = 0; layer < model.layers.size(); ++layer) {
    if (nth(job.partition.stage_of, layer) == static_cast<int>(stage)) layers_.push_back(layer);
  }
  begin();
}

void DelayedStage::begin() {
  updated_ = whole_plan_.version_after(stage_, job_.plan.start.step);
  if (job_.plan.start.stage.empty()) {
    StageVersion drawn;
    for (const std::size_t layer : layers_) {
      drawn.values.push_back(model_.weights[layer].values);
      drawn.memory.emplace_back();
    }
    versions_[0] = std::move(drawn);
    statistics_.assign(as_size(plan_.replicas), statistics_of(model_, layers_));
    return;
  }
  const StageState& start = job_.plan.start.stage[stage_];
  const auto here = [this](const Tensors& some) {
    Tensors result;
    for (const Tensor& one : some) result.push_back(one.to(model_.options, false, true));
    return result;
  };
  for (const auto& [number, version] : start.versions) {
    StageVersion& mine = versions_[number];
    for (const Tensors& layer : version.values) mine.values.push_back(here(layer));
    for (const Tensors& layer : version.memory) mine.memory.push_back(here(layer));
  }
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    LayerWeights& weights = model_.weights[layers_[i]];
    weights.values = newest().values[i];
    weights.state = here(start.optimizer[i]);
    weights.updates = start.updates[i];
  }
  statistics_ = start.statistics;
  set_statistics(model_, layers_, statistics_[0]);
}

std::uint32_t DelayedStage::updates() const {
  const auto group = static_cast<std::uint32_t>(plan_.group);
  return (whole_plan_.total() + group - 1) / group;
}

// ---- what passes read

void DelayedStage::use(const std::vector<Tensors>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) model_.weights[layers_[i]].values = values[i];
}

std::vector<Tensors> DelayedStage::for_forward(std::uint32_t number) const {
  const StageVersion& version = versions_.at(number);
  if (!corrections_.predicts()) return version.values;
  std::vector<Tensors> result;
  for (std::size_t i = 0; i < version.values.size(); ++i) {
    result.push_back(corrections_.for_forward(version.values[i], version.memory[i], plan_.delay));
  }
  return result;
}

std::vector<Tensors> DelayedStage::for_backward(std::uint32_t m, std::uint32_t number) const {
  const std::uint32_t of_forward = plan_.forward[m];
  if (corrections_.rebuilds()) {
    const StageVersion& version = versions_.at(number);
    std::vector<Tensors> result;
    for (std::size_t i = 0; i < version.values.size(); ++i) {
      result.push_back(
          corrections_.for_backward(version.values[i], version.memory[i],
                                    static_cast<int>(number) - static_cast<int>(of_forward)));
    }
    return result;
  }
  if (keeps_versions(job_.weights)) return for_forward(of_forward);
  return versions_.at(number).values;
}

void DelayedStage::use_statistics(int replica) {
  if (replica == replica_in_use_) return;
  nth(statistics_, replica_in_use_) = statistics_of(model_, layers_);
  set_statistics(model_, layers_, nth(statistics_, replica));
  replica_in_use_ = replica;
}

// ---- gradients

void DelayedStage::descend(std::vector<Tensors>& to, MicroBatch& batch, LayerPass pass) {
  swap_sums(to);
  for (std::size_t i = layers_.size(); i-- > 0;) pass(model_, layers_[i], batch);
  swap_sums(to);
}

void DelayedStage::swap_sums(std::vector<Tensors>& sums) {
  for (std::size_t i = 0; i < sums.size(); ++i) {
    std::swap(model_.weights[layers_[i]].gradients, sums[i]);
  }
}

std::vector<Tensors> DelayedStage::no_sums() const {
  std::vector<Tensors> sums;
  for (const std::size_t layer : layers_) sums.emplace_back(model_.weights[layer].values.size());
  return sums;
}

std::vector<Tensors>& DelayedStage::sums(std::uint32_t m) {
  auto& by_replica = sums_[m / static_cast<std::uint32_t>(plan_.group)];
  by_replica.resize(as_size(plan_.replicas));
  auto& mine = by_replica[m % static_cast<std::uint32_t>(plan_.replicas)];
  if (!mine.empty()) return mine;
  if (!spare_.empty()) {
    mine = std::move(spare_.back());
    spare_.pop_back();
    return mine;
  }
  for (const std::size_t layer : layers_) {
    Tensors& zeros = mine.emplace_back();
    for (const Tensor& value : model_.weights[layer].values) zeros.push_back(at::zeros_like(value));
  }
  return mine;
}

std::vector<Tensors> DelayedStage::reduced() {
  auto by_replica = std::move(sums_.at(updated_));
  sums_.erase(updated_);
  if (by_replica.size() == 1) return std::move(by_replica[0]);
  std::vector<Tensors> sum;
  double count = 0;
  for (std::vector<Tensors>& one : by_replica) {
    if (one.empty()) continue;
    count += 1;
    if (sum.empty()) {
      sum = std::move(one);
      continue;
    }
    for (std::size_t i = 0; i < sum.size(); ++i) {
      for (std::size_t k = 0; k < sum[i].size(); ++k) sum[i][k].add_(one[i][k]);
    }
  }
  if (whole_plan_.by_step || count <= 1) return sum;
  for (Tensors& layer : sum) {
    for (Tensor& gradient : layer) gradient.div_(count);
  }
  return sum;
}

// ---- updates

void DelayedStage::update() {
  const std::int64_t step = whole_plan_.by_step ? updated_ : std::int64_t{updated_} * plan_.group;
  const OptimizerStep numbers =
      corrections_.optimizer_step(job_.training.recipe, step, plan_.delay);
  std::vector<Tensors> sum = reduced();
  const StageVersion before = newest();
  use(before.values);
  swap_sums(sum);
  StageVersion after;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    LayerWeights& weights = model_.weights[layers_[i]];
    executor::update(model_, layers_[i], numbers, NewWeights::beside);
    zero_gradients(weights);
    after.memory.push_back(
        corrections_.remember(before.memory[i], before.values[i], weights.values));
    after.values.push_back(weights.values);
  }
  swap_sums(sum);
  if (plan_.replicas == 1) spare_.push_back(std::move(sum));
  versions_[++updated_] = std::move(after);
}

void DelayedStage::drop_unneeded(std::uint32_t pending) {
  const std::uint32_t total = whole_plan_.total();
  const std::size_t next = std::size_t{updated_} * as_size(plan_.group);
  std::uint32_t needed = updated_;
  if (next < total) needed = std::min(needed, plan_.oldest[next]);
  if (pending < total) needed = std::min(needed, plan_.oldest[pending]);
  versions_.erase(versions_.begin(), versions_.lower_bound(needed));
}

StageState DelayedStage::state(bool whole) {
  StageState state;
  state.newest = updated_;
  state.versions[updated_] = newest();
  const std::size_t next = std::size_t{updated_} * as_size(plan_.group);
  if (whole && next < whole_plan_.total()) {
    for (auto one = versions_.lower_bound(plan_.oldest[next]); one != versions_.end(); ++one) {
      state.versions.insert(*one);
    }
  }
  for (const std::size_t layer : layers_) {
    const LayerWeights& weights = model_.weights[layer];
    state.updates.push_back(weights.updates);
    Tensors& mine = state.optimizer.emplace_back();
    for (const Tensor& one : weights.state) {
      if (whole) mine.push_back(one.clone());
    }
  }
  nth(statistics_, replica_in_use_) = statistics_of(model_, layers_);
  state.statistics = statistics_;
  return state;
}

}  // namespace stageline::executor
