// The messages between the processes of one run: finished tasks with the tensors they made,
// failures, and clock readings. Any two processes are linked, by Gloo over TCP.
//
//     rank 0                                            rank 1
//     send(1, …) ──► queue ──► sending thread ══════► receiving thread ──► take(0, …)
//     take(1, …) ◄── receiving thread ◄══════ sending thread ◄── queue ◄── send(0, …)
//
// Includes ATen: for the files of this folder only.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tools/executor/processes/place.hpp"

namespace stageline::executor {

/// A finished task: when it was done, and the tensors that it made for the receiver.
struct Delivery {
  std::uint32_t task = 0;
  std::int64_t at = 0;  ///< ns, on the common clock: Peers::now()
  std::vector<at::Tensor> tensors;
};

/// Another process of the run has failed or vanished; the text names it and the reason.
struct PeerFailure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The other processes of the run; none for a place of size 1.
///
/// Its threads (two for each peer) inherit the creating thread's CPU affinity: construct it before
/// that thread is pinned to its core.
class Peers {
 public:
  /// Connects to the others. Throws UsageError, in one sentence, when they do not come within
  /// `timeout` or do not fit together. From then on a peer that is silent for `timeout` counts as
  /// vanished (each sends a sign of life every eighth of it, so it must be the same for all); one
  /// whose process ends is noticed at once.
  Peers(const Place& place, std::chrono::seconds timeout);
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;
  /// Sends all queued messages, then waits until every peer is destroyed too, or one has failed.
  /// During an exception that was not reported by fail(), it reports a failure to the others.
  ~Peers();

  int rank() const;
  int size() const;

  /// Sets the callbacks: `take` for each delivery, in the order in which each peer sent them, in
  /// that peer's receiving thread; `failed` once, when another process has failed. Earlier
  /// deliveries are passed at once, in this thread. A later call (`{}`, say) replaces the
  /// callbacks; when it returns, the earlier ones do not run any more. They must not call listen().
  void listen(std::function<void(int from, Delivery)> take,
              std::function<void(const std::string& why)> failed = {});

  /// Returns at once; deliveries to one peer arrive in the order of the calls. Tensors may be of
  /// any size, type and strides (dense strides are kept), and must not be written to from now on.
  /// They arrive on the CPU: this call first copies them there from another device. Throws
  /// UsageError for sparse and quantized tensors. Does nothing after a failure.
  void send(int to, Delivery delivery);

  /// Reports to all peers that this process has failed: they get "rank 1: why". Drops queued
  /// deliveries. Does nothing when a failure is known already.
  void fail(const std::string& why);
  /// The first failure that is known: this process's own as given to fail(), another's as
  /// "rank 1: why", or "rank 1 has vanished: …" where it was killed or cannot be reached.
  std::optional<std::string> failure() const;

  /// These three are for one thread at a time; all processes call barrier and gather in the same
  /// order. They throw PeerFailure when a process fails.
  /// Returns when all processes have called it.
  void barrier();
  /// On rank 0, returns the texts of all ranks, by rank; elsewhere it returns nothing, at once.
  std::vector<std::string> gather(const std::string& mine);
  /// Measures clock_offset() again: the clocks of two machines drift apart by microseconds a
  /// second. Other processes need not call it.
  void compare_clocks();

  /// Nanoseconds to add to this process's steady clock to get rank 0's, from the fastest of many
  /// round trips. 0 on rank 0. Wrong by at most clock_error().
  std::int64_t clock_offset() const;
  std::int64_t clock_error() const;
  /// The common clock, which is rank 0's steady clock, in nanoseconds.
  std::int64_t now() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace stageline::executor
