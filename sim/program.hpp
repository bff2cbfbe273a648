// A schedule as a program: the ordered ops of each device. traces/README.md has the grammar of its
// text. parse_program(print(p)) == p.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/op.hpp"
#include "sim/placement.hpp"

namespace stageline {

/// The version of a stage's weights that an op reads.
enum class WeightRule : std::uint8_t {
  flush,          // one version; a step's backwards all end before its update
  stash,          // backward reads the version its forward read
  vertical_sync,  // every stage reads the version that the first stage read for this micro-batch
  double_buffer,  // step k reads the weights after step k-2: two versions, one step of delay
  latest,         // the newest version at that moment
};
inline constexpr std::array all_weight_rules{WeightRule::flush, WeightRule::stash,
                                             WeightRule::vertical_sync, WeightRule::double_buffer,
                                             WeightRule::latest};
std::string_view name(WeightRule rule);

/// Whether weights are updated once per step, by the mean over its micro-batches, or after every
/// mini-batch.
constexpr bool updates_by_step(WeightRule rule) {
  return rule == WeightRule::flush || rule == WeightRule::double_buffer;
}

/// Whether devices synchronize: in lockstep every cycle lasts as long as its busiest device.
enum class Clock : std::uint8_t { free, lockstep };
inline constexpr std::array all_clocks{Clock::free, Clock::lockstep};
std::string_view name(Clock clock);

/// How OFFLOAD and PREFETCH of a device proceed. free: as soon as they can. issued: a PREFETCH
/// waits for the compute op before it in the list, which issues it. The others have copy_buffers
/// stash buffers on the device in each direction, and backwards in the order of their forwards.
/// full: both directions at once; half: in turns, in list order; blocking: in turns with one
/// buffer, so that compute waits for the copies.
enum class Copies : std::uint8_t { free, issued, full, half, blocking };
inline constexpr std::array all_copies{Copies::free, Copies::issued, Copies::full, Copies::half,
                                       Copies::blocking};
std::string_view name(Copies copies);
/// 0: no limit.
constexpr int copy_buffers(Copies copies) {
  return copies == Copies::free || copies == Copies::issued ? 0
         : copies == Copies::blocking                       ? 1
                                                            : 2;
}

/// When R may start. early: at its turn, while the output gradient is still on its way. late: when
/// the output gradient is there, too.
enum class RecomputeStart : std::uint8_t { early, late };
inline constexpr std::array all_recompute_starts{RecomputeStart::early, RecomputeStart::late};
std::string_view name(RecomputeStart start);

/// How SEND and RECV proceed. async: a SEND waits for its turn in the send lane, a RECV is posted
/// ahead, and neither blocks. blocking: both occupy the compute lane; the device that reaches its
/// end first waits for the other, and both stay busy until the transfer completes. batched: as
/// blocking, with adjacent messages of a list as one batch: they start together, and the device
/// continues when all are complete.
enum class Messages : std::uint8_t { async, blocking, batched };
inline constexpr std::array all_messages{Messages::async, Messages::blocking, Messages::batched};
std::string_view name(Messages messages);

/// Tokens of each document that a sequence packs, which attend to their own alone; a sequence that
/// packs none is one.
using Documents = std::vector<std::int64_t>;
std::int64_t tokens_of(const Documents& documents);
/// "4096", "1024+3072".
std::string print(const Documents& documents);

/// How the ops of a program are executed, apart from their order: weight versions, flow control,
/// copies and messages. The text has a line for each setting that is not the default.
struct ProgramSettings {
  WeightRule weights = WeightRule::flush;
  std::string correction = "none";  // name of the correction of old weight versions
  /// By stage, or empty; -1: none. F(m) waits for update m - delay - 1, and under `latest` (a
  /// single copy of the weights) update m waits for F(m + delay): F reads weights that old exactly.
  std::vector<int> delay;
  /// By stage, or empty; 0: none. F(m) waits for the backward of m - window: the most in flight.
  std::vector<int> window;
  /// Pieces of a sequence, numbered like micro-batches: n is chunk n mod c of sequence n / c.
  /// Attention looks back: F(n) waits for F(n-1) of its sequence, and backward n for n+1's.
  int sequence_chunks = 1;
  /// By micro-batch of a step (of the program: slices count), or empty: how many times the costs of
  /// a micro-batch its F, I, W, R, stash and messages take.
  std::vector<double> costs;
  /// By micro-batch of a step, or empty: the tokens of its sequences. What they cost is the trace's
  /// to say: each is priced by its own kernels.
  std::vector<Documents> lengths;
  /// By piece of a sequence, or empty: its tokens. Pieces of unequal lengths are priced likewise.
  std::vector<std::int64_t> slices;
  /// Ranks that reduce their gradients together with each device of the program: data-parallel
  /// replicas that run the same program and are not in it. With several, every stage has
  /// REDUCE_GRAD before its updates.
  int data_ranks = 1;
  Clock clock = Clock::free;                         // whether devices run in lockstep
  Copies copies = Copies::free;                      // how OFFLOAD and PREFETCH proceed
  RecomputeStart recompute = RecomputeStart::early;  // when R may start
  Messages messages = Messages::async;               // how SEND and RECV proceed
  bool weights_transfer = true;  // false: weights reach all their readers at once, at no cost
  friend bool operator==(const ProgramSettings&, const ProgramSettings&) = default;
};

struct Program {
  std::string schedule;              // its origin; free text
  int microbatches = 0;              // per step; the numbers in ops count through all steps
  int steps = 1;                     // in the whole program
  std::vector<std::string> devices;  // names
  Placement placement;
  std::vector<StageEdge> edges;     // of the stage graph, sorted
  std::vector<bool> independent_w;  // stages whose W does not wait for I
  ProgramSettings settings;
  std::vector<std::vector<Op>> ops;  // by device

  int stages() const { return placement.stages(); }
  std::uint32_t total_microbatches() const {
    return static_cast<std::uint32_t>(microbatches) * static_cast<std::uint32_t>(steps);
  }
  friend bool operator==(const Program&, const Program&) = default;
};

/// Whether a stage may have to keep more than the newest version of its weights: not under flush
/// and latest, which have a single version.
constexpr bool keeps_versions(WeightRule rule) {
  return rule != WeightRule::flush && rule != WeightRule::latest;
}

/// The lane of an op kind under the copy setting.
inline LaneKind lane_of(const ProgramSettings& settings, OpKind kind) {
  const bool in_turns = kind == OpKind::prefetch &&
                        (settings.copies == Copies::half || settings.copies == Copies::blocking);
  return in_turns ? LaneKind::copy_out : lane_of(kind);
}

/// Micro-batches per update of this stage: the step's, or one from each replica when updates follow
/// every backward.
int microbatches_per_update(const Program& program, int stage);

/// The number of updates of a stage in the whole program.
int updates(const Program& program, int stage);

/// Under double_buffer: how many updates precede the weights that an op of this micro-batch reads:
/// all except those of the step before its own.
inline std::uint32_t delayed_version(const Program& program, Op op) {
  const std::uint32_t step = op.microbatch / static_cast<std::uint32_t>(program.microbatches);
  return step == 0 ? 0 : step - 1;
}

/// A correction that the memory account includes: old weights are rebuilt from a moving average of
/// the gradients (LayerPipe2, arXiv 2512.08160), one buffer as large as they are, instead of kept.
inline constexpr std::string_view moving_average = "moving_average";

/// Whether backwards read older weights that were kept for them.
inline bool keeps_versions(const ProgramSettings& settings) {
  return keeps_versions(settings.weights) && settings.correction != moving_average;
}

/// The suffix of an overlapped pair: "(7F3;0B2)OVERLAP_F_B".
inline constexpr std::string_view overlap_mark = "OVERLAP_F_B";

/// Whether list[i], which is overlapped, is the first half of a pair: it and the next op are
/// compute ops, and the next one begins no pair.
inline bool is_pair(const std::vector<Op>& list, std::size_t i) {
  return i + 1 < list.size() && lane_of(list[i].kind) == LaneKind::compute &&
         lane_of(list[i + 1].kind) == LaneKind::compute && !list[i + 1].overlapped;
}
inline constexpr std::string_view no_pair =
    "an overlapped op needs a second compute op right behind it";

/// Prints and parses the text. Throws ProgramError with line and column ("line 4, column 12: ...").
std::string print(const Program& program);
Program parse_program(std::string_view text);

/// Positions in a program's text; lines and columns from 1.
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
/// The same, with the positions in the text.
Program parse_program(std::string_view text, TextPlaces& places);

/// Throws the first error of check() in sim/check/check.hpp: ProgramError unless every stage does
/// each micro-batch's work exactly once, each op is on the device it is placed on, messages match,
/// and numbers are in range. Does not detect deadlocks: compile() does. O(ops).
void validate(const Program& program);

}  // namespace stageline
