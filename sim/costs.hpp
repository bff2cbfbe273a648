// The costs of all ops as plain tables, which print, diff, perturb and vectorize. See cost_models/.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/cluster.hpp"
#include "sim/model.hpp"
#include "sim/op.hpp"
#include "sim/placement.hpp"

namespace stageline {

/// A part of the time of an op during which it holds the same memory.
struct HeldStep {
  double until = 1;  // the share of the op's time at which the step ends
  Bytes beyond{};    // held beyond the stash that is counted while the op runs; negative while a
                     // part of that is not there yet, or not any more
  friend bool operator==(const HeldStep&, const HeldStep&) = default;
};
/// In order of time, the last until 1; empty: not known, and the op's workspace holds all the time.
using HeldSteps = std::vector<HeldStep>;

/// What each kind of op holds while it runs, as the workspaces of StageCosts, which are the most
/// of all steps, at least 0.
struct OpSteps {
  HeldSteps forward;       // F, and R
  HeldSteps lone_forward;  // F whose stash R rebuilds, beside the boundary
  HeldSteps input_grad;
  HeldSteps weight_grad;  // behind a separate I
  HeldSteps backward;     // B, or a W that takes the output gradient
  friend bool operator==(const OpSteps&, const OpSteps&) = default;
};

/// The blocking collectives (tensor, context, expert parallel) that are part of the times of a
/// stage's ops.
struct BlockingTimes {
  Time forward{};
  Time input_grad{};
  Time weight_grad{};
  Time backward{};
  Time recompute{};
  Time update{};
  BlockingTimes& operator+=(const BlockingTimes& other);
  friend bool operator==(const BlockingTimes&, const BlockingTimes&) = default;
};

/// A collective that runs beside compute, in the send lane: one flow for all its ranks.
struct CollectiveCosts {
  Time setup{};       // latency of all its rounds, before the bytes move
  Bytes bytes{};      // that progress: Route::load counts a byte of these
  Route route;        // `bandwidth` alone; its latency is not used
  Time head_start{};  // how long before the end of the last op that it needs it may start: buckets
                      // fill while a backward runs
  Time backward{};    // that last op, if it is whole; 0: of any length
  friend bool operator==(const CollectiveCosts&, const CollectiveCosts&) = default;
};
/// The time of a collective that is alone: setup and transfer. Throws as transfer_time.
Time alone(const CollectiveCosts& collective);

/// The head start of a reduction behind a last op of that length. If the op is shorter than a whole
/// backward (a W of its own, a chunk of a sequence, a faster device), it is in proportion to the
/// length. That is a lower bound: what is left of the reduction behind the op is a convex function
/// of the op's length.
Time head_start_behind(const CollectiveCosts& reduction, Time last);

/// Costs of one stage for one micro-batch, on the device it is placed on.
struct StageCosts {
  Time forward{};
  Time input_grad{};
  Time weight_grad{};
  Time backward{};  // I and W in one op
  Time recompute{};
  Time update{};  // one optimizer step
  Bytes weights{};
  Bytes gradients{};
  Bytes optimizer_state{};
  Bytes stash_input_grad{};   // part of the stash that only I reads
  Bytes stash_weight_grad{};  // the rest of the stash
  Bytes stash_gradient{};     // from I to W: output gradients, beyond what stash_weight_grad counts
  /// Gradients of the keys and values of earlier slices of the sequence: those that wait when I (or
  /// B) has ended, less those that waited before. Over the slices of a sequence they add up to 0.
  Bytes earlier_gradients{};
  Bytes boundary{};   // the stage's input, which a recomputed stage keeps instead of its stash
  Bytes workspace{};  // while one of the stage's ops runs
  /// While B runs, or a W that takes the output gradient: that gradient included. Empty: as
  /// workspace.
  std::optional<Bytes> backward_workspace;
  /// While I runs before a separate W: the gradients that it keeps included. Empty: as
  /// backward_workspace.
  std::optional<Bytes> input_grad_workspace;
  /// While the parts of I run, of all together: beside the stash and the output gradient, which
  /// wait for others, and without gradients for W. Empty: as backward_workspace.
  std::optional<Bytes> divided_input_grad_workspace;
  /// While F runs whose stash R rebuilds, beside the boundary. Empty: as workspace.
  std::optional<Bytes> recomputed_workspace;
  /// While W runs after a separate I. Empty: as workspace.
  std::optional<Bytes> weight_grad_workspace;
  OpSteps steps;
  BlockingTimes blocking;  // part of the times above
  /// Collectives that run under the products of the same op: no part of the times above.
  BlockingTimes hidden;
  /// The same by the group that communicates, in the order of all_dimensions; they add up to
  /// `blocking`. The reductions of tied weights are those of the pipeline.
  std::array<BlockingTimes, all_dimensions.size()> blocking_by{};
  /// REDUCE_GRAD among data-parallel ranks. Empty: a ring over the stage's replicas, if it has
  /// several.
  std::optional<CollectiveCosts> reduction;
  /// While REDUCE_GRAD runs, or an op that has blocking collectives: the bucket in flight, gathered
  /// weights.
  Bytes communication_buffer{};

  Bytes stash() const { return stash_input_grad + stash_weight_grad; }
  /// The stash after I has ended: its remaining part and the gradients added.
  Bytes stash_after_input_grad() const { return stash_weight_grad + stash_gradient; }
  /// The peak of the stash where I and W are separate ops.
  Bytes stash_split() const {
    return stash() < stash_after_input_grad() ? stash_after_input_grad() : stash();
  }
  friend bool operator==(const StageCosts&, const StageCosts&) = default;
};

/// Bytes per micro-batch on an edge of the stage graph.
struct EdgeCosts {
  StageEdge edge;
  Bytes activation{};       // forward, from edge.from to edge.to
  Bytes gradient{};         // backward, from edge.to to edge.from
  Bytes activation_kept{};  // of the activation: in the sender's stash, too
  friend bool operator==(const EdgeCosts&, const EdgeCosts&) = default;
};

/// What one kind of micro-batch costs. Weights, gradients, optimizer state, updates and reductions
/// are those of Costs::stage.
struct MicrobatchCosts {
  std::vector<StageCosts> stage;
  std::vector<EdgeCosts> edges;
  friend bool operator==(const MicrobatchCosts&, const MicrobatchCosts&) = default;
};

struct Costs {
  std::vector<StageCosts> stage;  // if micro-batches differ, mean times and the most bytes
  std::vector<EdgeCosts> edges;   // in the order of Program::edges
  /// Micro-batches that differ: sequences of unequal lengths, slices of a sequence. Micro-batch n
  /// is of the kind kind_of[n % kind_of.size()], an index into `kinds`. Empty: all are alike.
  std::vector<MicrobatchCosts> kinds;
  std::vector<std::uint16_t> kind_of;
  Network network;
  /// The share of the shorter op of an overlapped pair that the longer one hides: 0 to 1. Empty:
  /// what follows from the transfers in both ops.
  std::optional<double> pair_overlap;
  /// The share of a device's multiprocessors that transfers take from the compute beside them, 0 to
  /// 1, as kernels that send tokens to experts do.
  double transfer_share = 0;
  /// By device: how many times as long as the stages say its compute ops take. Empty: once.
  std::vector<double> pace;
  /// slowdown[k - 1]: how many times as long a compute op takes while k other devices of its host
  /// compute. Empty: they do not slow each other. See sim/interference.hpp.
  std::vector<double> slowdown;
  /// false: all bytes are 0 because none were measured; messages then take only their latency.
  bool bytes_known = true;
  Sharing sharing = Sharing::fifo;
  /// Under fair sharing, by tier: compute takes 1 + γ times as long while collectives of its device
  /// move bytes over it; see Cluster.
  std::array<double, tiers> overlap_slowdown{};
  /// And while messages and copies do; of one tier, the larger γ of what moves.
  std::array<double, tiers> message_slowdown{};
  /// And transfers 1 + γ' times as long while a device of theirs computes.
  std::array<double, tiers> transfer_slowdown{};

  int stages() const { return static_cast<int>(stage.size()); }
  /// Those of the op's stage for its micro-batch.
  const StageCosts& of(Op op) const {
    return kinds.empty() ? stage[op.stage] : kinds[kind(op.microbatch)].stage[op.stage];
  }
  const EdgeCosts& edge(int number, std::uint32_t microbatch) const {
    return (kinds.empty() ? edges
                          : kinds[kind(microbatch)].edges)[static_cast<std::size_t>(number)];
  }
  std::uint16_t kind(std::uint32_t microbatch) const {
    return kinds.empty() ? std::uint16_t{0} : kind_of[microbatch % kind_of.size()];
  }
  /// Whether any op holds collectives of its ranks.
  bool has_collectives() const;
  /// Whether an overlapped pair may take less than its ops one after the other.
  bool pairs_hide() const;
  /// What an op of that time takes on a device.
  Time paced(Time time, int device) const;
};

/// Duration of an overlapped pair whose ops take these times separately, the longer of which hides
/// that share of the shorter.
Time pair_time(Time one, Time other, double overlap);

/// The group whose collectives an overlapped pair hides: DualPipe (DeepSeek-AI 2024, arXiv
/// 2412.19437, section 3.2.1) and Megatron-Core's overlap_moe_expert_parallel_comm
/// (core/pipeline_parallel/combined_1f1b.py, 2026-11) put dispatch and combine, and nothing else,
/// beside the compute of the other micro-batch. The gathers of tensor parallelism stay in their
/// op's chain.
inline constexpr Dimension hidden_in_pairs = Dimension::expert;

/// One op of an overlapped pair.
struct PairHalf {
  Time time{};       // of it alone
  Time transfers{};  // of that: what compute of the other op can hide
};
/// Duration of an overlapped pair: by Costs::pair_overlap if there is one, else
///   max(one, other, Σ compute + transfer_share · Σ transfers, Σ transfers)
/// since each op is a chain, the device computes one thing at a time, and so does its network; the
/// compute beside transfers has only the multiprocessors that these leave. It is at most the sum of
/// both, and that sum where no op has transfers. A lower bound of what two chains take together.
Time pair_time(const Costs& costs, PairHalf one, PairHalf other);
/// The third of those: all compute, slowed by the transfers beside it.
Time pair_work(const Costs& costs, PairHalf one, PairHalf other);

/// Equal stages of a chain, as in the closed forms: times F, I, W (B = I + W, R = F), one byte of
/// stash for I and one for W, `transfer` in each direction between any two devices (no contention).
Costs uniform_costs(int stages, int devices, Time forward, Time input_grad, Time weight_grad,
                    Time transfer = Time{});

}  // namespace stageline
