#include "tools/executor/train/delayed.hpp"

#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>

#include "sim/errors.hpp"
#include "sim/index.hpp"
#include "tools/executor/corrections/correction.hpp"
#include "tools/executor/run/execute.hpp"

namespace stageline {
namespace {

using at::Tensor;

// Whether a backward goes by its forward's weights because they have been kept.
bool keeps(WeightRule rule) {
  return rule == WeightRule::stash || rule == WeightRule::vertical_sync ||
         rule == WeightRule::double_buffer;
}

// A micro-batch on its way.
struct Underway {
  MicroBatch tensors;
  std::vector<MicroBatch> before;  // by stage: as I found it, for a W that makes its own way
};

class Delayed {
 public:
  Delayed(const DelayedJob& job, at::Device where)
      : job_(job),
        reads_(job.course.reads),
        corrections_(parse_corrections(job.correction)),
        model_(tensor_model(job.training.shape, job.training.optimizer,
                            at::TensorOptions(job.training.dtype).device(where),
                            job.training.seed)),
        stages_(reads_.stage.size()),
        states_(reads_, job.course.stops, job.course.show) {
    for (std::size_t layer = 0; layer < model_.layers.size(); ++layer) {
      nth(stages_, job.partition.stage_of[layer]).layers.push_back(layer);
    }
    const std::int64_t from = job.course.start.step;
    first_ = static_cast<std::uint32_t>(from * reads_.microbatches);
    for (std::size_t s = 0; s < stages_.size(); ++s) begin(s, from);
  }

  void train(const std::atomic<bool>* stop) {
    const c10::NoGradGuard plain;
    while (!all_done()) {
      if (stop != nullptr && *stop) throw Stopped();
      if (backwards() || forwards()) continue;
      throw std::logic_error(fmt::format(
          "delayed training: no pass can go on at micro-batch {}; the table of versions asks for "
          "weights that their own gradients wait for",
          stages_.back().forwards));
    }
  }

 private:
  struct Stage {
    std::vector<std::size_t> layers;
    std::map<std::uint32_t, StageVersion> versions;
    std::map<std::uint32_t, std::vector<std::vector<Tensors>>> sums;  // by update and replica
    std::vector<std::vector<Tensors>> spare;                          // sums of 0
    std::vector<std::vector<Tensors>> statistics;  // by replica; the one in use is in the model
    int replica_in_use = 0;
    std::uint32_t updated = 0;       // versions made: the newest one's number
    std::uint32_t forwards = 0;      // micro-batches done
    std::uint32_t input_grads = 0;   //
    std::uint32_t weight_grads = 0;  //
  };

  std::uint32_t total() const { return reads_.total(); }
  std::uint32_t updates_of(std::size_t s) const {
    const auto group = static_cast<std::uint32_t>(reads_.stage[s].group);
    return (total() + group - 1) / group;
  }
  bool all_done() const {
    return std::all_of(stages_.begin(), stages_.end(), [&](const Stage& stage) {
      return stage.input_grads == total() &&
             stage.updated == updates_of(as_size(&stage - stages_.data()));
    });
  }
  Underway& underway(std::uint32_t m) {
    const auto [at, fresh] = underway_.try_emplace(m);
    if (fresh) {
      at->second.tensors = empty_micro_batch(model_);
      if (reads_.by_step) at->second.tensors.loss_weight = 1.0 / reads_.microbatches;
      at->second.before.resize(stages_.size());
      job_.course.data.fill(m, model_, at->second.tensors);
    }
    return at->second;
  }

  void begin(std::size_t s, std::int64_t from) {
    Stage& stage = stages_[s];
    stage.updated = reads_.version_after(s, from);
    stage.forwards = stage.input_grads = stage.weight_grads = first_;
    const auto replicas = as_size(reads_.stage[s].replicas);
    if (job_.course.start.stage.empty()) {
      StageVersion drawn;
      for (const std::size_t layer : stage.layers) {
        drawn.values.push_back(model_.weights[layer].values);
        drawn.memory.emplace_back();
      }
      stage.versions[0] = std::move(drawn);
      stage.statistics.assign(replicas, statistics_of(model_, stage.layers));
      return;
    }
    const StageState& start = job_.course.start.stage[s];
    const auto here = [this](const Tensors& some) {
      Tensors result;
      for (const Tensor& one : some) result.push_back(one.to(model_.options, false, true));
      return result;
    };
    for (const auto& [number, version] : start.versions) {
      StageVersion& mine = stage.versions[number];
      for (const Tensors& layer : version.values) mine.values.push_back(here(layer));
      for (const Tensors& layer : version.memory) mine.memory.push_back(here(layer));
    }
    for (std::size_t i = 0; i < stage.layers.size(); ++i) {
      LayerWeights& weights = model_.weights[stage.layers[i]];
      weights.values = newest(s).values[i];
      weights.state = here(start.optimizer[i]);
      weights.updates = start.updates[i];
    }
    stage.statistics = start.statistics;
    set_statistics(model_, stage.layers, stage.statistics[0]);
  }

  const StageVersion& newest(std::size_t s) const {
    return stages_[s].versions.at(stages_[s].updated);
  }
  bool has(std::size_t s, std::uint32_t version) const { return version <= stages_[s].updated; }

  void read(std::size_t s, const std::vector<Tensors>& values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      model_.weights[stages_[s].layers[i]].values = values[i];
    }
  }

  // What F reads, and B where its forward's weights are kept.
  std::vector<Tensors> for_forward(std::size_t s, std::uint32_t number) const {
    const StageVersion& version = stages_[s].versions.at(number);
    if (!corrections_.predicts()) return version.values;
    std::vector<Tensors> result;
    for (std::size_t i = 0; i < version.values.size(); ++i) {
      result.push_back(
          corrections_.for_forward(version.values[i], version.memory[i], reads_.stage[s].delay));
    }
    return result;
  }

  std::vector<Tensors> for_backward(std::size_t s, std::uint32_t m, std::uint32_t number) const {
    const std::uint32_t of_forward = reads_.stage[s].forward[m];
    if (corrections_.rebuilds()) {
      const StageVersion& version = stages_[s].versions.at(number);
      std::vector<Tensors> result;
      for (std::size_t i = 0; i < version.values.size(); ++i) {
        result.push_back(
            corrections_.for_backward(version.values[i], version.memory[i],
                                      static_cast<int>(number) - static_cast<int>(of_forward)));
      }
      return result;
    }
    if (keeps(job_.weights)) return for_forward(s, of_forward);
    return stages_[s].versions.at(number).values;
  }

  // ---- passes: each says whether it could go on

  bool forwards() {
    // The deepest stage that can: it has the oldest micro-batch.
    for (std::size_t s = stages_.size(); s-- > 0;) {
      if (forward_next(s)) return true;
    }
    return false;
  }

  bool forward_next(std::size_t s) {
    Stage& stage = stages_[s];
    const std::uint32_t m = stage.forwards;
    if (m == total() || (s > 0 && stages_[s - 1].forwards <= m)) return false;
    if (!has(s, reads_.stage[s].forward[m])) return false;
    MicroBatch& batch = underway(m).tensors;
    const int replica = static_cast<int>(m % static_cast<std::uint32_t>(reads_.stage[s].replicas));
    use_statistics(stage, replica);
    read(s, for_forward(s, reads_.stage[s].forward[m]));
    for (const std::size_t layer : stage.layers) forward(model_, layer, batch);
    if (s + 1 == stages_.size()) job_.course.lost(m, batch.outputs.back().item<double>());
    ++stage.forwards;
    show_statistics(s, m, replica);
    return true;
  }

  void use_statistics(Stage& stage, int replica) {
    if (replica == stage.replica_in_use) return;
    nth(stage.statistics, stage.replica_in_use) = statistics_of(model_, stage.layers);
    set_statistics(model_, stage.layers, nth(stage.statistics, replica));
    stage.replica_in_use = replica;
  }

  bool backwards() {
    bool moved = false;
    for (std::size_t s = stages_.size(); s-- > 0;) {
      while (update_next(s) || weight_grad_next(s) || input_grad_next(s)) moved = true;
    }
    return moved;
  }

  // The gradient at the outputs of stage s is there.
  bool has_gradient(std::size_t s, std::uint32_t m) const {
    return m < stages_[s].forwards && (s + 1 == stages_.size() || stages_[s + 1].input_grads > m);
  }

  std::vector<Tensors>& sums(std::size_t s, std::uint32_t m) {
    Stage& stage = stages_[s];
    const StageReads& reads = reads_.stage[s];
    auto& by_replica = stage.sums[m / static_cast<std::uint32_t>(reads.group)];
    by_replica.resize(as_size(reads.replicas));
    auto& mine = by_replica[m % static_cast<std::uint32_t>(reads.replicas)];
    if (!mine.empty()) return mine;
    if (!stage.spare.empty()) {
      mine = std::move(stage.spare.back());
      stage.spare.pop_back();
      return mine;
    }
    for (const std::size_t layer : stage.layers) {
      Tensors& zeros = mine.emplace_back();
      for (const Tensor& value : model_.weights[layer].values)
        zeros.push_back(at::zeros_like(value));
    }
    return mine;
  }

  void swap_sums(std::size_t s, std::vector<Tensors>& sums) {
    for (std::size_t i = 0; i < sums.size(); ++i) {
      std::swap(model_.weights[stages_[s].layers[i]].gradients, sums[i]);
    }
  }

  // All layers of the stage downwards; what they add to weights' gradients goes into `to`.
  template <typename Pass>
  void descend(std::size_t s, MicroBatch& batch, std::vector<Tensors>& to, Pass pass) {
    swap_sums(s, to);
    const auto& layers = stages_[s].layers;
    for (std::size_t i = layers.size(); i-- > 0;) pass(model_, layers[i], batch);
    swap_sums(s, to);
  }

  bool weight_grad_next(std::size_t s) {
    Stage& stage = stages_[s];
    const StageReads& reads = reads_.stage[s];
    const std::uint32_t m = stage.weight_grads;
    if (reads.fused || m == total()) return false;
    Underway& one = underway(m);
    if (!reads.own_way[m]) {
      if (stage.input_grads <= m) return false;
      descend(s, one.tensors, sums(s, m), weight_grad);
    } else {
      if (!has_gradient(s, m) || !has(s, reads.weight_grad[m])) return false;
      MicroBatch once = stage.input_grads > m && !reads.input_grad.empty()
                            ? std::exchange(one.before[s], {})
                            : one.tensors;
      read(s, for_backward(s, m, reads.weight_grad[m]));
      descend(s, once, sums(s, m), backward);
    }
    ++stage.weight_grads;
    if (reads.input_grad.empty()) stage.input_grads = stage.weight_grads;
    leave(m);
    return true;
  }

  bool input_grad_next(std::size_t s) {
    Stage& stage = stages_[s];
    const StageReads& reads = reads_.stage[s];
    const std::uint32_t m = stage.input_grads;
    if (reads.input_grad.empty() || !has_gradient(s, m)) return false;
    for (const auto& part : reads.input_grad) {
      if (!has(s, part[m])) return false;
    }
    MicroBatch& batch = underway(m).tensors;
    std::vector<Tensor> passing(
        stage.layers.front());  // by layer below: from stages above this one
    std::swap_ranges(passing.begin(), passing.end(), batch.gradients.begin());
    if (reads.fused) {
      read(s, for_backward(s, m, reads.weight_grad[m]));
      descend(s, batch, sums(s, m), backward);
      ++stage.weight_grads;
    } else {
      input_grad_of_parts(s, m, batch);
    }
    for (std::size_t layer = 0; layer < passing.size(); ++layer) {
      if (!passing[layer].defined()) continue;
      Tensor& there = batch.gradients[layer];
      there = there.defined() ? passing[layer].add(there) : passing[layer];
    }
    ++stage.input_grads;
    leave(m);
    return true;
  }

  // Each part makes the whole with what it reads, and gives its share of the gradient.
  void input_grad_of_parts(std::size_t s, std::uint32_t m, MicroBatch& batch) {
    const StageReads& reads = reads_.stage[s];
    const bool w_is_done = stages_[s].weight_grads > m;
    if (reads.own_way[m] && !w_is_done) underway(m).before[s] = batch;
    const MicroBatch found = batch;
    std::map<std::uint32_t, std::vector<Tensor>> made;  // by version: gradients below the stage
    for (std::size_t part = 0; part < reads.input_grad.size(); ++part) {
      const std::uint32_t version = reads.input_grad[part][m];
      // W goes on from what the part on its own device leaves.
      const bool stays = reads.on_weight_device[part] || reads.input_grad.size() == 1;
      if (made.count(version) != 0 && !stays) continue;
      MicroBatch mine = found;
      // Norms add to their weights' gradients here; where W does that itself, it is dropped.
      std::vector<Tensors> dropped;
      for (const std::size_t layer : stages_[s].layers) {
        dropped.emplace_back(model_.weights[layer].values.size());
      }
      const bool counts = reads.on_weight_device[part] && !reads.own_way[m];
      read(s, for_backward(s, m, version));
      descend(s, mine, counts ? sums(s, m) : dropped, input_grad);
      made[version].assign(
          mine.gradients.begin(),
          mine.gradients.begin() + static_cast<std::ptrdiff_t>(stages_[s].layers.front()));
      if (stays) batch = std::move(mine);
    }
    for (std::size_t layer = 0; layer < stages_[s].layers.front(); ++layer) {
      batch.gradients[layer] = joined(s, m, layer, made);
    }
  }

  Tensor joined(std::size_t s, std::uint32_t m, std::size_t layer,
                const std::map<std::uint32_t, std::vector<Tensor>>& made) const {
    const Tensor& first = made.begin()->second[layer];
    if (made.size() == 1 || !first.defined()) return first;
    const StagePlace& place = job_.placement.stage[s];
    const StageReads& reads = reads_.stage[s];
    Tensors pieces;
    std::int64_t from = 0;
    for (std::size_t part = 0; part < reads.input_grad.size(); ++part) {
      const Tensor& whole = made.at(reads.input_grad[part][m])[layer];
      const std::int64_t size = part_of(whole.numel(), place, static_cast<int>(part));
      pieces.push_back(whole.reshape({-1}).narrow(0, from, size));
      from += size;
    }
    return at::cat(pieces).view(first.sizes());
  }

  void leave(std::uint32_t m) {
    const bool over = std::all_of(stages_.begin(), stages_.end(), [&](const Stage& stage) {
      return stage.input_grads > m && stage.weight_grads > m;
    });
    if (over) underway_.erase(m);
  }

  // As soon as its micro-batches' gradients are there.
  bool update_next(std::size_t s) {
    Stage& stage = stages_[s];
    const StageReads& reads = reads_.stage[s];
    const auto group = static_cast<std::uint32_t>(reads.group);
    const std::uint32_t number = stage.updated;
    if (number >= updates_of(s) || stage.weight_grads < std::min((number + 1) * group, total())) {
      return false;
    }
    const std::int64_t step = reads_.by_step ? number : std::int64_t{number} * group;
    const OptimizerStep numbers =
        step_of_update(job_.training.recipe, corrections_, step, reads.delay);
    std::vector<Tensors> sum = reduced(s, number);
    const StageVersion before = newest(s);
    read(s, before.values);
    swap_sums(s, sum);
    StageVersion after;
    for (std::size_t i = 0; i < stage.layers.size(); ++i) {
      LayerWeights& weights = model_.weights[stage.layers[i]];
      update(model_, stage.layers[i], numbers, NewWeights::beside);
      zero_gradients(weights);
      after.memory.push_back(
          corrections_.remember(before.memory[i], before.values[i], weights.values));
      after.values.push_back(weights.values);
    }
    swap_sums(s, sum);
    if (reads.replicas == 1) stage.spare.push_back(std::move(sum));
    stage.versions[++stage.updated] = std::move(after);
    show_weights(s);
    const std::size_t next = std::size_t{stage.updated} * group;
    std::uint32_t needed = next < total() ? reads.oldest[next] : stage.updated;
    needed = std::min(needed, pending(s));
    stage.versions.erase(stage.versions.begin(),
                         stage.versions.lower_bound(std::min(needed, stage.updated)));
    return true;
  }

  // The oldest version that a pass reads which is still to come, of micro-batches begun.
  std::uint32_t pending(std::size_t s) const {
    const Stage& stage = stages_[s];
    const std::uint32_t from = std::min({stage.forwards, stage.input_grads, stage.weight_grads});
    return from < total() ? reads_.stage[s].oldest[from] : stage.updated;
  }

  std::vector<Tensors> reduced(std::size_t s, std::uint32_t number) {
    auto by_replica = std::move(stages_[s].sums.at(number));
    stages_[s].sums.erase(number);
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
    for (Tensors& layer : sum) {
      for (Tensor& gradient : layer) {
        if (!reads_.by_step && count > 1) gradient.div_(count);
      }
    }
    return sum;
  }

  // ---- states

  StageState state_of(std::size_t s, bool whole) {
    Stage& stage = stages_[s];
    StageState state;
    state.newest = stage.updated;
    state.versions[stage.updated] = newest(s);
    const std::size_t next = std::size_t{stage.updated} * as_size(reads_.stage[s].group);
    if (whole && next < total()) {
      for (auto one = stage.versions.lower_bound(reads_.stage[s].oldest[next]);
           one != stage.versions.end(); ++one) {
        state.versions.insert(*one);
      }
    }
    for (const std::size_t layer : stage.layers) {
      const LayerWeights& weights = model_.weights[layer];
      state.updates.push_back(weights.updates);
      Tensors& mine = state.optimizer.emplace_back();
      for (const Tensor& one : weights.state) {
        if (whole) mine.push_back(one.clone());
      }
    }
    nth(stage.statistics, stage.replica_in_use) = statistics_of(model_, stage.layers);
    state.statistics = stage.statistics;
    return state;
  }

  void show_weights(std::size_t s) {
    for (std::size_t i = states_.first(); i < states_.size(); ++i) {
      const std::uint32_t version = reads_.version_after(s, states_.stop(i).step);
      if (version > stages_[s].updated) break;
      if (version != stages_[s].updated) continue;
      StageState mine = state_of(s, states_.stop(i).whole);
      states_.put(i, [&](TrainingState& state) {
        mine.statistics = std::move(state.stage[s].statistics);
        state.stage[s] = std::move(mine);
      });
    }
  }

  void show_statistics(std::size_t s, std::uint32_t m, int replica) {
    for (std::size_t i = states_.first(); i < states_.size(); ++i) {
      const std::int64_t end = states_.stop(i).step * reads_.microbatches;
      if (end > std::int64_t{m} + reads_.stage[s].replicas) break;
      if (m >= end) continue;
      states_.put(i, [&](TrainingState& state) {
        nth(state.stage[s].statistics, replica) = statistics_of(model_, stages_[s].layers);
      });
    }
  }

  const DelayedJob& job_;
  const Reads& reads_;
  Corrections corrections_;
  TensorModel model_;
  std::vector<Stage> stages_;
  StatesToShow states_;
  std::uint32_t first_ = 0;
  std::map<std::uint32_t, Underway> underway_;
};

}  // namespace

void train_delayed(const DelayedJob& job, at::Device where, const std::atomic<bool>* stop) {
  Delayed(job, where).train(stop);
}

}  // namespace stageline
