// How much memory each device holds, and when: computed from a timeline, since a static program
// makes no decisions about memory at run time.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "sim/costs.hpp"
#include "sim/program.hpp"
#include "sim/timeline.hpp"

namespace stageline {

enum class MemoryKind : std::uint8_t {
  weights,        // the newest version
  versions,       // older versions that ops have yet to read
  gradients,      // of the weights
  optimizer,      // optimizer state
  stash,          // activations kept for backward
  buffers,        // messages that have not been sent, or received and not yet read
  workspace,      // while an op runs
  communication,  // buffers of collectives, while they run
};
inline constexpr int memory_kinds = 8;
std::string_view name(MemoryKind kind);

using MemoryUse = std::array<Bytes, memory_kinds>;
Bytes total(const MemoryUse& use);

/// The parts of MemoryKind::stash, by what reads them.
enum class StashPart : std::uint8_t {
  weight_grad,  // W, and perhaps I as well
  input_grad,   // I alone
  gradients,    // kept from I to W, or for the backward of earlier slices of a sequence
  boundary,     // the stage's input, from which R rebuilds the rest
};
inline constexpr int stash_parts = 4;
std::string_view name(StashPart part);

using StashUse = std::array<Bytes, stash_parts>;

struct MemoryPoint {
  Time at{};
  MemoryUse use{};
  StashUse stash{};  // its sum is the stash of `use`
};

/// The op at which a device has its peak.
struct PeakOp {
  enum class Moment : std::uint8_t { runs, starts, has_ended };
  Op op;
  std::optional<Op> other;  // of an overlapped pair, the second
  Moment moment = Moment::runs;
  friend bool operator==(const PeakOp&, const PeakOp&) = default;
};

struct DeviceMemory {
  Bytes peak{};
  Time peak_at{};
  MemoryUse at_peak{};
  MemoryUse at_end{};              // when the program has ended
  std::vector<MemoryPoint> curve;  // a step function, each value from `at` on; for Curves::all
  Bytes stash_peak{};              // for Curves::all: the most that stashes take, each of them
                                   // whole from the start of its F on
  StashUse stash_at_peak{};        // its sum is the stash of at_peak
  int stashes_at_peak = 0;         // held, of all its stages together
  std::optional<PeakOp> peak_op;   // empty: none (see peak_op_of)
  Bytes reserve{};  // of the device's memory: context and communication library; beside the peak,
                    // never in it. memory_of() leaves it 0
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

/// What a device holds, and from when until when. At one moment frees come before allocations.
///   stash        F's start to its last reader's end: I frees what only I reads, W the rest, B both
///   gradients    that I adds for W: end of I to end of W
///   earlier      gradients of keys and values of earlier slices: end of the backward (I) that
///   makes
///                them to that of their own slice
///   input        of the stage, for a recomputed micro-batch: from F on; its stash from R on
///   sent tensor  end of its producer to end of the send, unless the sender's stash holds it anyway
///   received     start of the receive to start of the op that reads it
///   unsent       on the reader's device, from its producer's end to that op: no message carries it
///   of others    a stash that OFFLOAD copies to this device: its start to the end of PREFETCH
///   workspace    while an op runs, the most of its steps; if something else changes meanwhile,
///                that of the steps before and after
///   weights      with split roles a copy on each device, with room for the next if they are sent;
///                an update makes new ones beside those that a SEND still reads
///   buffer       while the stage's REDUCE_GRAD, or an op that has blocking collectives, runs
/// If a step says that part of the stash is not there, what W reads is taken off first, then what I
/// reads. A pair's ops take turns, F first, or where they hide transfers go on beside each other,
/// layer by layer. With split roles a device holds what its own ops and
/// messages have yet to read. All sizes are one rank's, as StageCosts says.
/// O(spans). Throws UsageError if bytes or times may exceed 64 bits (sim/sums.hpp).
MemoryProfile memory_of(const Program& program, const Costs& costs, const Timeline& timeline,
                        Curves curves = Curves::none);

/// The op that runs in the compute lane of `device` at that moment. Where none does: a RECV,
/// PREFETCH or REDUCE_GRAD that starts just then, or else the op of the compute lane that has ended
/// just then. Empty: none, as where another device makes a tensor that no message carries.
/// O(log spans).
std::optional<PeakOp> peak_op_of(const Timeline& timeline, int device, Time at);

}  // namespace stageline
