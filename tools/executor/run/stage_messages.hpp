// What one device's ops send and receive: tensors in the slots of the exchange, and what happens to
// them when they change hands.
//
// Includes ATen: for the files of this folder only.
#pragma once

#include <c10/util/ThreadLocalDebugInfo.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "tools/executor/run/device_model.hpp"
#include "tools/executor/run/in_flight.hpp"

namespace stageline::executor {

/// Calls into the thread that runs the messages (execute.cpp).
struct MessageHooks {
  using Moment = std::chrono::steady_clock::time_point;
  struct Passage {
    Moment comes;  // the receiver needs room for it from then on
    Moment left;   // a sender with its own memory has freed it, however late its receiver takes it
  };
  /// Whether the weights with that number have arrived over that wire.
  std::function<bool(int wire, std::uint32_t number)> arrived;
  /// With Job::separate: when a message that has arrived passed.
  std::function<Passage(Cargo cargo, int wire, std::uint32_t number)> passage;
  /// With Job::separate: while the guard lives, what this thread allocates and frees counts as of
  /// that moment.
  std::function<std::unique_ptr<c10::DebugInfoGuard>(Moment at)> date;
  /// With Job::separate: these bytes of a stash have come by that message.
  std::function<void(int wire, std::uint32_t number, std::int64_t bytes)> stash_came;
  /// Lets messages progress while an op waits; throws Stopped when the run is to end.
  std::function<void()> pause;
};

class StageMessages {
 public:
  /// All but `hooks` outlive it.
  StageMessages(const DeviceModel& here, Exchange& exchange, MessageHooks hooks);

  void receive_inputs(Op op, InFlight& flight);
  void send_outputs(Op op, InFlight& flight);
  /// Whether messages carry the forward's stash to other devices; not if it goes by the host.
  bool sends_stash(Op op) const {
    return !offloaded_[op.stage] && !nth(here_.job.graph.sends, Cargo::stash)[op.stage].empty();
  }
  /// Where the forward was on another device; nothing if the stash is here.
  void receive_stash(Op op, InFlight& flight);
  /// Once a micro-batch: later calls do nothing.
  void receive_gradient(Op op, InFlight& flight);
  /// The part of I that the op computes sends its share of the flattened gradient. `made` has the
  /// gradient of the samples from `first` on, up to that share's last one.
  void send_gradient(Op op, MicroBatch& made, std::int64_t first = 0);
  /// Elements of the gradient of one sample, from a layer that the stage's I makes it for, and
  /// where the share of the op's part begins and ends in all of them.
  struct Share {
    std::int64_t of_sample = 0;
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };
  Share share_of(Op op, std::size_t layer) const;
  /// `number`: of the update that made these values (by layer of the stage).
  void send_weights(int stage, std::uint32_t number, const std::vector<Tensors>& values);

  /// The bytes of stashes that have come since the last call.
  std::int64_t stash_came() { return std::exchange(stash_came_, 0); }

  /// Empties the slot of a message that has arrived.
  Tensors take(Cargo cargo, int wire, std::uint32_t number);
  /// The same of weights: calls read(tensors), and gives them back to their sender behind that.
  /// With Job::separate they are the sender's, and `read` copies them.
  void take_weights(int wire, std::uint32_t number,
                    const std::function<void(const Tensors& flat)>& read);
  /// With Job::separate: gives weights back that have arrived and that no op here takes any more.
  void leave_weights(int wire, std::uint32_t number);
  bool weights_arrived(int wire, std::uint32_t number) const {
    return hooks_.arrived(wire, number);
  }
  void pause() const { hooks_.pause(); }

  /// A tensor that another lane has allocated, noted with this lane's allocator. One on another GPU
  /// is copied, and the copy is complete when this returns.
  at::Tensor for_use_here(const at::Tensor& made_elsewhere) const;
  /// Frees the tensors sent whose receivers have copied them, in the caller's thread. `counted`: as
  /// of the moment when their message had left.
  void drop_returned(bool counted);

 private:
  void give_back(Tensors taken, int sender, MessageHooks::Moment left);
  void give_back_weights(Tensors taken, int wire, std::uint32_t number);

  const DeviceModel& here_;
  Exchange& exchange_;
  MessageHooks hooks_;
  std::vector<bool> offloaded_;  // by stage: its stash is copied to the host here
  std::int64_t stash_came_ = 0;
};

}  // namespace stageline::executor
