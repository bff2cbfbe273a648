// What the memory account looks up for an op, computed once for all devices.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "sim/base/index.hpp"
#include "sim/costs.hpp"
#include "sim/program.hpp"
#include "sim/rules.hpp"
#include "sim/wire_table.hpp"

namespace stageline {

enum class Side : std::uint8_t { receives, sends };

class MemoryTables {
 public:
  MemoryTables(const Program& program, const Costs& costs);

  struct Stage {
    const StagePlace* place = nullptr;
    const StageCosts* costs = nullptr;
    bool split = false;       // its roles are on several devices
    bool whole = false;       // I and W are one op, B
    bool offloaded = false;   // its stash is copied to the host
    bool i_behind_w = false;  // I and W are apart, and I reads the stash behind W on W's device
    Bytes stash{};
    Bytes stash_input_grad{};         // of the stash: what I alone reads
    Bytes workspace_with_gradient{};  // of an op that takes the output gradient
    Bytes recomputed_workspace{};     // of an F whose stash R rebuilds
    std::array<Bytes, op_kinds> workspace{};
    std::array<const HeldSteps*, op_kinds> steps{};  // null: not known
    std::vector<bool> recomputed;                    // by micro-batch; empty if none is
  };
  const Stage& stage(Op op) const { return kind(op).stages[op.stage]; }

  bool is_recomputed(Op op) const {
    if (!any_recomputed_) return false;
    const std::vector<bool>& recomputed = stages()[op.stage].recomputed;
    return !recomputed.empty() && recomputed[op.microbatch];
  }
  bool has_input_grad(Op op) const { return input_grads_.has(op.stage, op.microbatch); }
  bool takes_output_gradient(Op op) const { return input_grads_.takes_output_gradient(op); }

  Bytes workspace(Op op) const {
    const Stage& stage = this->stage(op);
    if (op.kind == OpKind::forward && is_recomputed(op)) return stage.recomputed_workspace;
    if (op.kind == OpKind::weight_grad && !has_input_grad(op)) return stage.workspace_with_gradient;
    const Bytes whole = nth(stage.workspace, op.kind);
    if (op.kind != OpKind::input_grad || stage.place->parts() == 1) return whole;
    return Bytes{part_of(whole.count, *stage.place, static_cast<int>(op.part))};
  }

  /// What `op` holds in the parts of its time; null: its workspace all the time.
  const HeldSteps* steps(Op op) const {
    const Stage& stage = this->stage(op);
    if (op.kind == OpKind::forward && is_recomputed(op))
      return known(stage.costs->steps.lone_forward);
    if (op.kind == OpKind::weight_grad && !has_input_grad(op))
      return nth(stage.steps, OpKind::backward);
    return nth(stage.steps, op.kind);
  }
  /// The time of an op of the compute lane, alone.
  Time time(Op op) const;

  Bytes bytes(Op message) const { return (*kind(message).bytes)[message]; }
  /// What a SEND frees: of an activation that the sender's stash holds, too, nothing.
  Bytes sent_bytes(Op message) const {
    return is_recomputed(message) ? bytes(message) : (*kind(message).sent)[message];
  }

  /// Whether tensors go to other devices by messages; otherwise they are there in no time.
  bool has_messages() const { return has_messages_; }
  /// Whether the ops of an overlapped pair hide each other's transfers.
  bool pairs_hide() const { return pairs_hide_; }

  /// The bytes of all tensors of one cargo that wait on `device` until `op` reads them, or that it
  /// leaves there to be sent, or to be read by another stage on that device.
  Bytes messages(Op op, Cargo cargo, Side side, int device) const {
    if (!has_bytes_) return Bytes{};
    const std::optional<Bytes>& fixed = nth(nth(fixed_, side), cargo)[op.stage];
    return fixed ? *fixed : sum_of_messages(op, cargo, side, device);
  }

  /// Calls each(to, bytes) for the tensors that `op` on `device` makes for stages on other devices.
  template <class Each>
  void arrivals(Op op, int device, Each&& each) const {
    if (!has_bytes_) return;
    const bool forward = op.kind == OpKind::forward;
    if (!forward && op.kind != OpKind::input_grad && op.kind != OpKind::backward) return;
    const Cargo cargo = forward ? Cargo::activation : Cargo::gradient;
    const std::vector<int>& wires = nth(graph_.sends, cargo)[op.stage];
    for (std::size_t i = 0; i < wires.size(); ++i) {
      const Ends ends = ends_of(program_.placement, wire(graph_, cargo, wires[i]), op.microbatch);
      if (ends.from != device || ends.to == device) continue;
      each(ends.to, bytes(op_of(send_of(cargo), op.stage, op.microbatch, static_cast<int>(i))));
    }
  }

  /// How many devices F sends its stash to.
  int stash_sends(Op op) const {
    return static_cast<int>(nth(graph_.sends, Cargo::stash)[op.stage].size());
  }

  /// Those of the first kind of micro-batch: other kinds have times and bytes of their own.
  const std::vector<Stage>& stages() const { return kinds_.front().stages; }
  const Program& program() const { return program_; }

 private:
  // What one kind of micro-batch has.
  struct Kind {
    std::vector<Stage> stages;
    std::optional<WireTable<Bytes>> bytes;  // empty if no tensor between stages has any
    std::optional<WireTable<Bytes>> sent;   // the same, less what the sender's stash holds, too
    // By stage and wire that leaves it: the part of the activation that its stash holds, too.
    std::vector<std::vector<Bytes>> kept;
  };
  const Kind& kind(Op op) const { return kinds_[costs_.kind(op.microbatch)]; }

  void read_ops(std::vector<Stage>& stages);
  void fill_messages(Kind& kind, std::uint32_t microbatch) const;
  static void fill_apart(Stage& stage);
  void fill_rebuilt(Stage& stage, std::size_t number) const;
  void fill_stage(Stage& stage, const StagePlace& place, const StageCosts& costs) const;
  void fix_messages();
  Bytes sum_of_messages(Op op, Cargo cargo, Side side, int device) const;
  static const HeldSteps* known(const HeldSteps& steps) { return steps.empty() ? nullptr : &steps; }
  Bytes kept(Op send) const {
    if (is_recomputed(send)) return Bytes{};
    return nth(nth(kind(send).kept, send.stage), send.part);
  }

  const Program& program_;
  const Costs& costs_;
  StageGraph graph_;
  InputGrads input_grads_;
  std::vector<Kind> kinds_;  // as Costs::kinds; one, if all micro-batches are alike
  bool has_messages_ = false;
  bool pairs_hide_ = false;
  bool has_bytes_ = false;  // of tensors between stages
  bool any_recomputed_ = false;
  // By side, cargo and stage: the sum of messages where it is the same for every micro-batch.
  std::array<std::array<std::vector<std::optional<Bytes>>, cargoes>, 2> fixed_;
};

}  // namespace stageline
