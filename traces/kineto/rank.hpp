// One rank's profile, and the steps that merge the ranks into one run.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/op.hpp"
#include "traces/kineto/names.hpp"
#include "traces/kineto/traffic.hpp"
#include "traces/timelines.hpp"

namespace stageline {

/// A stretch of a rank's own clock, in nanoseconds.
struct KinetoStretch {
  std::int64_t start = 0;
  std::int64_t end = 0;
};

/// One range of the pipeline, in launch order. Nanoseconds of the rank's own clock.
struct KinetoRange {
  std::vector<Op> ops;  // one op, or two of an overlapped pair; micro-batch numbers of the step
  int step = 0;         // index into KinetoRank::steps
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::optional<std::int64_t> arrival;  // of a receive: when the message arrived, if known
  // For an op without a receive of its own, the backend's receive that brought its input. It ended
  // last since the op before it; or inside the range, where that began before the input was made.
  std::optional<KinetoStretch> input;
  std::optional<KinetoStretch> inside;  // the first receive that begins and ends inside
  // For an overlapped pair on the CPU, whose ops one thread runs in sequence:
  std::optional<std::int64_t> first_end;       // from its operators, later as divided
  std::optional<std::int64_t> second_start;    // from autograd's first operator, later as divided
  std::optional<std::int64_t> second_arrival;  // when the second op's message arrived
};

/// One optimizer step: of all stages of the rank, or one per stage.
struct KinetoUpdate {
  int step = 0;
  std::int64_t start = 0;
  std::int64_t end = 0;
};

/// How a profile shows the pipeline's ops.
enum class KinetoStyle : std::uint8_t {
  actions,    // "PP:2F0" of torch.distributed.pipelining
  plain,      // "Forward 0" of its one-stage schedules
  named,      // by the rules of KinetoRank::names
  operators,  // by autograd's operators: no range is known
};

struct KinetoRank {
  std::string file;
  std::optional<int> rank;  // as recorded in the profile
  std::string host;
  std::string ranks;  // number of ranks as recorded in the profile; else empty
  std::string accelerator;
  RangeSource source = RangeSource::cpu;
  KinetoStyle style = KinetoStyle::actions;
  std::string names;                // of style named: the title of the rules
  bool named_by_stage = true;       // else stages are not yet numbered
  std::vector<std::int64_t> steps;  // step numbers: N of ProfilerStep#N, else from 0
  std::vector<KinetoRange> ranges;
  std::vector<KinetoUpdate> updates;
  std::int64_t left_out = 0;     // ranges that are not ops: UNSHARD, RESHARD, REDUCE_GRAD
  Time left_out_time{};          // total time of those ranges
  std::int64_t waited = 0;       // for messages at the front of ranges, already cut off
  std::int64_t outside = 0;      // ranges outside of every ProfilerStep
  std::int64_t without_gpu = 0;  // ranges that launched no kernels and are timed by the CPU
  bool counted = false;          // some ops have their place in the step as their micro-batch
  bool one_step = false;         // nothing in the profile separates steps
  KinetoTraffic traffic;
  // Parallel to steps where the profile has ProfilerStep ranges, else empty: how long each lasted.
  std::vector<std::int64_t> step_lengths;
  std::int64_t work = 0;  // of operators or kernels in forwards and backwards that operators tell
  std::int64_t other_work = 0;  // of those in none of them, nor in an update
  std::int64_t recomputed = 0;  // of operators of forwards that ran again inside of backwards
  std::int64_t reductions = 0;  // time of collectives behind the last kernels of their ranges
};

/// A parsed annotation name: ops, or an action that is not an op and is left out.
struct KinetoAction {
  std::vector<Op> ops;
  bool left_out = false;
};

/// Parses the text behind "PP:", such as "2F0", "(7F3;0B2)OVERLAP_F_B" or "0UNSHARD"; empty where
/// it is none of these.
std::optional<KinetoAction> parse_action(std::string_view text);

/// Parses ScheduleGPipe's "Forward 3" and "Backward 3"; the stage is the rank, and set to 0 here.
std::optional<Op> parse_plain(std::string_view name);

/// How autograd's engine names what it runs.
inline constexpr std::string_view autograd_prefix = "autograd::engine::evaluate_function";

/// Parses a whole non-negative number and nothing else.
std::optional<std::int64_t> parse_count(std::string_view digits);

/// Reads the ranges that torch.distributed.pipelining names; `json` is the unpacked text. Empty
/// where the profile has none. Throws TraceError as documented at read_kineto.
std::optional<KinetoRank> read_action_rank(const std::string& file, const std::string& json);

/// `names`: the rules to read by; null: whatever the profile allows. Throws TraceError as
/// documented at read_kineto.
KinetoRank read_kineto_rank(const NamedText& profile, const RangeNames* names);

inline Time kineto_time(std::int64_t nanoseconds) { return std::chrono::nanoseconds(nanoseconds); }

/// The names of all files, for messages.
std::string files_of(const std::vector<KinetoRank>& ranks);

// The functions below change the ranks step by step until they form one run, and record their
// assumptions in run.notes. All throw TraceError as documented at read_kineto.

/// Sorts by the rank that the profile names; where none is named, keeps the order of the files.
void put_in_order(std::vector<KinetoRank>& ranks, KinetoRun& run);

/// One-stage schedules do not name the stage: it is the position of the rank, once check_messages()
/// has nothing against it.
void number_stages(std::vector<KinetoRank>& ranks, KinetoRun& run);

/// Throws TraceError where ranks without named stages are no pipeline by their messages, or without
/// any.
void check_messages(const std::vector<KinetoRank>& ranks);

/// Whether ranks without named stages are replicas or shards for certain: none sends or receives,
/// and they reduce something, or show their operators, of which none is a message.
bool are_replicas(const std::vector<KinetoRank>& ranks);

/// Throws TraceError where ranks without named stages or messages are at work at the same time:
/// stages wait for one another, replicas do not. Stages are numbered.
void check_order(const std::vector<KinetoRank>& ranks);

/// Leaves out the messages that the first and the last stage have no neighbour for: their functions
/// are called there too, and do nothing.
void drop_outer_messages(std::vector<KinetoRank>& ranks);

/// Leaves out all messages, with a note, where the named ones are not a whole set.
void settle_messages(std::vector<KinetoRank>& ranks, int stages, int microbatches, KinetoRun& run);

/// By stage: the device that computes it.
std::vector<int> place_stages(const std::vector<KinetoRank>& ranks);

/// An optimizer step of one stage.
struct UpdateSpan {
  int step;
  Op op;
  std::int64_t start;
  std::int64_t end;
};
/// The optimizer steps of a rank with these stages, in `steps` steps: none, with a note, where they
/// are not those of whole stages.
std::vector<UpdateSpan> updates_of(const KinetoRank& rank, const std::vector<int>& stages,
                                   std::size_t steps, KinetoRun& run);

/// Keeps the steps that are complete on every rank, numbered from 0; returns the micro-batches of
/// each.
int keep_complete_steps(std::vector<KinetoRank>& ranks, int stages, KinetoRun& run);

/// Shifts the clocks by align_clocks().
void align(std::vector<KinetoRank>& ranks, KinetoRun& run);

/// A range that waits for a message inside begins when that message has arrived.
void cut_waiting(std::vector<KinetoRank>& ranks, KinetoRun& run);

/// Gives each op of an overlapped pair on the CPU its own time (first_end, second_start): from its
/// operators, or else from the ops' times outside of pairs; the latter are listed in
/// run.estimated.
void divide_pairs(std::vector<KinetoRank>& ranks, int microbatches, KinetoRun& run);

/// Throws TraceError where two ranks have no moment in common, with their clocks as recorded.
void check_one_clock(const std::vector<KinetoRank>& ranks);

/// The date, ISO 8601; empty where a clock does not count from 1970.
std::string kineto_date(std::int64_t nanoseconds);

/// The shift of each rank's clock that makes messages go forward in time; ranks in the order of
/// their devices, with steps and stages numbered alike.
struct ClockShifts {
  std::vector<ClockShift> shifts;  // empty where no shift is needed
  bool contradicted = false;       // some message would arrive before it was sent
};

/// Clocks of different hosts are also aligned where no message contradicts them but the fastest
/// messages take more than three times as long one way as the other. Throws TraceError where no
/// shift is feasible, and where ranks of one host have no moment in common.
ClockShifts align_clocks(const std::vector<KinetoRank>& ranks);

/// A message: from when its sender had it to when its reader must have had it, by rank (index) and
/// in nanoseconds of each rank's clock.
struct KinetoMessage {
  int from = 0;
  int to = 0;
  Op reader;  // F, I or B
  const KinetoRange* made = nullptr;
  const KinetoRange* read = nullptr;
  std::int64_t sent = 0;       // earliest
  std::int64_t arrived = 0;    // latest
  bool arrival_known = false;  // from the receive itself, not only from the reader's end
  std::int64_t posted = std::numeric_limits<std::int64_t>::min();  // when it was waited for
};
std::vector<KinetoMessage> messages_of(const std::vector<KinetoRank>& ranks);

/// By the op that reads it, numbered through all steps: the time of a message since both its ends
/// were there, where the profiles show when it arrived. Clocks are aligned.
std::map<Op, Time> transits_of(const std::vector<KinetoRank>& ranks, int microbatches);

}  // namespace stageline
