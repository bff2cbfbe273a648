// What each op costs, as tables: they print, diff, perturb and vectorize. Made by cost_models/.
#pragma once

#include <optional>
#include <vector>

#include "sim/cluster.hpp"
#include "sim/placement.hpp"
#include "sim/units.hpp"

namespace stageline {

/// One stage, one micro-batch, on the device it is placed on.
struct StageCosts {
  Time forward{};
  Time input_grad{};
  Time weight_grad{};
  Time backward{};  // I and W as one
  Time recompute{};
  Time update{};  // one optimizer step
  Bytes weights{};
  Bytes gradients{};
  Bytes optimizer_state{};
  Bytes stash_input_grad{};   // part of the stash that only I reads
  Bytes stash_weight_grad{};  // the rest of the stash
  Bytes stash_gradient{};     // from I to W: output gradients, beyond what stash_weight_grad counts
  Bytes boundary{};   // the stage's input: what a recomputed stage keeps instead of its stash
  Bytes workspace{};  // while one of its ops runs
  /// While B runs, or a W that takes the output gradient: that gradient, too. Nothing: as
  /// workspace.
  std::optional<Bytes> backward_workspace;
  /// While I runs whose W comes later: the gradients that it keeps, too. Nothing: as
  /// backward_workspace.
  std::optional<Bytes> input_grad_workspace;
  /// While F runs whose stash R makes again, beside the boundary. Nothing: as workspace.
  std::optional<Bytes> recomputed_workspace;
  /// While W runs that comes after I. Nothing: as workspace.
  std::optional<Bytes> weight_grad_workspace;

  Bytes stash() const { return stash_input_grad + stash_weight_grad; }
  /// What is left of it, and what has been added, when I has ended.
  Bytes stash_after_input_grad() const { return stash_weight_grad + stash_gradient; }
  /// The most that the stash takes where I and W are apart.
  Bytes stash_split() const {
    return stash() < stash_after_input_grad() ? stash_after_input_grad() : stash();
  }
  friend bool operator==(const StageCosts&, const StageCosts&) = default;
};

/// What the ops on one device read of a stage's stash: the parts of I that are there their shares,
/// W (or B) what W reads.
struct StashRead {
  Bytes by_input_grad{};
  Bytes by_weight_grad{};
  Bytes both() const { return by_input_grad + by_weight_grad; }
};
StashRead stash_read_on(const StagePlace& place, const StageCosts& stage, int device);

/// Bytes of one micro-batch on an edge of the stage graph.
struct EdgeCosts {
  StageEdge edge;
  Bytes activation{};  // forward, from edge.from to edge.to
  Bytes gradient{};    // backward, from edge.to to edge.from
  friend bool operator==(const EdgeCosts&, const EdgeCosts&) = default;
};

struct Costs {
  std::vector<StageCosts> stage;
  std::vector<EdgeCosts> edges;  // in the order of Program::edges
  Network network;
  /// Of the shorter op of an overlapped pair, how much the longer hides: 0 nothing, 1 all of it.
  double pair_overlap = 0;
  /// false: all bytes are 0 because none were measured; messages take their latency alone.
  bool bytes_known = true;

  int stages() const { return static_cast<int>(stage.size()); }
};

/// What an overlapped pair takes that takes these times apart.
Time pair_time(Time one, Time other, double overlap);

/// The same costs of one of `chunks` equal pieces of a micro-batch (sequence chunks that take equal
/// time: Seq1F1B's computation-wise cut). Weights, gradients and updates stay whole.
Costs chunk_costs(Costs costs, int chunks);

/// Equal stages of a chain, as in the closed forms: times F, I, W (B = I + W, R = F), one byte of
/// stash for I and one for W, `transfer` each way between any two devices (no contention).
Costs uniform_costs(int stages, int devices, Time forward, Time input_grad, Time weight_grad,
                    Time transfer = Time{});

}  // namespace stageline
