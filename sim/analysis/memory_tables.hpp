// What the memory account looks up for an op, computed once for all devices.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "sim/costs.hpp"
#include "sim/index.hpp"
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
    bool split = false;      // its roles are on several devices
    bool whole = false;      // I and W are one op, B
    bool offloaded = false;  // its stash is copied to the host
    Bytes stash{};
    Bytes workspace_with_gradient{};  // of an op that takes the output gradient
    Bytes recomputed_workspace{};     // of an F whose stash R rebuilds
    std::array<Bytes, op_kinds> workspace{};
    std::vector<bool> recomputed;  // by micro-batch; empty if none is
  };
  const Stage& stage(Op op) const { return stages_[op.stage]; }

  bool is_recomputed(Op op) const {
    const std::vector<bool>& recomputed = stages_[op.stage].recomputed;
    return !recomputed.empty() && recomputed[op.microbatch];
  }
  bool has_input_grad(Op op) const { return input_grads_.has(op.stage, op.microbatch); }
  bool takes_output_gradient(Op op) const { return input_grads_.takes_output_gradient(op); }

  Bytes workspace(Op op) const {
    const Stage& stage = stages_[op.stage];
    if (op.kind == OpKind::forward && is_recomputed(op)) return stage.recomputed_workspace;
    if (op.kind == OpKind::weight_grad && !has_input_grad(op)) return stage.workspace_with_gradient;
    return nth(stage.workspace, op.kind);
  }

  Bytes bytes(Op message) const { return (*bytes_)[message]; }

  /// The bytes of all messages of one cargo that `op` reads or sends on `device`; 0 if the program
  /// has no messages.
  Bytes messages(Op op, Cargo cargo, Side side, int device) const {
    if (!bytes_) return Bytes{};
    const std::optional<Bytes>& fixed = nth(nth(fixed_, side), cargo)[op.stage];
    return fixed ? *fixed : sum_of_messages(op, cargo, side, device);
  }

  /// How many devices F sends its stash to.
  int stash_sends(Op op) const {
    return static_cast<int>(nth(graph_.sends, Cargo::stash)[op.stage].size());
  }

  const std::vector<Stage>& stages() const { return stages_; }
  const Program& program() const { return program_; }

 private:
  void read_ops();
  void fill_stage(Stage& stage, const StagePlace& place, const StageCosts& costs) const;
  void fix_messages();
  Bytes sum_of_messages(Op op, Cargo cargo, Side side, int device) const;

  const Program& program_;
  const Costs& costs_;
  StageGraph graph_;
  InputGrads input_grads_;
  std::vector<Stage> stages_;
  std::optional<WireTable<Bytes>> bytes_;  // empty if the program has no messages
  // By side, cargo and stage: the sum of messages where it is the same for every micro-batch.
  std::array<std::array<std::vector<std::optional<Bytes>>, cargoes>, 2> fixed_;
};

}  // namespace stageline
