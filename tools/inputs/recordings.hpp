// Timelines that the user names: outcomes of simulate --json, Chrome traces, profiles of PyTorch.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/program.hpp"
#include "sim/timeline.hpp"
#include "traces/timelines.hpp"

namespace stageline {

/// A run, simulated or measured.
struct Recording {
  std::string name;               // of the schedule and what it ran, or of the files
  Timeline timeline;              // of all steps
  int microbatches = 0;           // per step; 0: unknown, and then the run is one step
  int steps = 1;                  // of the timeline
  std::optional<Time> step_time;  // of an outcome
  bool measured = false;
  std::optional<Program> program;  // what a profile shows to have run
  std::set<Op> estimated;          // ops of a profile whose own time is an estimate
  std::vector<std::string> notes;
};

struct Content;

/// A format of timelines. A new one is a line of the table in tools/inputs/recordings.cpp.
struct RecordingFormat {
  std::string_view name;
  std::string_view summary;
  bool by_rank = false;  // files that follow each other are one run, one a rank
  bool (*recognises)(const std::string& text);
  /// One file, or all of a run. Throws TraceError.
  Recording (*read)(const std::vector<Content>& files);
};
std::span<const RecordingFormat> recording_formats();

/// A file, unpacked where it is gzip data.
struct Content {
  NamedText named;
  const RecordingFormat* format = nullptr;  // null: no timeline
};
Content read_content(const std::string& file);

/// The same of a file that may hold several profiles: an export of Nsight Systems, one a process.
std::vector<NamedText> read_profiles(const std::string& file);

/// One side of a comparison: one outcome or Chrome trace, or all profiles of one run. Throws
/// UsageError for a file without a timeline and for several files that are not the ranks of one
/// run, else what the readers throw.
Recording recording_of(const std::vector<Content>& files);

/// The outcome of simulate --json --timeline (or of stageline-exec --json). Throws TraceError with
/// the JSON pointer.
Recording read_outcome(const std::string& text, const std::string& file);

/// Puts profiles that follow each other into one side; each other file is a side of its own.
std::vector<std::vector<Content>> sides_of(std::vector<Content> files);

}  // namespace stageline
