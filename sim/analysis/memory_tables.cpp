// Tables of the memory account, by stage and by message.
#include "sim/analysis/memory_tables.hpp"

#include <algorithm>

#include "sim/task_graph.hpp"

namespace stageline {

MemoryTables::MemoryTables(const Program& program, const Costs& costs)
    : program_(program),
      costs_(costs),
      graph_(stage_graph(program)),
      input_grads_(program),
      stages_(program.placement.stage.size()) {
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    fill_stage(stages_[s], program.placement.stage[s], costs.stage[s]);
  }
  read_ops();
  if (bytes_) fix_messages();
}

void MemoryTables::fill_stage(Stage& stage, const StagePlace& place,
                              const StageCosts& costs) const {
  stage.place = &place;
  stage.costs = &costs;
  stage.split = place.apart();
  stage.stash = costs.stash();
  const Bytes backward = costs.backward_workspace.value_or(costs.workspace);
  stage.workspace_with_gradient = backward;
  stage.recomputed_workspace = costs.recomputed_workspace.value_or(costs.workspace);
  const auto of = [&](OpKind kind) -> Bytes& { return nth(stage.workspace, kind); };
  stage.workspace.fill(costs.workspace);
  of(OpKind::backward) = backward;
  of(OpKind::input_grad) = costs.input_grad_workspace.value_or(backward);
  of(OpKind::weight_grad) = costs.weight_grad_workspace.value_or(costs.workspace);
}

void MemoryTables::read_ops() {
  std::uint32_t kinds = 0;  // a bit for each that the program has
  for (const auto& list : program_.ops) {
    for (const Op op : list) {
      kinds |= 1U << static_cast<unsigned>(op.kind);
      Stage& stage = stages_[op.stage];
      if (op.kind == OpKind::backward) stage.whole = true;
      if (op.kind == OpKind::offload) stage.offloaded = true;
      if (op.kind != OpKind::recompute) continue;
      stage.recomputed.resize(program_.total_microbatches());
      stage.recomputed[op.microbatch] = true;
    }
  }
  bool any_messages = false;
  for (std::size_t cargo = 0; cargo < cargoes; ++cargo) {
    const auto send = static_cast<unsigned>(send_of(static_cast<Cargo>(cargo)));
    any_messages = any_messages || (kinds >> send & 1U) != 0;
  }
  if (!any_messages) return;
  bytes_.emplace(graph_, [&](Op op) { return message_bytes(program_, costs_, graph_, op); });
}

// The messages of all micro-batches travel on the same routes unless a stage at one end is
// replicated. Those of a stage with split roles also depend on the device and the part.
void MemoryTables::fix_messages() {
  const auto fixed_end = [&](int device, int stage) {
    return device >= 0 || nth(program_.placement.stage, stage).replicas.size() == 1;
  };
  for (const Side side : {Side::receives, Side::sends}) {
    for (std::size_t cargo = 0; cargo < cargoes; ++cargo) {
      auto& fixed = nth(fixed_, side)[cargo];
      fixed.resize(stages_.size());
      const auto& wires_of = side == Side::sends ? graph_.sends[cargo] : graph_.receives[cargo];
      for (std::size_t s = 0; s < stages_.size(); ++s) {
        const bool same = std::all_of(wires_of[s].begin(), wires_of[s].end(), [&](int number) {
          const Wire& way = wire(graph_, static_cast<Cargo>(cargo), number);
          return fixed_end(way.from, way.sender) && fixed_end(way.to, way.receiver);
        });
        if (stages_[s].split || stages_[s].place->replicas.size() != 1 || !same) continue;
        Op op;
        op.stage = static_cast<std::uint16_t>(s);
        fixed[s] =
            sum_of_messages(op, static_cast<Cargo>(cargo), side, stages_[s].place->replicas[0]);
      }
    }
  }
}

Bytes MemoryTables::sum_of_messages(Op op, Cargo cargo, Side side, int device) const {
  Bytes sum{};
  messages_of(graph_, program_, op, cargo, side == Side::sends, device,
              [&](Op message) { sum += bytes(message); });
  return sum;
}

}  // namespace stageline
