// The reference of a run: the same training as one sequence of passes, plain or as stale as the
// run.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "sim/base/index.hpp"
#include "tools/executor/run/execute.hpp"
#include "tools/executor/run/micro_batches.hpp"

namespace stageline::executor::sequential {

using Values = std::vector<at::Tensor>;

inline Values clones(const Values& values) {
  Values result;
  for (const at::Tensor& value : values) result.push_back(value.detach().clone());
  return result;
}

struct Trained {
  std::vector<Values> weights;  // by layer
  std::vector<double> losses;   // by micro-batch, whose sequences are whole
};

/// Tokens of sequence n of a run, whole; 0: as the shape says.
inline std::int64_t length_of(const Job& job, int n) {
  const std::vector<std::int64_t>& lengths = job.training.lengths;
  if (lengths.empty() || job.program.settings.sequence_chunks > 1) return 0;
  return lengths[as_size(n) % lengths.size()];
}

/// The losses of whole sequences, of those of slices: each is a mean over its tokens.
inline std::vector<double> of_whole_sequences(const Job& job, const std::vector<double>& losses) {
  const int slices = job.program.settings.sequence_chunks;
  const std::vector<std::int64_t>& lengths = job.training.lengths;
  std::vector<double> whole(losses.size() / as_size(slices));
  for (std::size_t m = 0; m < losses.size(); ++m) {
    const double share = lengths.empty() || slices == 1
                             ? 1.0 / slices
                             : static_cast<double>(lengths[m % lengths.size()]) /
                                   static_cast<double>(most_tokens(job.training.shape));
    whole[m / as_size(slices)] += share * losses[m];
  }
  return whole;
}

/// Plain training: one device, autograd, every micro-batch of a step, then an update. What is
/// learned from is the mean loss of a step's tokens, or images; no sequence is cut.
inline Trained plain_training(const Job& job) {
  const Training& training = job.training;
  TensorModel model = tensor_model(training.shape, training.optimizer,
                                   at::TensorOptions(training.dtype), training.seed);
  Trained result;
  for (int step = 0; step < job.program.steps; ++step) {
    zero_gradients(model);
    const int count = job.program.microbatches / job.program.settings.sequence_chunks;
    double rows = 0;
    for (int i = 0; i < count; ++i) {
      rows += length_of(job, i) > 0 ? static_cast<double>(length_of(job, i)) : 1.0;
    }
    for (int i = 0; i < count; ++i) {
      const int m = step * count + i;
      MicroBatch batch = random_micro_batch(
          model, training.batch,
          training.seed + 1 + static_cast<std::uint64_t>(m % training.distinct), length_of(job, i));
      const at::Tensor loss = whole_forward(model, batch);
      result.losses.push_back(loss.item<double>());
      whole_backward(
          model,
          loss * ((length_of(job, i) > 0 ? static_cast<double>(length_of(job, i)) : 1.0) / rows));
    }
    for (std::size_t layer = 0; layer < model.layers.size(); ++layer) {
      update(model, layer, {training.recipe.rate});
    }
  }
  for (const LayerWeights& weights : model.weights)
    result.weights.push_back(clones(weights.values));
  return result;
}

/// The versions that the passes of a stage read in a run.
struct StageReads {
  std::vector<std::uint32_t> forward;      // version read, by micro-batch
  std::vector<std::uint32_t> input_grad;   // by micro-batch; also of B
  std::vector<std::uint32_t> weight_grad;  // by micro-batch
  bool mixed = false;  // parts of one I have read different versions (only a correction lets them)
  bool apart = false;  // W does not follow I on its device: it makes its own way through the stage
};

inline std::vector<StageReads> reads_of(const Job& job, const Execution& run) {
  const std::size_t total = job.program.total_microbatches();
  std::vector<StageReads> reads(as_size(job.program.stages()));
  std::vector<int> input_grad_on(reads.size(), -1);
  std::set<std::pair<int, std::uint32_t>> seen;
  for (StageReads& stage : reads) {
    stage.forward.resize(total);
    stage.input_grad.resize(total);
    stage.weight_grad.resize(total);
  }
  for (std::uint32_t task = 0; task < run.graph.tasks(); ++task) {
    const Op op = run.graph.op[task];
    StageReads& stage = reads[op.stage];
    const int device = run.graph.lanes[run.graph.lane[task]].device;
    const std::uint32_t version = run.version[task];
    if (op.kind == OpKind::forward) stage.forward[op.microbatch] = version;
    if (op.kind == OpKind::backward || op.kind == OpKind::input_grad) {
      std::uint32_t& there = stage.input_grad[op.microbatch];
      const bool another = !seen.insert({op.stage, op.microbatch}).second;
      stage.mixed = stage.mixed || (another && there != version);
      there = version;
      input_grad_on[op.stage] = device;
    }
    if (op.kind == OpKind::backward || op.kind == OpKind::weight_grad) {
      stage.weight_grad[op.microbatch] = version;
      if (op.kind == OpKind::weight_grad) {
        stage.apart = input_grad_on[op.stage] != device || job.program.independent_w[op.stage];
      }
    }
  }
  return reads;
}

/// Stale training, one pass after the other: each reads the version that it read in the run, and
/// the updates of each stage follow in their order.
class StaleTraining {
 public:
  StaleTraining(const Job& job, const std::vector<StageReads>& reads)
      : job_(job),
        reads_(reads),
        model_(tensor_model(job.training.shape, job.training.optimizer,
                            at::TensorOptions(job.training.dtype), job.training.seed)),
        versions_(model_.layers.size()),
        drift_(model_.layers.size(), {Values{}}),
        forwards_(reads.size()),
        backwards_(reads.size()),
        weight_grads_(reads.size()),
        updates_(reads.size()),
        before_(reads.size()) {
    for (std::size_t l = 0; l < versions_.size(); ++l) {
      versions_[l].push_back(clones(model_.weights[l].values));
    }
    zero_gradients(model_);
    const Training& training = job.training;
    for (std::uint32_t m = 0; m < total(); ++m) {
      batches_.push_back(
          random_micro_batch(model_, training.batch,
                             training.seed + 1 + m % static_cast<std::uint64_t>(training.distinct),
                             length_of(job, static_cast<int>(m))));
      // The sum of an update is divided by the number of its micro-batches.
      if (!updates_by_step(job.program.settings.weights)) continue;
      batches_.back().loss_weight = loss_weight_of(job, m) * job.program.microbatches;
    }
  }

  Trained train() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::size_t s = 0; s < reads_.size(); ++s) {
        while (update_next(s) || weight_grad_next(s) || backward_next(s) || forward_next(s)) {
          moved = true;
        }
      }
    }
    for (const std::uint32_t done : weight_grads_) REQUIRE(done == total());
    for (std::size_t l = 0; l < versions_.size(); ++l) {
      result_.weights.push_back(clones(versions_[l].back()));
    }
    return result_;
  }

 private:
  std::uint32_t total() const { return job_.program.total_microbatches(); }
  std::vector<std::size_t> layers_of(std::size_t s) const {
    std::vector<std::size_t> layers;
    for (std::size_t l = 0; l < model_.layers.size(); ++l) {
      if (job_.partition.stage_of[l] == static_cast<int>(s)) layers.push_back(l);
    }
    return layers;
  }
  bool has(std::size_t s, std::uint32_t version) const { return version <= updates_[s]; }

  bool forward_next(std::size_t s) {
    const std::uint32_t m = forwards_[s];
    if (m == total() || (s > 0 && forwards_[s - 1] <= m) || !has(s, reads_[s].forward[m])) {
      return false;
    }
    for (const std::size_t l : layers_of(s)) {
      model_.weights[l].values = versions_[l].at(reads_[s].forward[m]);
      forward(model_, l, batches_[m]);
    }
    if (s + 1 == reads_.size()) {
      result_.losses.push_back(batches_[m].outputs.back().item<double>());
    }
    ++forwards_[s];
    return true;
  }

  // What backward reads: a version, or, for LayerPipe's correction, the newest weights taken back
  // by the mean step of late, times the steps since the forward. The mean is 0.9 of the one before
  // and 0.1 of the last step.
  Values read(std::size_t s, std::size_t l, std::uint32_t m, std::uint32_t version) const {
    if (job_.program.settings.correction != moving_average) return versions_[l].at(version);
    Values values = clones(versions_[l].at(version));
    const double steps = static_cast<double>(version) - reads_[s].forward[m];
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (steps > 0) values[i] -= drift_[l].at(version).at(i) * steps;
    }
    return values;
  }

  void run_backward(std::size_t s, std::uint32_t m, std::uint32_t version, MicroBatch& batch) {
    std::vector<std::size_t> layers = layers_of(s);
    std::reverse(layers.begin(), layers.end());
    for (const std::size_t l : layers) {
      model_.weights[l].values = read(s, l, m, version);
      backward(model_, l, batch);
    }
  }

  bool has_gradient(std::size_t s, std::uint32_t m) const {
    return m < total() && forwards_[s] > m && (s + 1 == reads_.size() || backwards_[s + 1] > m);
  }

  // W where it is apart from I.
  bool weight_grad_next(std::size_t s) {
    const std::uint32_t m = weight_grads_[s];
    if (!reads_[s].apart || !has_gradient(s, m) || !has(s, reads_[s].weight_grad[m])) return false;
    MicroBatch once = backwards_[s] > m ? before_[s].at(m) : batches_[m];
    run_backward(s, m, reads_[s].weight_grad[m], once);
    before_[s].erase(m);
    ++weight_grads_[s];
    return true;
  }

  // B, or I apart from W: then what it adds to the weights' gradients is dropped.
  bool backward_next(std::size_t s) {
    const std::uint32_t m = backwards_[s];
    if (!has_gradient(s, m) || !has(s, reads_[s].input_grad[m])) return false;
    std::vector<Values> kept(model_.layers.size());
    for (std::size_t l = 0; l < kept.size() && reads_[s].apart; ++l) {
      kept[l].resize(model_.weights[l].gradients.size());
      std::swap(kept[l], model_.weights[l].gradients);
    }
    if (reads_[s].apart && weight_grads_[s] <= m) before_[s].emplace(m, batches_[m]);
    run_backward(s, m, reads_[s].input_grad[m], batches_[m]);
    for (std::size_t l = 0; l < kept.size() && reads_[s].apart; ++l) {
      std::swap(kept[l], model_.weights[l].gradients);
    }
    ++backwards_[s];
    if (!reads_[s].apart) ++weight_grads_[s];
    return true;
  }

  // As soon as its micro-batches are there, and before the next one adds to the sums.
  bool update_next(std::size_t s) {
    const auto group =
        static_cast<std::uint32_t>(microbatches_per_update(job_.program, static_cast<int>(s)));
    const std::uint32_t first = updates_[s] * group;
    const std::uint32_t end = std::min(first + group, total());
    if (first >= total() || weight_grads_[s] != end) return false;
    for (const std::size_t l : layers_of(s)) {
      LayerWeights& weights = model_.weights[l];
      weights.values = clones(versions_[l].back());
      for (at::Tensor& gradient : weights.gradients)
        gradient.div_(static_cast<double>(end - first));
      update(model_, l, {job_.training.recipe.rate});
      Values& mean = drift_[l].emplace_back();
      for (std::size_t i = 0; i < weights.values.size(); ++i) {
        const at::Tensor step = weights.values[i] - versions_[l].back()[i];
        const bool first_step = versions_[l].size() == 1;
        mean.push_back(first_step ? step : drift_[l].end()[-2][i] * 0.9 + step * 0.1);
      }
      versions_[l].push_back(weights.values);
      zero_gradients(weights);
    }
    ++updates_[s];
    return true;
  }

  const Job& job_;
  const std::vector<StageReads>& reads_;
  TensorModel model_;
  std::vector<std::vector<Values>> versions_;  // by layer and version
  std::vector<std::vector<Values>> drift_;     // by layer and version
  std::vector<MicroBatch> batches_;
  std::vector<std::uint32_t> forwards_;                      // by stage: micro-batches done
  std::vector<std::uint32_t> backwards_;                     // by stage: micro-batches done
  std::vector<std::uint32_t> weight_grads_;                  // by stage: micro-batches done
  std::vector<std::uint32_t> updates_;                       // made
  std::vector<std::map<std::uint32_t, MicroBatch>> before_;  // by stage: as W apart finds it
  Trained result_;
};

}  // namespace stageline::executor::sequential
