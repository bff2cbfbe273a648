// Reads recorded timelines: our own Chrome traces, and PyTorch's profiles of pipelined runs. Texts
// may be gzip data. Formats: traces/README.md.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/program.hpp"
#include "sim/timeline.hpp"

namespace stageline {

/// A Chrome trace as tools/report/timeline/chrome_trace.hpp writes it; the timeline is restored
/// exactly, to the picosecond. A pair of events "B" and "E" of one thread is a span as well.
struct ChromeTrace {
  Timeline timeline;
  std::string title;
  std::string schedule;
  int steps = 0;                    // of the timeline; 0: the trace does not say
  int microbatches = 0;             // per step; likewise
  std::optional<Time> step_time{};  // at a steady pace
};

/// Throws TraceError as scan_trace_events does, and where a span is not an op, lies on no device or
/// lane, has a time that is negative or missing, or has a "B" without its "E" or the other way.
ChromeTrace read_chrome_trace(const std::string& text, const std::string& file);

/// A text and its file name, for messages.
struct NamedText {
  std::string file;
  std::string text;
};

/// The meaning of a profile's times.
enum class RangeSource : std::uint8_t {
  gpu,       // from the first to the last kernel of a range
  cpu,       // of the work itself, done on the CPU
  launches,  // CPU time spent launching work on a GPU, not the work itself
};

/// The shift of a rank's clock (positive: later), and by how much less or more is feasible.
struct ClockShift {
  int rank = 0;
  Time shift{};
  Time either_way{};
};

class RangeNames;  // traces/kineto/names.hpp

/// A pipelined run as PyTorch's profiler recorded it.
struct KinetoRun {
  Timeline timeline;               // one device per rank, first op at 0; overlapped pairs divided
  std::set<Op> estimated;          // ops of overlapped pairs with an estimated time
  Program program;                 // the ops that ran, in the order of the ranges; flush
  std::vector<int> ranks;          // by device
  std::int64_t origin = 0;         // when the timeline begins, in nanoseconds of the clocks
  std::vector<ClockShift> shifts;  // by device; empty: the clocks agree
  std::vector<Time> waited;        // by device: waiting cut off the front of ranges
  // By the op that reads it (F, I or B): the time of a message since both its ends were there,
  // where the profiles show when it arrived.
  std::map<Op, Time> transit;
  RangeSource source = RangeSource::cpu;
  std::string accelerator;         // name of the first rank's accelerator; empty: none
  std::string date;                // date of the first op, ISO 8601
  std::vector<std::string> notes;  // omissions, shifts, cuts and assumptions, a sentence each
  // The other ranks, where all are replicas: `program` and all else is that of the first.
  std::vector<Timeline> replicas{};
};

/// Takes one profile per rank of one pipeline, in any order. Ops are the ranges that `names` says,
/// or without it the first of these that a profile has: "PP:2F0" as torch.distributed.pipelining
/// names them; "Forward 0" and "Backward 0" of its one-stage schedules; the names of a preset; the
/// operators of autograd. Steps are separated by ProfilerStep#N, else by repeated ops or updates;
/// those that are not complete on every rank are left out. Ranks without named stages that send no
/// message and receive none, but reduce gradients, are replicas: one stage. Throws TraceError where
/// a file is not such a profile, a range is unknown, two files are of one rank, a stage or an op of
/// all steps is missing, or where no shift of the clocks sends every message forward in time.
KinetoRun read_kineto(const std::vector<NamedText>& profiles, const RangeNames* names = nullptr);

}  // namespace stageline
