// What the processes of one run tell each other while it runs: that a task is done, with the
// tensors it made; that somebody has failed; what time it is. Any two are linked, by Gloo over TCP.
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

/// What one process tells another: that a task is done, when, and the tensors it made for it.
struct Delivery {
  std::uint32_t task = 0;
  std::int64_t at = 0;  ///< ns, on the common clock: Peers::now()
  std::vector<at::Tensor> tensors;
};

/// Another process of the run has failed or vanished; the text says which and why.
struct PeerFailure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The other processes of the run. Of a place of size 1 there are none, and all of this works.
///
/// Its threads (two a peer) may run where the thread that makes it may: make it before that thread
/// is pinned to the core it computes on.
class Peers {
 public:
  /// Finds the others. Throws UsageError, in one sentence, when they do not come within `timeout`
  /// or do not fit together. Later (so let it be the same for all), a peer that is silent for so
  /// long (each says every eighth of it that it lives) counts as vanished; one whose process ends
  /// is noticed at once.
  Peers(const Place& place, std::chrono::seconds timeout);
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;
  /// Sends what is queued, then waits until every peer has come as far: until all are destroyed, or
  /// one has failed. Destroyed by an exception that fail() was not told of, it tells that.
  ~Peers();

  int rank() const;
  int size() const;

  /// Whom to call for what comes: `take` for each delivery, in the order each peer sent them, from
  /// that peer's receiving thread; `failed` once, when another process has failed. What came before
  /// this call is taken at once, in this thread. A later call (`{}`, say) takes the place of an
  /// earlier one, whose functions do not run any more when it returns. They must not call listen().
  void listen(std::function<void(int from, Delivery)> take,
              std::function<void(const std::string& why)> failed = {});

  /// Returns at once; what goes to one peer arrives in this order. Tensors may be of any size, type
  /// and strides (and arrive with the same strides if these are dense), and must not be written to
  /// from now on. They arrive on the CPU: from another device they are copied there first, in this
  /// call. Throws UsageError for sparse and quantized ones. Does nothing after a failure.
  void send(int to, Delivery delivery);

  /// Tells all peers that this process has failed: they hear "rank 1: why". Deliveries still
  /// queued are dropped. Does nothing when a failure is known already.
  void fail(const std::string& why);
  /// The first failure that is known: this process's own as it told it, another's as "rank 1: why",
  /// or "rank 1 has vanished: …" where it was killed or cannot be reached.
  std::optional<std::string> failure() const;

  /// These three are called by one thread at a time, and barrier and gather by all processes in the
  /// same order. They throw PeerFailure when somebody fails.
  /// Returns when all processes have called it.
  void barrier();
  /// On rank 0 the texts of all ranks, by rank; elsewhere it returns nothing, at once.
  std::vector<std::string> gather(const std::string& mine);
  /// Measures clock_offset() again: two machines' clocks drift apart by some microseconds a second.
  /// Only this process need call it.
  void compare_clocks();

  /// Nanoseconds to add to this process's steady clock to get rank 0's: the offset found on the
  /// fastest of many ways there and back. 0 on rank 0. Wrong by at most clock_error().
  std::int64_t clock_offset() const;
  std::int64_t clock_error() const;
  /// The common clock, which is rank 0's steady clock, in nanoseconds.
  std::int64_t now() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace stageline::executor
