// One rank's profile, before the ranks are put together.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/op.hpp"
#include "traces/timelines.hpp"

namespace stageline {

/// One range of the pipeline's, in the order of the launches. Nanoseconds of the rank's own clock.
struct KinetoRange {
  std::vector<Op> ops;  // one, or the two of an overlapped pair; micro-batches of the step
  int step = 0;         // index into KinetoRank::steps
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::optional<std::int64_t> arrival;  // of a receive: when the message was there, where known
  // Of an overlapped pair on the CPU, where one thread runs its ops one after the other:
  std::optional<std::int64_t> first_end;  // as its operators show it, and then as it is divided
  std::optional<std::int64_t>
      second_start;  // the same; until then that of autograd's first operator
  std::optional<std::int64_t> second_arrival;  // when the second's message was there
};

/// An optimizer's step: of all stages of the rank, or of one each.
struct KinetoUpdate {
  int step = 0;
  std::int64_t start = 0;
  std::int64_t end = 0;
};

struct KinetoRank {
  std::string file;
  std::optional<int> rank;  // as the profile says
  std::string host;
  std::string ranks;  // how many there are, as the profile says; else empty
  std::string accelerator;
  RangeSource source = RangeSource::cpu;
  bool named_by_stage = true;       // "PP:2F0"; else "Forward 0", stages are still to be numbered
  std::vector<std::int64_t> steps;  // their numbers: of ProfilerStep#N, else from 0
  std::vector<KinetoRange> ranges;
  std::vector<KinetoUpdate> updates;
  std::int64_t left_out = 0;     // ranges that are no op: UNSHARD, RESHARD, REDUCE_GRAD
  Time left_out_time{};          //
  std::int64_t outside = 0;      // ranges outside of every ProfilerStep
  std::int64_t without_gpu = 0;  // ranges that launched nothing, timed by the CPU instead
};

/// What an annotation's name says: ops, or an action that is none and is left out.
struct KinetoAction {
  std::vector<Op> ops;
  bool left_out = false;
};

/// "2F0", "(7F3;0B2)OVERLAP_F_B", "0UNSHARD": what stands behind "PP:"; nothing where it is none of
/// these.
std::optional<KinetoAction> parse_action(std::string_view text);

/// "Forward 3" and "Backward 3" of ScheduleGPipe; the stage is the rank, and 0 here.
std::optional<Op> parse_plain(std::string_view name);

/// A whole number that is not negative, and nothing else.
std::optional<std::int64_t> parse_count(std::string_view digits);

/// Throws TraceError as read_kineto says.
KinetoRank read_kineto_rank(const NamedText& profile);

inline Time kineto_time(std::int64_t nanoseconds) { return std::chrono::nanoseconds(nanoseconds); }

/// The names of all files, for messages.
std::string files_of(const std::vector<KinetoRank>& ranks);

// What follows changes the ranks step by step until they are one run, and says in run.notes what it
// took for granted. All throw TraceError as read_kineto says.

/// By the rank that the profile names; where one names none, in the order of the files.
void put_in_order(std::vector<KinetoRank>& ranks, KinetoRun& run);

/// One-stage schedules do not name the stage: it is the place of the rank.
void number_stages(std::vector<KinetoRank>& ranks, KinetoRun& run);

/// By stage, the device that computes it.
std::vector<int> place_stages(const std::vector<KinetoRank>& ranks);

/// Keeps the steps that are complete on every rank, numbered from 0; returns the micro-batches of
/// each.
int keep_complete_steps(std::vector<KinetoRank>& ranks, int stages, KinetoRun& run);

/// Shifts the clocks as align_clocks says.
void align(std::vector<KinetoRank>& ranks, KinetoRun& run);

/// What waits inside of its range begins when its message is there.
void cut_waiting(std::vector<KinetoRank>& ranks, KinetoRun& run);

/// Gives the ops of overlapped pairs on the CPU a time of their own (first_end, second_start):
/// as the operators show it; else by what the ops take outside of pairs, and run.estimated has
/// them.
void divide_pairs(std::vector<KinetoRank>& ranks, int microbatches, KinetoRun& run);

/// Throws TraceError where two ranks have no moment in common, their clocks taken as they are.
void check_one_clock(const std::vector<KinetoRank>& ranks);

/// The date, ISO 8601; empty where a clock counts from the start of something.
std::string kineto_date(std::int64_t nanoseconds);

/// How to shift each rank's clock so that messages go forward in time; ranks in the order of their
/// devices, steps and stages numbered alike.
struct ClockShifts {
  std::vector<ClockShift> shifts;  // empty where nothing need be shifted
  bool contradicted = false;       // some message would arrive before it was sent
};

/// Clocks of different hosts are brought together as well where no message contradicts them, but
/// the fastest ones take more than three times as long one way as the other. Throws TraceError
/// where nothing helps, and where ranks of one host have no moment in common.
ClockShifts align_clocks(const std::vector<KinetoRank>& ranks);

/// A message: from where its sender had it to where its reader must have had it, by rank (index)
/// and in nanoseconds of each one's clock.
struct KinetoMessage {
  int from = 0;
  int to = 0;
  Op reader;  // F, I or B
  const KinetoRange* made = nullptr;
  const KinetoRange* read = nullptr;
  std::int64_t sent = 0;       // not before
  std::int64_t arrived = 0;    // not after
  bool arrival_known = false;  // by the receive itself, not only by the reader's end
};
std::vector<KinetoMessage> messages_of(const std::vector<KinetoRank>& ranks);

}  // namespace stageline
