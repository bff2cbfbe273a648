// How much memory each device holds, and when: computed from a timeline, since a static program
// makes no decisions about memory at run time.
#pragma once

#include <array>
#include <vector>

#include "sim/costs.hpp"
#include "sim/program.hpp"
#include "sim/timeline.hpp"

namespace stageline {

enum class MemoryKind : std::uint8_t {
  weights,    // the newest version
  versions,   // older versions that ops have yet to read
  gradients,  // of the weights
  optimizer,  // optimizer state
  stash,      // activations kept for backward
  buffers,    // messages that have not been sent, or received and not yet read
  workspace,  // while an op runs
};
inline constexpr int memory_kinds = 7;
std::string_view name(MemoryKind kind);

using MemoryUse = std::array<Bytes, memory_kinds>;
Bytes total(const MemoryUse& use);

struct MemoryPoint {
  Time at{};
  MemoryUse use{};
};

struct DeviceMemory {
  Bytes peak{};
  Time peak_at{};
  MemoryUse at_peak{};
  MemoryUse at_end{};              // when the program has ended
  std::vector<MemoryPoint> curve;  // a step function, each value from `at` on; for Curves::all
};

struct StageMemory {
  /// The most micro-batches of this stage whose stash one device holds at once.
  int stash_peak = 0;
};

struct MemoryProfile {
  std::vector<DeviceMemory> device;
  /// In the order of Network::hosts: stashes, from the start of OFFLOAD to the end of PREFETCH.
  std::vector<DeviceMemory> host;
  std::vector<StageMemory> stage;
  /// By device: the most stashes held at once, of all its stages together.
  std::vector<int> device_stash_peak;
};

enum class Curves : std::uint8_t { none, all };

/// At one moment frees come before allocations. A stash is held from the start of F until its last
/// reader ends: I frees what only I reads, W the rest, B both; what I adds for W is held from the
/// end of I to the end of W. A recomputed micro-batch keeps the stage's input from F, and the stash
/// from the start of R. A sent tensor is held from the end of its producer to the end of the send,
/// unless the sender's stash holds it anyway; a received one from the start of the receive to the
/// start of the op that reads it. What no message carries, between stages of one device or over
/// links that take no time, waits on the reader's device from the end of its producer. While an op
/// runs, its workspace is the most of its steps; where something else changes meanwhile, that of
/// the steps before and after, and while these say that part of the stash is not there, the stash
/// is less. The ops of an overlapped pair take turns, the forward first. With split roles, each
/// device holds what its own ops and messages have yet to read, and a copy of the weights (with
/// room for the next one if the program transfers weights).
/// O(spans). Throws UsageError if bytes or times may exceed 64 bits (sim/sums.hpp).
MemoryProfile memory_of(const Program& program, const Costs& costs, const Timeline& timeline,
                        Curves curves = Curves::none);

}  // namespace stageline
