// Tables of the memory account, by stage and by message.
#include "sim/analysis/memory_tables.hpp"

#include <algorithm>

#include "sim/op_time.hpp"
#include "sim/task_graph.hpp"

namespace stageline {

MemoryTables::MemoryTables(const Program& program, const Costs& costs)
    : program_(program),
      costs_(costs),
      graph_(stage_graph(program)),
      input_grads_(program),
      kinds_(std::max<std::size_t>(costs.kinds.size(), 1)) {
  std::vector<Stage> as_ops_say(program.placement.stage.size());
  read_ops(as_ops_say);
  for (std::size_t k = 0; k < kinds_.size(); ++k) {
    std::vector<Stage>& stages = kinds_[k].stages = as_ops_say;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      fill_stage(stages[s], program.placement.stage[s],
                 costs.kinds.empty() ? costs.stage[s] : costs.kinds[k].stage[s]);
      if (stages[s].place->weight_grad_apart()) fill_apart(stages[s]);
      if (program.settings.correction == moving_average) fill_rebuilt(stages[s], s);
    }
  }
  if (!has_bytes_) return;
  for (std::size_t k = 0; k < kinds_.size(); ++k) {
    const auto known = std::find(costs.kind_of.begin(), costs.kind_of.end(), k);
    fill_messages(kinds_[k], static_cast<std::uint32_t>(known - costs.kind_of.begin()));
  }
  fix_messages();
}

void MemoryTables::fill_stage(Stage& stage, const StagePlace& place,
                              const StageCosts& costs) const {
  stage.place = &place;
  stage.costs = &costs;
  stage.split = place.apart();
  stage.stash = costs.stash();
  stage.stash_input_grad = costs.stash_input_grad;
  const Bytes backward = costs.backward_workspace.value_or(costs.workspace);
  stage.workspace_with_gradient = backward;
  stage.recomputed_workspace = costs.recomputed_workspace.value_or(costs.workspace);
  const auto of = [&](OpKind kind) -> Bytes& { return nth(stage.workspace, kind); };
  stage.workspace.fill(costs.workspace);
  of(OpKind::backward) = backward;
  of(OpKind::input_grad) = costs.input_grad_workspace.value_or(backward);
  of(OpKind::weight_grad) = costs.weight_grad_workspace.value_or(costs.workspace);
  nth(stage.steps, OpKind::forward) = known(costs.steps.forward);
  nth(stage.steps, OpKind::recompute) = known(costs.steps.forward);
  nth(stage.steps, OpKind::input_grad) = known(costs.steps.input_grad);
  nth(stage.steps, OpKind::weight_grad) = known(costs.steps.weight_grad);
  nth(stage.steps, OpKind::backward) = known(costs.steps.backward);
}

// Each of I and W makes the gradients inside the stage. A part of I leaves the stash as it is, for
// others read the same tensors; so does a W behind which I comes on its device.
void MemoryTables::fill_apart(Stage& stage) {
  const Bytes backward = stage.workspace_with_gradient;
  nth(stage.workspace, OpKind::weight_grad) = backward;
  nth(stage.steps, OpKind::weight_grad) =
      stage.i_behind_w ? nullptr : known(stage.costs->steps.backward);
  if (stage.place->parts() == 1) return;
  nth(stage.workspace, OpKind::input_grad) =
      stage.costs->divided_input_grad_workspace.value_or(backward);
  nth(stage.steps, OpKind::input_grad) = nullptr;
}

// An update makes weights and their mean beside those that they follow. A backward whose forward
// was some updates ago reads weights made for it.
void MemoryTables::fill_rebuilt(Stage& stage, std::size_t number) const {
  const Bytes weights = stage.costs->weights;
  const auto add = [&](OpKind kind, Bytes bytes) {
    nth(stage.workspace, kind) += bytes;
    nth(stage.steps, kind) = nullptr;
  };
  add(OpKind::update, weights * 2);
  const std::vector<int>& delay = program_.settings.delay;
  if (delay.empty() || delay[number] == 0) return;
  add(OpKind::input_grad, weights);
  add(OpKind::backward, weights);
  if (stage.place->weight_grad_apart()) add(OpKind::weight_grad, weights);
}

Time MemoryTables::time(Op op) const {
  return compute_time(*stage(op).costs, *stage(op).place, op);
}

void MemoryTables::read_ops(std::vector<Stage>& stages) {
  std::uint32_t kinds = 0;  // a bit for each that the program has
  for (std::size_t d = 0; d < program_.ops.size(); ++d) {
    const auto device = static_cast<int>(d);
    for (const Op op : program_.ops[d]) {
      kinds |= 1U << static_cast<unsigned>(op.kind);
      Stage& stage = stages[op.stage];
      if (op.kind == OpKind::backward) stage.whole = true;
      if (op.kind == OpKind::offload) stage.offloaded = true;
      // I is behind W, if there, on the devices of all micro-batches or of none.
      if (op.kind == OpKind::weight_grad) stage.i_behind_w = false;
      const StagePlace& place = program_.placement.stage[op.stage];
      if (op.kind == OpKind::input_grad && device == place.device(Role::weight_grad)) {
        stage.i_behind_w = true;
      }
      if (op.kind != OpKind::recompute) continue;
      any_recomputed_ = true;
      stage.recomputed.resize(program_.total_microbatches());
      stage.recomputed[op.microbatch] = true;
    }
  }
  pairs_hide_ = costs_.pairs_hide();
  for (std::size_t cargo = 0; cargo < cargoes; ++cargo) {
    const auto send = static_cast<unsigned>(send_of(static_cast<Cargo>(cargo)));
    has_messages_ = has_messages_ || (kinds >> send & 1U) != 0;
  }
  const bool any_bytes = std::any_of(
      costs_.edges.begin(), costs_.edges.end(),
      [](const EdgeCosts& edge) { return edge.activation > Bytes{} || edge.gradient > Bytes{}; });
  has_bytes_ = has_messages_ || any_bytes;
}

// `microbatch`: one of that kind.
void MemoryTables::fill_messages(Kind& kind, std::uint32_t microbatch) const {
  kind.bytes.emplace(graph_, [&](Op op) {
    op.microbatch = microbatch;
    return message_bytes(program_, costs_, graph_, op);
  });
  kind.kept.resize(kind.stages.size());
  for (std::size_t s = 0; s < kind.stages.size(); ++s) {
    for (const int number : nth(graph_.sends, Cargo::activation)[s]) {
      const int edge = wire(graph_, Cargo::activation, number).edge;
      kind.kept[s].push_back(kind.stages[s].split ? Bytes{}
                                                  : costs_.edge(edge, microbatch).activation_kept);
    }
  }
  kind.sent.emplace(graph_, [&](Op op) {
    const Bytes kept =
        op.kind == OpKind::send_forward ? nth(nth(kind.kept, op.stage), op.part) : Bytes{};
    return (*kind.bytes)[op] - kept;
  });
}

// The tensors of all micro-batches travel on the same routes unless a stage at one end is
// replicated, and are as large unless they differ or the sender recomputes some. Those of a stage
// with split roles also depend on the device and the part.
void MemoryTables::fix_messages() {
  const std::vector<Stage>& all = stages();
  const auto fixed_end = [&](int device, int stage) {
    return device >= 0 || nth(program_.placement.stage, stage).replicas.size() == 1;
  };
  for (const Side side : {Side::receives, Side::sends}) {
    for (std::size_t cargo = 0; cargo < cargoes; ++cargo) {
      auto& fixed = nth(fixed_, side)[cargo];
      fixed.resize(all.size());
      const auto& wires_of = side == Side::sends ? graph_.sends[cargo] : graph_.receives[cargo];
      for (std::size_t s = 0; s < all.size(); ++s) {
        const bool same = std::all_of(wires_of[s].begin(), wires_of[s].end(), [&](int number) {
          const Wire& way = wire(graph_, static_cast<Cargo>(cargo), number);
          return fixed_end(way.from, way.sender) && fixed_end(way.to, way.receiver) &&
                 nth(all, way.sender).recomputed.empty();
        });
        if (kinds_.size() > 1 || all[s].split || all[s].place->replicas.size() != 1 || !same)
          continue;
        Op op;
        op.stage = static_cast<std::uint16_t>(s);
        fixed[s] = sum_of_messages(op, static_cast<Cargo>(cargo), side, all[s].place->replicas[0]);
      }
    }
  }
}

Bytes MemoryTables::sum_of_messages(Op op, Cargo cargo, Side side, int device) const {
  Bytes sum{};
  const bool sends = side == Side::sends;
  tensors_of(graph_, program_, op, cargo, sends, device, [&](Op message, Ends ends) {
    const bool stays = ends.from == ends.to;
    if (sends && !stays && !has_messages_) return;  // it is there in no time
    sum += bytes(message);
    const bool with_sender = cargo == Cargo::activation && (sends || stays);
    if (with_sender) sum -= kept(sends ? message : other_end(graph_, message));
  });
  return sum;
}

}  // namespace stageline
