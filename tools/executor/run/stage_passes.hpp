// Runs the ops of one device with real tensors. No threads and no clocks: the caller has made sure
// that all that an op needs is there.
//
//     stage_passes ──► stage_weights ──► gradient_sums ──► stage_messages ──► exchange, in_flight
//          │                └───────────► optimizer_shards ──┘           └──► device_model, job
//          └─────────► state_reporter ─► planned_versions
//
// Includes ATen: for the files of this folder and its neighbours only.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/executor/run/device_model.hpp"
#include "tools/executor/run/gradient_sums.hpp"
#include "tools/executor/run/in_flight.hpp"
#include "tools/executor/run/planned_versions.hpp"
#include "tools/executor/run/stage_messages.hpp"
#include "tools/executor/run/stage_weights.hpp"
#include "tools/executor/run/stash_log.hpp"
#include "tools/executor/run/state_reporter.hpp"

namespace stageline::executor {

// Whose memory may be written when. On an accelerator every lane has its own stream, runs behind
// its host, and frees tensors before the device has read them; LibTorch's allocator gives freed
// memory back to the stream that it was allocated on. So
// * a worker waits for its stream after every op, before it publishes the op's completion: all that
//   an op finds is finished;
// * a tensor that was allocated on another lane's stream is noted with `keep_until_done` where it
//   comes in (for_use_here; prefetched stashes where they are first used), so that its memory is
//   not reused while this lane still reads it, whichever lane drops it last;
// * an offload waits for its copies before it drops the stash, and their destination is held by the
//   allocator of pinned memory, which knows of copies in progress;
// * weights are overwritten only if nothing else holds them (StageWeights::update). Another device
//   drops its newest weights only at the beginning of an op, when its earlier ones are done.
class StagePasses {
 public:
  /// `job` and `exchange` outlive it.
  StagePasses(const Job& job, int device, at::Device where, Exchange& exchange, MessageHooks hooks);

  /// Runs a compute op. Returns the version of the weights that it read; of U, that it made.
  std::uint32_t compute(Op op);
  /// Brings the stash to the host's memory; drop_offloaded() frees it here when it has left.
  void offload(Op op);
  void drop_offloaded(Op op);
  /// Brings the stash back.
  void prefetch(Op op);
  /// Drops all micro-batches in flight; the weights stay, and count their versions from 0 again.
  void restart();

  const TensorModel& model() const { return here_.model; }
  /// With Job::separate: what the last compute op has changed.
  const StashChange& stash_change() const { return stash_change_; }
  /// Bytes of the stash of the op's micro-batch. For the thread of the lane that runs the op.
  std::int64_t stash_bytes(Op op) const { return in_flight_.stash_bytes(op); }
  /// Bytes of weights, room for those that come by message, optimizer state and gradient sums.
  std::int64_t standing_bytes() const;
  /// The part of these bytes that is the optimizer's state.
  std::int64_t optimizer_bytes() const;
  /// At the end of a run: all replicas of a stage with a sharded optimizer have all its weights.
  void gather_shards() { weights_.gather_all(); }
  /// See StageWeights.
  void leave_rest() { weights_.leave_rest(); }
  /// See StageMessages.
  void drop_returned(bool counted) { messages_.drop_returned(counted); }

 private:
  void forward(Op op);
  void recompute(Op op);
  void input_grad(Op op);
  bool divides_input_grad(int stage) const;
  void input_grad_of_part(Op op, InFlight& flight);
  void weight_grad(Op op);
  void backward(Op op);
  std::uint32_t update(Op op);
  bool hands_over_to_host() const;
  void hand_over(Op op);
  void take_back(Op op);
  void note_stash(Op op, std::int64_t before);
  void draw_data();
  void fill_data(Op op, InFlight& flight) const;

  const Job& job_;
  Exchange& exchange_;
  DeviceModel here_;
  PlannedVersions planned_;
  StageMessages messages_;
  InFlightTable in_flight_;
  GradientSums sums_;
  StageWeights weights_;
  StateReporter reporter_;
  StashChange stash_change_;
  std::vector<MicroBatch> data_;  // without a plan: random micro-batches
};

}  // namespace stageline::executor
