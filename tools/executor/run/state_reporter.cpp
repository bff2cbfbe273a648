// Adds a device's share to the states that a training shows.
#include "tools/executor/run/state_reporter.hpp"

#include <utility>

#include "sim/base/index.hpp"

namespace stageline::executor {
namespace {

Tensors copies(const Tensors& some) {
  Tensors result;
  for (const at::Tensor& tensor : some) result.push_back(tensor.detach().clone());
  return result;
}

}  // namespace

void StateReporter::after_forward(Op op) {
  if (!updates_after_all_forwards()) report_statistics(op);
}

// After a forward: for the stops before this replica's next one. After the update of a flushed
// step: for the end of that step.
void StateReporter::report_statistics(Op op) {
  const int replica = here_.replica_of(op.stage);
  if (replica < 0 || exchange_.states == nullptr) return;
  const VersionPlan& plan = here_.job.plan->versions;
  StatesToShow& states = *exchange_.states;
  const std::int64_t m = planned_.microbatch_of(op);
  const std::uint32_t newest = weights_.newest(op.stage);
  const int replicas = plan.stage[op.stage].replicas;
  for (std::size_t i = states.first(); i < states.size(); ++i) {
    const std::int64_t end = states.stop(i).step * plan.microbatches;
    if (end > m + replicas && states.stop(i).step > newest) break;
    const bool now = updates_after_all_forwards() ? newest == states.stop(i).step
                                                  : m < end && end <= m + replicas;
    if (!now) continue;
    states.put(i, [&](TrainingState& state) {
      nth(state.stage[op.stage].statistics, replica) =
          statistics_of(here_.model, here_.layers_of(op.stage));
    });
  }
}

void StateReporter::after_update(Op op) {
  if (exchange_.states == nullptr) return;
  if (updates_after_all_forwards()) report_statistics(op_of(OpKind::update, op.stage, 0));
  if (here_.replica_of(op.stage) > 0) return;  // the first replica reports the weights
  StatesToShow& states = *exchange_.states;
  const std::uint32_t newest = weights_.newest(op.stage);
  for (std::size_t i = states.first(); i < states.size(); ++i) {
    const std::uint32_t version =
        here_.job.plan->versions.version_after(op.stage, states.stop(i).step);
    if (version > newest) break;
    if (version != newest) continue;
    StageState mine = state_of(op.stage, states.stop(i));
    states.put(i, [&](TrainingState& state) {
      mine.statistics = std::move(state.stage[op.stage].statistics);
      state.stage[op.stage] = std::move(mine);
    });
  }
}

StageState StateReporter::state_of(int stage, const Stop& stop) const {
  StageState state;
  state.newest = weights_.newest(stage);
  state.versions[state.newest] = weights_.newest_version(stage);
  for (const std::size_t layer : here_.layers_of(stage)) {
    const LayerWeights& weights = here_.model.weights[layer];
    state.updates.push_back(weights.updates);
    state.optimizer.push_back(stop.whole ? copies(weights.state) : Tensors{});
  }
  const VersionPlan& plan = here_.job.plan->versions;
  const std::vector<std::uint32_t>& oldest = nth(plan.stage, stage).oldest;
  const auto next = as_size(stop.step * plan.microbatches);
  if (stop.whole && next < oldest.size()) {
    const auto& past = weights_.past(stage);
    for (auto one = past.lower_bound(oldest[next]); one != past.end(); ++one) {
      state.versions.insert(*one);
    }
  }
  return state;
}

}  // namespace stageline::executor
