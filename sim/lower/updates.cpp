// Passes that complete the backward: updates, reductions between replicas, B for I and W.
#include <algorithm>
#include <utility>

#include "sim/lower/passes.hpp"
#include "sim/lower/rewriting.hpp"

namespace stageline {
namespace {

bool makes_weight_gradient(OpKind kind) {
  return kind == OpKind::weight_grad || kind == OpKind::backward;
}

void update_one_device(Program& program, int device, const std::vector<bool>& wanted) {
  struct Stage {
    int replica = -1;
    int group = 1;             // micro-batches per update
    std::vector<int> missing;  // by update: gradients of this device still to come; -1: placed
    std::size_t next = 0;      // all updates before it are placed
  };
  std::vector<Stage> stages(as_size(program.stages()));
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const StagePlace& place = program.placement.stage[s];
    const std::vector<int>& replicas = place.homes(Role::weight_grad);
    const auto here = std::find(replicas.begin(), replicas.end(), device);
    if (!wanted[s] || here == replicas.end()) continue;
    stages[s].replica = static_cast<int>(here - replicas.begin());
    stages[s].group = microbatches_per_update(program, static_cast<int>(s));
    stages[s].missing.resize(as_size(updates(program, static_cast<int>(s))));
  }
  std::vector<Op>& list = nth(program.ops, device);
  const bool by_step = program.settings.weights == WeightRule::flush;
  std::vector<int> of_step(as_size(program.steps));  // gradients to come, of all stages
  for (const Op op : list) {
    Stage& stage = stages[op.stage];
    if (stage.replica < 0 || !makes_weight_gradient(op.kind)) continue;
    const std::uint32_t k = op.microbatch / static_cast<std::uint32_t>(stage.group);
    ++stage.missing[k];
    if (by_step) ++of_step[k];
  }
  // An update without a gradient of this device (of a partial round) still takes place here, to
  // keep the replicas equal: before the first op of a later step, or at the end.
  const auto others = [&](std::size_t s, std::size_t before, std::vector<Op>& out) {
    Stage& stage = stages[s];
    for (; stage.next < before && stage.missing[stage.next] <= 0; ++stage.next) {
      if (stage.missing[stage.next] < 0) continue;
      out.push_back(op_of(OpKind::update, static_cast<int>(s),
                          static_cast<std::uint32_t>(stage.next), stage.replica));
      stage.missing[stage.next] = -1;
    }
  };
  list = rebuilt(list, [&](const Op* first, const Op* last, std::vector<Op>& out) {
    for (const Op* op = first; op != last; ++op) {
      const Stage& stage = stages[op->stage];
      if (stage.replica < 0 || !counts_microbatches(op->kind)) continue;
      if (program.settings.weights != WeightRule::flush && !makes_weight_gradient(op->kind))
        continue;
      others(op->stage, op->microbatch / static_cast<std::uint32_t>(stage.group), out);
    }
    out.insert(out.end(), first, last);
    for (; first != last; ++first) {
      Stage& stage = stages[first->stage];
      if (stage.replica < 0 || !makes_weight_gradient(first->kind)) continue;
      const std::uint32_t k = first->microbatch / static_cast<std::uint32_t>(stage.group);
      --stage.missing[k];
      if (by_step ? --of_step[k] > 0 : stage.missing[k] > 0) continue;
      // Under flush, all stages of the device update after the last gradient of the step, the
      // deepest first: an update between the ops of other stages would wait for the reduction
      // between replicas, and two of those might wait for each other.
      const std::size_t least = by_step ? 0 : first->stage;
      for (std::size_t s = by_step ? stages.size() : first->stage + std::size_t{1}; s-- > least;) {
        if (stages[s].replica < 0 || stages[s].missing[k] != 0) continue;
        out.push_back(op_of(OpKind::update, static_cast<int>(s), k, stages[s].replica));
        stages[s].missing[k] = -1;
      }
    }
  });
  for (std::size_t s = 0; s < stages.size(); ++s) {
    if (stages[s].replica >= 0) others(s, stages[s].missing.size(), list);
  }
}

}  // namespace

Program add_updates(Program program) {
  std::vector<bool> wanted = stages_with(program, OpKind::update);
  wanted.flip();
  for (std::size_t device = 0; device < program.ops.size(); ++device) {
    update_one_device(program, static_cast<int>(device), wanted);
  }
  return program;
}

std::vector<bool> without_reductions(const Costs& costs) {
  const bool stated = std::any_of(costs.stage.begin(), costs.stage.end(),
                                  [](const StageCosts& one) { return one.gradients > Bytes{}; });
  std::vector<bool> without;
  for (const StageCosts& stage : costs.stage) {
    const bool nothing = stated && stage.gradients == Bytes{};
    without.push_back(nothing || (stage.reduction && *stage.reduction == CollectiveCosts{}));
  }
  return without;
}

Program add_reductions(Program program, const std::vector<bool>& without) {
  std::vector<bool> wanted = stages_with(program, OpKind::reduce_grad);
  for (std::size_t s = 0; s < wanted.size(); ++s) {
    const bool several =
        program.placement.stage[s].replicas.size() > 1 || program.settings.data_ranks > 1;
    wanted[s] = several && !wanted[s] && (without.empty() || !without[s]);
  }
  if (std::find(wanted.begin(), wanted.end(), true) == wanted.end()) return program;
  for (auto& list : program.ops) {
    list = rebuilt(list, [&](const Op* first, const Op* last, std::vector<Op>& out) {
      if (first->kind == OpKind::update && wanted[first->stage]) {
        Op reduce = *first;
        reduce.kind = OpKind::reduce_grad;
        out.push_back(reduce);
      }
      out.insert(out.end(), first, last);
    });
  }
  return program;
}

Program merge_backward(Program program) {
  // The second op of an overlapped pair cannot be merged with a following W.
  const auto ends_pair = [](const std::vector<Op>& ops) {
    return ops.size() > 1 && ops[ops.size() - 2].overlapped;
  };
  for (auto& list : program.ops) {
    std::vector<Op> merged;
    for (const Op op : list) {
      const bool joins = op.kind == OpKind::weight_grad && !merged.empty() &&
                         merged.back().kind == OpKind::input_grad && merged.back().part == 0 &&
                         !merged.back().overlapped && !op.overlapped && !ends_pair(merged) &&
                         merged.back().stage == op.stage &&
                         merged.back().microbatch == op.microbatch;
      if (joins) {
        merged.back().kind = OpKind::backward;
      } else {
        merged.push_back(op);
      }
    }
    list = std::move(merged);
  }
  return program;
}

}  // namespace stageline
