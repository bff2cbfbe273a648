// What each op of a program does with real tensors, on one device: the layers of its stages, the
// micro-batches in flight, the versions of the weights. No threads and no clocks: whoever calls has
// seen to it that what an op needs is there.
//
// Includes ATen: for the files of this folder only.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "sim/index.hpp"
#include "sim/program.hpp"
#include "sim/rules.hpp"
#include "tools/executor/corrections/correction.hpp"
#include "tools/executor/run/exchange.hpp"
#include "tools/executor/tensors/cut.hpp"
#include "tools/executor/tensors/tensor_model.hpp"
#include "tools/executor/train/course.hpp"
#include "tools/executor/train/recipe.hpp"

namespace stageline {

/// What is trained, and how.
struct Training {
  ModelShape shape;
  int batch = 1;  // samples in a micro-batch
  Optimizer optimizer = Optimizer::momentum;
  at::ScalarType dtype = at::kFloat;
  Recipe recipe{};
  std::uint64_t seed = 1;  // of weights; micro-batch m is drawn from seed + 1 + m
  int distinct = 8;        // micro-batches drawn; later ones repeat them
};

/// Everything about a job that all its devices share and none changes.
struct Job {
  Program program;  // completed and valid
  StageGraph graph;
  Partition partition;
  Training training;
  bool separate = false;         // what is received is copied, as from another device's memory
  std::vector<int> staleness{};  // by stage, in updates, of the steady state: for corrections
  /// A training, which the program is a part of: it begins at the course's start, and every pass
  /// reads the version that the course says. Null: a run for its times; passes read what is there.
  std::shared_ptr<const Course> course = nullptr;
};

/// A micro-batch in a stage on this device, from its first op here to its last.
struct InFlight {
  MicroBatch tensors;
  std::vector<Tensors> weights;  // by layer of the stage: those its forward read, if kept
  std::uint32_t version = 0;     // of them
  Tensors inputs;                // what a recomputed stage keeps
  bool has_gradient = false;     // at the stage's outputs
  bool input_grad_done = false;
  bool weight_grad_done = false;
  int ops_left = 0;    // that touch the stash here
  Tensors prefetched;  // by the copy lane, and not read yet
};

// Whose memory may be written when. On an accelerator every lane has its own stream, runs behind
// its host, and frees what it has asked to be read before it has been read; LibTorch's allocator
// gives freed memory back to the stream it was allocated on. So
// * a worker waits for its stream after every op, before it says so on the board: whatever an op
//   finds is finished;
// * a tensor that was allocated on another lane's stream is noted with `keep_until_done` where it
//   comes in (for_use_here; prefetched stashes where they are first used), so that its memory is
//   not given away under this lane's hands, whoever drops it last and where;
// * an offload waits for its copies before it drops the stash, and what it copies to is held by
//   the allocator of pinned memory, which knows of copies in progress;
// * weights are overwritten only if nobody else holds them (`update`). Another device drops its
//   newest weights only at the beginning of an op, when its earlier ones are done.
class StageTensors {
 public:
  /// What only whoever runs the messages knows.
  struct Mail {
    /// Whether those weights have come over that wire.
    std::function<bool(int wire, std::uint32_t number)> arrived;
    using Moment = std::chrono::steady_clock::time_point;
    /// With Job::separate: these bytes have been copied out of a message. Returns when it had left
    /// its sender.
    std::function<Moment(Cargo cargo, int wire, std::uint32_t number, std::int64_t bytes)> took;
    /// Of a message sent: a receiver takes it when it wants to, but a sender of its own memory
    /// would have freed these bytes then.
    std::function<void(Moment through, std::int64_t bytes)> freed;
    /// Lets messages go on, for who must wait for one; throws Stopped when the run is to end.
    std::function<void()> pause;
  };
  StageTensors(const Job& job, int device, at::Device where, Exchange& exchange, Mail mail);

  /// Runs a compute op; the version of the weights that it read (of U: that it made).
  std::uint32_t compute(Op op);
  /// Moves the stash to the host's memory, or brings it back.
  void offload(Op op);
  void prefetch(Op op);
  /// Forgets what is in flight; the weights stay, and count their versions from 0 again.
  void restart();

  const TensorModel& model() const { return model_; }
  const Cut& cut() const { return cut_; }
  bool holds(int stage) const { return nth(holds_, stage); }
  /// Bytes of all stashes in flight, every storage once. For the compute lane's thread.
  std::int64_t stash_bytes() const;
  /// Of weights, optimizer state and gradient sums.
  std::int64_t standing_bytes() const;
  /// Of tensors sent: what their receivers have taken; frees them in the caller's thread.
  /// `counted`: says so to Mail::freed.
  void drop_returned(bool counted);

 private:
  InFlight& in_flight(int stage, std::uint32_t microbatch);
  void leave(Op op);

  void forward(Op op);
  void recompute(Op op);
  void input_grad(Op op);
  void weight_grad(Op op);
  void backward(Op op);
  std::uint32_t update(Op op);

  void receive_inputs(Op op, InFlight& flight);
  void receive_gradient(Op op, InFlight& flight);
  void receive_stash(Op op, InFlight& flight);
  void send_outputs(Op op, InFlight& flight);
  void send_gradient(Op op, InFlight& flight);
  void send_weights(int stage, std::uint32_t update);
  Tensors take(Cargo cargo, int wire, std::uint32_t number);
  at::Tensor for_use_here(const at::Tensor& made_elsewhere) const;

  // Puts the weights that the op reads into the model while it lives.
  class Reading;
  void take_in_weights(int stage);
  void take_in(int stage, StageVersion version, std::uint32_t number);
  std::vector<Tensors> newest(int stage) const;
  StageVersion newest_version(int stage) const { return {newest(stage), memory_of(stage)}; }
  const std::vector<Tensors>& memory_of(int stage) const { return nth(memory_, stage); }
  std::vector<Tensors> remembered(int stage, const std::vector<Tensors>& before) const;
  std::vector<Tensors> predicted(int stage, const StageVersion& version) const;
  std::vector<Tensors> rebuilt(const StageVersion& version, std::uint32_t updates) const;
  StageVersion version(int stage, std::uint32_t wanted) const;
  StageVersion version_at(int stage, std::uint32_t wanted) const {
    return wanted == nth(newest_, stage) ? newest_version(stage) : version(stage, wanted);
  }
  std::vector<Tensors> weights_for_backward(Op op, const InFlight& flight);

  // Of a training.
  std::uint32_t microbatch_of(Op op) const { return first_microbatch_ + op.microbatch; }
  std::optional<std::uint32_t> version_told(Op op) const;
  void set_up_course();
  void begin_at(std::size_t stage, const StageState& start);
  void await_version(Op op);
  void drop_old_versions(int stage);
  void show_statistics(Op op);
  void show_weights(int stage);
  OptimizerStep step_of_update(int stage) const;
  int replica_of(int stage) const;  // -1: its F is elsewhere
  /// Whether a step's forwards are all done when its update comes, in whatever order.
  bool gathers_at_update() const { return job_.program.weights == WeightRule::flush; }

  // Puts the sums that the op adds to into the model, and takes them out again.
  std::vector<Tensors>& sums(int stage, std::uint32_t update);
  void swap_sums(int stage, std::vector<Tensors>& sums);
  std::vector<Tensors> reduced(Op op);
  void note_weight_grad(Op op);
  std::uint32_t update_of(Op op) const;  // into which its gradient goes

  bool has_role(int stage, OpKind kind) const;
  std::size_t layers_of(int stage) const { return nth(cut_.layers, stage).size(); }

  mutable std::mutex copies_;  // what copy lanes do to a micro-batch, against stash_bytes()
  const Job& job_;
  int device_;
  at::Device where_;
  Exchange& exchange_;
  Mail mail_;
  std::vector<bool> holds_;
  TensorModel model_;
  Cut cut_;
  std::vector<MicroBatch> data_;
  std::vector<std::vector<std::unique_ptr<InFlight>>> in_flight_;  // stages × micro-batches
  std::vector<std::vector<std::uint8_t>> ops_left_;                // the same, at the start
  std::vector<std::vector<bool>> recomputed_;                      // the same
  std::vector<std::uint32_t> newest_;                              // by stage
  Corrections corrections_;
  std::uint32_t first_microbatch_ = 0;                       // of the program, in its course
  std::vector<std::uint32_t> base_;                          // by stage: newest_ at the start
  std::vector<std::map<std::uint32_t, StageVersion>> past_;  // by stage and version
  std::vector<std::vector<Tensors>> memory_;                 // by stage: beside the newest
  std::vector<std::vector<std::uint32_t>> oldest_read_;      // by stage: of passes from here on
  std::vector<std::size_t> passes_done_;                     // by stage
  std::vector<std::map<std::uint32_t, std::vector<Tensors>>> sums_;  // by stage and update
  std::vector<std::map<std::uint32_t, int>> summed_;                 // micro-batches in them
  std::vector<std::vector<std::vector<Tensors>>> spare_;  // by stage: sums of 0, to be used again
};

/// The numbers of the optimizer's step with this number, from 0, on a stage whose forwards read so
/// many updates behind.
OptimizerStep step_of_update(const Recipe& recipe, const Corrections& corrections,
                             std::int64_t step, int delay);

}  // namespace stageline
