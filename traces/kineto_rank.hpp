// One rank's profile, before the ranks are put together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
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

/// Throws TraceError as read_kineto says.
KinetoRank read_kineto_rank(const NamedText& profile);

/// How to shift each rank's clock so that messages go forward in time; ranks in the order of their
/// devices, steps and stages numbered alike. Empty where nothing need be shifted. Throws TraceError
/// where nothing helps.
std::vector<ClockShift> align_clocks(const std::vector<KinetoRank>& ranks);

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
