// The part of StageTensors that makes a run a training: where it begins, which versions its passes
// are told to read, what the optimizer does at which step, and the states that it shows.
#include <algorithm>
#include <utility>

#include "sim/index.hpp"
#include "tools/executor/devices/device.hpp"
#include "tools/executor/run/stage_tensors.hpp"

namespace stageline {
namespace {

using at::Tensor;

Tensors copies(const Tensors& some) {
  Tensors result;
  for (const Tensor& tensor : some) result.push_back(tensor.detach().clone());
  return result;
}

}  // namespace

void StageTensors::set_up_course() {
  const Course& course = *job_.course;
  const std::int64_t from = course.start.step;
  first_microbatch_ = static_cast<std::uint32_t>(from * course.reads.microbatches);
  for (std::size_t s = 0; s < holds_.size(); ++s) {
    base_[s] = course.reads.version_after(s, from);
    if (holds_[s] && !course.start.stage.empty()) begin_at(s, course.start.stage[s]);
    for (const Op op : nth(job_.program.ops, device_)) {
      if (op.stage != s || op.kind == OpKind::update) continue;
      if (lane_of(op.kind) != LaneKind::compute) continue;
      oldest_read_[s].push_back(version_told(op).value_or(base_[s]));
    }
    for (std::size_t i = oldest_read_[s].size(); i-- > 1;) {
      oldest_read_[s][i - 1] = std::min(oldest_read_[s][i - 1], oldest_read_[s][i]);
    }
  }
}

void StageTensors::begin_at(std::size_t stage, const StageState& start) {
  const auto here = [this](const Tensors& some) {
    Tensors result;
    for (const Tensor& tensor : some) result.push_back(tensor.to(model_.options, false, true));
    return result;
  };
  const auto all_here = [&](const std::vector<Tensors>& some) {
    std::vector<Tensors> result;
    for (const Tensors& layer : some) result.push_back(here(layer));
    return result;
  };
  for (const auto& [number, version] : start.versions) {
    StageVersion mine{all_here(version.values), all_here(version.memory)};
    if (number != start.newest) {
      past_[stage][number] = std::move(mine);
      continue;
    }
    for (std::size_t i = 0; i < mine.values.size(); ++i) {
      LayerWeights& weights = model_.weights[cut_.layers[stage][i]];
      weights.values = std::move(mine.values[i]);
      weights.state = here(start.optimizer[i]);
      weights.updates = start.updates[i];
    }
    memory_[stage] = std::move(mine.memory);
  }
  const int replica = replica_of(static_cast<int>(stage));
  if (replica >= 0) {
    set_statistics(model_, cut_.layers[stage], nth(start.statistics, replica));
  }
}

int StageTensors::replica_of(int stage) const {
  const auto& replicas = nth(job_.program.placement.stage, stage).replicas;
  const auto found = std::find(replicas.begin(), replicas.end(), device_);
  return found == replicas.end() ? -1 : static_cast<int>(found - replicas.begin());
}

// Of a pass; nothing: no course says it, or the pass reads no weights.
std::optional<std::uint32_t> StageTensors::version_told(Op op) const {
  if (!job_.course) return std::nullopt;
  const StageReads& reads = job_.course->reads.stage[op.stage];
  const std::uint32_t m = microbatch_of(op);
  switch (op.kind) {
    case OpKind::forward:
    case OpKind::recompute:
      return reads.forward[m];
    case OpKind::input_grad:
      return reads.input_grad[op.part][m];
    case OpKind::backward:
      return reads.weight_grad[m];
    case OpKind::weight_grad:
      if (!reads.own_way[m]) return std::nullopt;
      return reads.weight_grad[m];
    case OpKind::update:
    case OpKind::reduce_grad:
    case OpKind::send_forward:
    case OpKind::receive_forward:
    case OpKind::send_backward:
    case OpKind::receive_backward:
    case OpKind::offload:
    case OpKind::prefetch:
    case OpKind::send_stash:
    case OpKind::receive_stash:
    case OpKind::send_weights:
    case OpKind::receive_weights:
      return std::nullopt;
  }
  return std::nullopt;
}

// Where weights come from another device they may still be on their way.
void StageTensors::await_version(Op op) {
  const std::uint32_t told = version_told(op).value_or(0);
  while (newest_[op.stage] < told) {
    mail_.pause();
    take_in_weights(op.stage);
  }
}

// Those that no pass here will read, and no state from which a run could go on.
void StageTensors::drop_old_versions(int stage) {
  const auto s = as_size(stage);
  const StageReads& reads = job_.course->reads.stage[s];
  std::uint32_t needed = newest_[s];
  if (passes_done_[s] < oldest_read_[s].size()) {
    needed = std::min(needed, oldest_read_[s][passes_done_[s]]);
  }
  // The updates so far have closed these micro-batches.
  const std::size_t next = std::size_t{newest_[s]} * as_size(reads.group);
  if (next < reads.oldest.size()) needed = std::min(needed, reads.oldest[next]);
  past_[s].erase(past_[s].begin(), past_[s].lower_bound(needed));
}

OptimizerStep StageTensors::step_of_update(int stage) const {
  const auto s = as_size(stage);
  const bool by_step = updates_by_step(job_.program.weights);
  const std::int64_t step =
      by_step ? newest_[s]
              : std::int64_t{newest_[s]} * microbatches_per_update(job_.program, stage);
  const int delay = job_.staleness.empty() ? 0 : job_.staleness[s];
  return stageline::step_of_update(job_.training.recipe, corrections_, step, delay);
}

OptimizerStep step_of_update(const Recipe& recipe, const Corrections& corrections,
                             std::int64_t step, int delay) {
  OptimizerStep result;
  result.rate = rate_at(recipe, step);
  result.momentum = recipe.momentum;
  result.weight_decay = recipe.weight_decay;
  corrections.adjust(result, {delay, step, recipe.steps});
  return result;
}

// ---- states

// Behind a forward: for the stops before this replica's next one; behind a flushed step's update,
// for that step's end.
void StageTensors::show_statistics(Op op) {
  const int replica = replica_of(op.stage);
  if (replica < 0 || exchange_.states == nullptr) return;
  const Course& course = *job_.course;
  StatesToShow& states = *exchange_.states;
  const auto s = as_size(op.stage);
  const StageReads& reads = course.reads.stage[s];
  const std::int64_t m = microbatch_of(op);
  for (std::size_t i = states.first(); i < states.size(); ++i) {
    const std::int64_t end = states.stop(i).step * course.reads.microbatches;
    if (end > m + reads.replicas && states.stop(i).step > newest_[s]) break;
    const bool now = gathers_at_update() ? newest_[s] == states.stop(i).step
                                         : m < end && end <= m + reads.replicas;
    if (!now) continue;
    states.put(i, [&](TrainingState& state) {
      nth(state.stage[s].statistics, replica) = statistics_of(model_, cut_.layers[s]);
    });
  }
}

// Behind an update.
void StageTensors::show_weights(int stage) {
  if (exchange_.states == nullptr) return;
  const Course& course = *job_.course;
  StatesToShow& states = *exchange_.states;
  const auto s = as_size(stage);
  if (gathers_at_update()) {
    Op update;
    update.kind = OpKind::update;
    update.stage = static_cast<std::uint16_t>(stage);
    show_statistics(update);
  }
  if (replica_of(stage) > 0) return;  // the first one's are theirs
  for (std::size_t i = states.first(); i < states.size(); ++i) {
    const std::uint32_t version = course.reads.version_after(s, states.stop(i).step);
    if (version > newest_[s]) break;
    if (version != newest_[s]) continue;
    StageState mine;
    mine.newest = newest_[s];
    mine.versions[newest_[s]] = newest_version(stage);
    for (const std::size_t layer : cut_.layers[s]) {
      const LayerWeights& weights = model_.weights[layer];
      mine.updates.push_back(weights.updates);
      mine.optimizer.push_back(states.stop(i).whole ? copies(weights.state) : Tensors{});
    }
    const std::vector<std::uint32_t>& oldest = course.reads.stage[s].oldest;
    const auto next = as_size(states.stop(i).step * course.reads.microbatches);
    if (states.stop(i).whole && next < oldest.size()) {
      for (auto past = past_[s].lower_bound(oldest[next]); past != past_[s].end(); ++past) {
        mine.versions.insert(*past);
      }
    }
    states.put(i, [&](TrainingState& state) {
      mine.statistics = std::move(state.stage[s].statistics);
      state.stage[s] = std::move(mine);
    });
  }
}

}  // namespace stageline
