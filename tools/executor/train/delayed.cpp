// The order of passes of a delayed training.
#include "tools/executor/train/delayed.hpp"

#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <stdexcept>
#include <utility>

#include "sim/base/index.hpp"
#include "tools/executor/corrections/correction.hpp"
#include "tools/executor/run/worker_pool.hpp"
#include "tools/executor/train/delayed_stage.hpp"

namespace stageline::executor {
namespace {

using at::Tensor;

// A micro-batch between its first forward and its last backward.
struct MicroBatchInFlight {
  MicroBatch tensors;
  std::vector<MicroBatch> before;  // by stage: as I found it, for a W with a backward of its own
};

// The order of the passes. A pass runs as soon as the versions that the plan names exist.
class Delayed {
 public:
  Delayed(const DelayedJob& job, at::Device where)
      : job_(job),
        plan_(job.plan.versions),
        corrections_(parse_corrections(job.correction)),
        model_(tensor_model(job.training.shape, job.training.optimizer,
                            at::TensorOptions(job.training.dtype).device(where),
                            job.training.seed)),
        states_(plan_, job.plan.stops, job.plan.show) {
    const auto first = static_cast<std::uint32_t>(job.plan.start.step * plan_.microbatches);
    done_.assign(plan_.stage.size(), {first, first, first});
    for (std::size_t s = 0; s < plan_.stage.size(); ++s) {
      stages_.push_back(std::make_unique<DelayedStage>(job, corrections_, model_, s));
    }
  }

  void train(const std::atomic<bool>* stop) {
    const c10::NoGradGuard plain;
    while (!all_done()) {
      if (stop != nullptr && *stop) throw Stopped();
      if (backwards() || forwards()) continue;
      throw std::logic_error(fmt::format(
          "delayed training: no pass can go on at micro-batch {}; the table of versions asks for "
          "weights that their own gradients wait for",
          done_.back().forwards));
    }
  }

 private:
  // Micro-batches that a stage's passes have done.
  struct Done {
    std::uint32_t forwards = 0;
    std::uint32_t input_grads = 0;
    std::uint32_t weight_grads = 0;
  };

  std::uint32_t total() const { return plan_.total(); }
  bool all_done() const {
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      if (done_[s].input_grads != total()) return false;
      if (stages_[s]->updated() != stages_[s]->updates()) return false;
    }
    return true;
  }

  MicroBatchInFlight& in_flight(std::uint32_t m) {
    const auto [at, fresh] = in_flight_.try_emplace(m);
    if (fresh) {
      at->second.tensors = empty_micro_batch(model_);
      if (plan_.by_step) at->second.tensors.loss_weight = 1.0 / plan_.microbatches;
      at->second.before.resize(stages_.size());
      job_.plan.data.fill(m, model_, at->second.tensors);
    }
    return at->second;
  }

  void leave(std::uint32_t m) {
    const bool over = std::all_of(done_.begin(), done_.end(), [&](const Done& done) {
      return done.input_grads > m && done.weight_grads > m;
    });
    if (over) in_flight_.erase(m);
  }

  // ---- passes: each returns whether it could run

  bool forwards() {
    // The deepest stage that can: it has the oldest micro-batch.
    for (std::size_t s = stages_.size(); s-- > 0;) {
      if (forward_next(s)) return true;
    }
    return false;
  }

  bool forward_next(std::size_t s) {
    DelayedStage& stage = *stages_[s];
    const std::uint32_t m = done_[s].forwards;
    if (m == total() || (s > 0 && done_[s - 1].forwards <= m)) return false;
    if (!stage.has(stage.plan().forward[m])) return false;
    MicroBatch& batch = in_flight(m).tensors;
    const int replica = static_cast<int>(m % static_cast<std::uint32_t>(stage.plan().replicas));
    stage.use_statistics(replica);
    stage.use_for_forward(stage.plan().forward[m]);
    for (const std::size_t layer : stage.layers()) forward(model_, layer, batch);
    if (s + 1 == stages_.size()) job_.plan.report_loss(m, batch.outputs.back().item<double>());
    ++done_[s].forwards;
    show_statistics(s, m, replica);
    return true;
  }

  bool backwards() {
    bool moved = false;
    for (std::size_t s = stages_.size(); s-- > 0;) {
      while (update_next(s) || weight_grad_next(s) || input_grad_next(s)) moved = true;
    }
    return moved;
  }

  // Whether the gradient at the outputs of stage s is there.
  bool has_gradient(std::size_t s, std::uint32_t m) const {
    return m < done_[s].forwards && (s + 1 == stages_.size() || done_[s + 1].input_grads > m);
  }

  bool weight_grad_next(std::size_t s) {
    DelayedStage& stage = *stages_[s];
    const StageVersionPlan& plan = stage.plan();
    const std::uint32_t m = done_[s].weight_grads;
    if (plan.fused || m == total()) return false;
    MicroBatchInFlight& one = in_flight(m);
    if (!plan.whole_backward[m]) {
      if (done_[s].input_grads <= m) return false;
      stage.descend(m, one.tensors, weight_grad);
    } else {
      if (!has_gradient(s, m) || !stage.has(plan.weight_grad[m])) return false;
      MicroBatch once = done_[s].input_grads > m && !plan.input_grad.empty()
                            ? std::exchange(one.before[s], {})
                            : one.tensors;
      stage.use_for_backward(m, plan.weight_grad[m]);
      stage.descend(m, once, backward);
    }
    ++done_[s].weight_grads;
    if (plan.input_grad.empty()) done_[s].input_grads = done_[s].weight_grads;
    leave(m);
    return true;
  }

  bool input_grad_next(std::size_t s) {
    DelayedStage& stage = *stages_[s];
    const StageVersionPlan& plan = stage.plan();
    const std::uint32_t m = done_[s].input_grads;
    if (plan.input_grad.empty() || !has_gradient(s, m)) return false;
    for (const auto& part : plan.input_grad) {
      if (!stage.has(part[m])) return false;
    }
    MicroBatch& batch = in_flight(m).tensors;
    // By layer below: gradients that come from stages above this one.
    std::vector<Tensor> passing(stage.layers().front());
    std::swap_ranges(passing.begin(), passing.end(), batch.gradients.begin());
    if (plan.fused) {
      stage.use_for_backward(m, plan.weight_grad[m]);
      stage.descend(m, batch, backward);
      ++done_[s].weight_grads;
    } else {
      input_grad_of_parts(s, m, batch);
    }
    for (std::size_t layer = 0; layer < passing.size(); ++layer) {
      if (!passing[layer].defined()) continue;
      Tensor& there = batch.gradients[layer];
      there = there.defined() ? passing[layer].add(there) : passing[layer];
    }
    ++done_[s].input_grads;
    leave(m);
    return true;
  }

  // Each part computes the whole gradient with the version that it reads, and gives its share.
  void input_grad_of_parts(std::size_t s, std::uint32_t m, MicroBatch& batch) {
    DelayedStage& stage = *stages_[s];
    const StageVersionPlan& plan = stage.plan();
    const bool w_is_done = done_[s].weight_grads > m;
    if (plan.whole_backward[m] && !w_is_done) in_flight(m).before[s] = batch;
    const MicroBatch found = batch;
    const std::size_t below = stage.layers().front();
    std::map<std::uint32_t, std::vector<Tensor>> made;  // by version: gradients below the stage
    for (std::size_t part = 0; part < plan.input_grad.size(); ++part) {
      const std::uint32_t version = plan.input_grad[part][m];
      // W continues from what the part on its own device leaves.
      const bool stays = plan.on_weight_device[part] || plan.input_grad.size() == 1;
      if (made.count(version) != 0 && !stays) continue;
      MicroBatch mine = found;
      stage.use_for_backward(m, version);
      // Norms add to the gradients of their weights in I. Where W runs as a whole backward it adds
      // them itself, and those of I are dropped.
      const bool counts = plan.on_weight_device[part] && !plan.whole_backward[m];
      if (counts) {
        stage.descend(m, mine, input_grad);
      } else {
        std::vector<Tensors> dropped = stage.no_sums();
        stage.descend(dropped, mine, input_grad);
      }
      made[version].assign(mine.gradients.begin(),
                           mine.gradients.begin() + static_cast<std::ptrdiff_t>(below));
      if (stays) batch = std::move(mine);
    }
    for (std::size_t layer = 0; layer < below; ++layer) {
      batch.gradients[layer] = joined(s, m, layer, made);
    }
  }

  Tensor joined(std::size_t s, std::uint32_t m, std::size_t layer,
                const std::map<std::uint32_t, std::vector<Tensor>>& made) const {
    const Tensor& first = made.begin()->second[layer];
    if (made.size() == 1 || !first.defined()) return first;
    const StagePlace& place = job_.placement.stage[s];
    const StageVersionPlan& plan = plan_.stage[s];
    Tensors pieces;
    std::int64_t from = 0;
    for (std::size_t part = 0; part < plan.input_grad.size(); ++part) {
      const Tensor& whole = made.at(plan.input_grad[part][m])[layer];
      const std::int64_t size = part_of(whole.numel(), place, static_cast<int>(part));
      pieces.push_back(whole.reshape({-1}).narrow(0, from, size));
      from += size;
    }
    return at::cat(pieces).view(first.sizes());
  }

  // As soon as the gradients of its micro-batches are there.
  bool update_next(std::size_t s) {
    DelayedStage& stage = *stages_[s];
    const auto group = static_cast<std::uint32_t>(stage.plan().group);
    const std::uint32_t number = stage.updated();
    if (number >= stage.updates()) return false;
    if (done_[s].weight_grads < std::min((number + 1) * group, total())) return false;
    stage.update();
    show_weights(s);
    stage.drop_unneeded(std::min({done_[s].forwards, done_[s].input_grads, done_[s].weight_grads}));
    return true;
  }

  // ---- states

  void show_weights(std::size_t s) {
    DelayedStage& stage = *stages_[s];
    for (std::size_t i = states_.first(); i < states_.size(); ++i) {
      const std::uint32_t version = plan_.version_after(s, states_.stop(i).step);
      if (version > stage.updated()) break;
      if (version != stage.updated()) continue;
      StageState mine = stage.state(states_.stop(i).whole);
      states_.put(i, [&](TrainingState& state) {
        mine.statistics = std::move(state.stage[s].statistics);
        state.stage[s] = std::move(mine);
      });
    }
  }

  void show_statistics(std::size_t s, std::uint32_t m, int replica) {
    for (std::size_t i = states_.first(); i < states_.size(); ++i) {
      const std::int64_t end = states_.stop(i).step * plan_.microbatches;
      if (end > std::int64_t{m} + plan_.stage[s].replicas) break;
      if (m >= end) continue;
      states_.put(i, [&](TrainingState& state) {
        nth(state.stage[s].statistics, replica) = statistics_of(model_, stages_[s]->layers());
      });
    }
  }

  const DelayedJob& job_;
  const VersionPlan& plan_;
  Corrections corrections_;
  TensorModel model_;
  std::vector<std::unique_ptr<DelayedStage>> stages_;
  std::vector<Done> done_;  // by stage
  StatesToShow states_;
  std::map<std::uint32_t, MicroBatchInFlight> in_flight_;
};

}  // namespace

void train_delayed(const DelayedJob& job, at::Device where, const std::atomic<bool>* stop) {
  Delayed(job, where).train(stop);
}

}  // namespace stageline::executor
