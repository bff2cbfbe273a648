// The schedule as text: for each device, in order, what it does. See traces/README.md for the
// grammar. parse_program(print(p)) == p.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/op.hpp"
#include "sim/placement.hpp"

namespace stageline {

/// Which version of a stage's weights an op reads.
enum class WeightRule : std::uint8_t {
  flush,          // one version; a step's backwards all end before its update
  stash,          // backward reads the version its forward read
  vertical_sync,  // every stage reads the version that the first stage read for this micro-batch
  double_buffer,  // step k reads what step k-2 left: two versions, one step of delay
  latest,         // whatever is there
};
std::string_view name(WeightRule rule);

/// Whether weights are updated once a step, by the mean over its micro-batches, or after every
/// mini-batch.
constexpr bool updates_by_step(WeightRule rule) {
  return rule == WeightRule::flush || rule == WeightRule::double_buffer;
}

/// Whether devices wait for each other: in lockstep every cycle lasts as long as its busiest
/// device.
enum class Clock : std::uint8_t { free, lockstep };
std::string_view name(Clock clock);

/// How OFFLOAD and PREFETCH of a device go: free, as soon as they can; or with so many buffers for
/// stashes on the device each way (copy_buffers, backwards in the order of their forwards): full,
/// both ways at once; half, in turns, as they stand in the list; blocking, in turns with one
/// buffer, so that computing waits for them.
enum class Copies : std::uint8_t { free, full, half, blocking };
std::string_view name(Copies copies);
/// 0: no limit.
constexpr int copy_buffers(Copies copies) {
  return copies == Copies::free ? 0 : copies == Copies::blocking ? 1 : 2;
}

/// How SEND and RECV go. async: a SEND in its turn in the send lane, a RECV posted ahead, and
/// nobody waits. blocking: both stand among the ops of the compute lane; who comes to one waits
/// until the other end has come to its own, and both are occupied while the message travels.
/// batched: the same for neighbours in the list as one: they start together, and the device goes on
/// when all are done.
enum class Messages : std::uint8_t { async, blocking, batched };
std::string_view name(Messages messages);

struct Program {
  std::string schedule;  // where it came from; free text
  int microbatches = 0;  // per step; the numbers in ops count through all steps
  int steps = 1;         //
  WeightRule weights = WeightRule::flush;
  std::string correction = "none";   // how an old version is made up for
  std::vector<std::string> devices;  // names
  Placement placement;
  std::vector<StageEdge> edges;     // of the stage graph, sorted
  std::vector<bool> independent_w;  // stages whose W does not wait for I
  /// By stage, or empty; -1: none. F(m) waits for update m - delay - 1, and under `latest`, where
  /// there is one copy of the weights, update m for F(m + delay): F reads weights that old exactly.
  std::vector<int> delay;
  /// By stage, or empty; 0: none. F(m) waits for the backward of m - window: no more are in flight.
  std::vector<int> window;
  /// Pieces of a sequence that follow one another as micro-batches do: chunk n mod c of sequence
  /// n / c. Attention looks back: F(n) waits for F(n-1) of its sequence, and backward for n+1's.
  int sequence_chunks = 1;
  Clock clock = Clock::free;
  Copies copies = Copies::free;
  Messages messages = Messages::async;
  bool weights_transfer = true;      // off: weights are at once wherever they are read, for nothing
  std::vector<std::vector<Op>> ops;  // by device

  int stages() const { return placement.stages(); }
  std::uint32_t total_microbatches() const {
    return static_cast<std::uint32_t>(microbatches) * static_cast<std::uint32_t>(steps);
  }
  friend bool operator==(const Program&, const Program&) = default;
};

/// Whether a stage may have to keep more than the newest version of its weights: not under flush
/// and latest, which have one.
constexpr bool keeps_versions(WeightRule rule) {
  return rule != WeightRule::flush && rule != WeightRule::latest;
}

/// The lane of an op's kind under the program's setting for copies.
inline LaneKind lane_of(const Program& program, OpKind kind) {
  const bool in_turns = kind == OpKind::prefetch &&
                        (program.copies == Copies::half || program.copies == Copies::blocking);
  return in_turns ? LaneKind::copy_out : lane_of(kind);
}

/// Micro-batches that one update of this stage gathers: the step's, or one from each replica when
/// updates follow every backward.
int microbatches_per_update(const Program& program, int stage);

/// How many updates the whole program holds for a stage.
int updates(const Program& program, int stage);

/// Under double_buffer, how many updates the weights have seen that an op of this micro-batch
/// reads: all but that of the step before its own.
inline std::uint32_t delayed_version(const Program& program, Op op) {
  const std::uint32_t step = op.microbatch / static_cast<std::uint32_t>(program.microbatches);
  return step == 0 ? 0 : step - 1;
}

/// A correction that the memory account knows: old weights are rebuilt from a moving average of the
/// gradients (LayerPipe2, arXiv 2512.08160), one buffer as large as they are, instead of kept.
inline constexpr std::string_view moving_average = "moving_average";

/// Whether a backward reads older weights that were kept for it.
inline bool keeps_versions(const Program& program) {
  return keeps_versions(program.weights) && program.correction != moving_average;
}

/// What an overlapped pair ends with: "(7F3;0B2)OVERLAP_F_B".
inline constexpr std::string_view overlap_mark = "OVERLAP_F_B";

/// Text. Throws ProgramError with line and column ("line 4, column 12: ...").
std::string print(const Program& program);
Program parse_program(std::string_view text);

/// Where things stand in a program's text; lines and columns from 1.
struct TextPlace {
  int line = 0;
  int column = 0;
  friend bool operator==(const TextPlace&, const TextPlace&) = default;
};
struct TextPlaces {
  std::vector<std::vector<TextPlace>> op;  // parallel to Program::ops
  std::vector<TextPlace> stage;            // by stage: its line
  std::vector<TextPlace> device;           // by device: its list
};
/// The same, and where it stood.
Program parse_program(std::string_view text, TextPlaces& places);

/// The first error of check() in sim/check/check.hpp, thrown: ProgramError unless every stage does
/// each micro-batch's work exactly once, each op stands on the device it is placed on, messages
/// match, and numbers are in range. Says nothing of deadlock: compile() does. O(ops).
void validate(const Program& program);

}  // namespace stageline
