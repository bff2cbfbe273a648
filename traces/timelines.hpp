// Timelines that come back: our own Chrome traces, and PyTorch's profiles of pipelined runs. Texts
// may be gzip data. Formats: traces/README.md.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/program.hpp"
#include "sim/timeline.hpp"

namespace stageline {

/// A Chrome trace as tools/report/timeline/chrome_trace.hpp writes it: the very same timeline, to
/// the picosecond.
struct ChromeTrace {
  Timeline timeline;
  std::string title;
  std::string schedule;
};

/// Throws TraceError: what scan_trace_events throws, and where a span is no op, lies on no device
/// or lane, or has a time that is negative or missing.
ChromeTrace read_chrome_trace(const std::string& text, const std::string& file);

/// A text and where it is from, for messages.
struct NamedText {
  std::string file;
  std::string text;
};

/// What the times of a profile are.
enum class RangeSource : std::uint8_t {
  gpu,       // from the first to the last kernel of a range
  cpu,       // of the work itself, done on the CPU
  launches,  // of a GPU's work, seen from the CPU: only how long launching it took
};

/// How far a rank's clock was shifted, later if positive, and how much less or more would also do.
struct ClockShift {
  int rank = 0;
  Time shift{};
  Time either_way{};
};

/// A pipelined run as PyTorch's profiler saw it.
struct KinetoRun {
  Timeline timeline;               // one device a rank, from the first op at 0; pairs as divided
  std::set<Op> estimated;          // ops of pairs whose own time is an estimate
  Program program;                 // what ran, in the order of the ranges; flush
  std::vector<int> ranks;          // by device
  std::vector<ClockShift> shifts;  // by device; empty: the clocks agree
  std::vector<Time> waited;        // by device, cut off the front of ranges that waited inside
  RangeSource source = RangeSource::cpu;
  std::string accelerator;         // name of the first rank's; empty: none
  std::string date;                // of the first op, ISO 8601
  std::vector<std::string> notes;  // what was left out, shifted, cut or assumed, a sentence each
};

/// One profile a rank of one pipeline, in any order. Ranges are named as
/// torch.distributed.pipelining names them, "PP:2F0"; or, where no file has any, "Forward 0" and
/// "Backward 0" of its one-stage schedules. Steps are told apart by ProfilerStep#N, else by ops
/// that come again; those that are not complete on every rank are left out. Throws TraceError where
/// a file is no such profile, a range is none that is known, two files are of one rank, a stage or
/// an op of all steps is missing, or where no shift of the clocks sends every message forward in
/// time.
KinetoRun read_kineto(const std::vector<NamedText>& profiles);

}  // namespace stageline
