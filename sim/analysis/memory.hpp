// How much memory each device holds, and when: a pass over a timeline, since in a static program
// nothing decides on memory at run time.
#pragma once

#include <array>
#include <vector>

#include "sim/costs.hpp"
#include "sim/program.hpp"
#include "sim/timeline.hpp"

namespace stageline {

enum class MemoryKind : std::uint8_t {
  weights,    // the newest version
  versions,   // older versions still to be read
  gradients,  //
  optimizer,  //
  stash,      // activations kept for backward
  buffers,    // messages on their way out or not yet read
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
  MemoryUse at_end{};              // what is left when the program has ended
  std::vector<MemoryPoint> curve;  // a step function: value from `at` on; only when asked for
};

struct StageMemory {
  int stash_peak =
      0;  // most micro-batches of this stage whose stash is held at once, all replicas' maximum
};

struct MemoryProfile {
  std::vector<DeviceMemory> device;
  std::vector<DeviceMemory> host;  // in the order of Network::hosts; stashes from OFFLOAD's start
                                   // to PREFETCH's end
  std::vector<StageMemory> stage;
  std::vector<int> device_stash_peak;  // by device: most stashes held at once, over all its stages
};

enum class Curves : std::uint8_t { none, all };

/// At one moment frees come before allocations. A stash is held from the start of F until its last
/// reader ends: I frees what only I reads, W the rest, B both; what I adds for W is there from
/// I's end to W's. A recomputed micro-batch keeps the
/// stage's input instead, and the stash from the start of R. Messages: a sent tensor from its
/// producer's end to the end of the send, a received one from the start of the receive until the
/// op that reads it starts. Where F, I and W are on several devices, each holds what its own ops
/// and messages still read, and its copy of the weights (with room for the next beside it).
/// O(spans). Throws UsageError where bytes or times may leave 64 bits (sim/sums.hpp).
MemoryProfile memory_of(const Program& program, const Costs& costs, const Timeline& timeline,
                        Curves curves = Curves::none);

}  // namespace stageline
