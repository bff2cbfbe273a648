// Timelines that the user names: outcomes of simulate --json, Chrome traces, profiles of PyTorch.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/program.hpp"
#include "sim/timeline.hpp"
#include "traces/timelines.hpp"

namespace stageline {

/// A run, simulated or measured.
struct Recording {
  std::string name;               // of the schedule and what it ran, or of the files
  Timeline timeline;              //
  int microbatches = 0;           // per step; 0: unknown, and then the run is one step
  int steps = 1;                  //
  std::optional<Time> step_time;  // as an outcome says it
  bool measured = false;
  std::optional<Program> program;  // what a profile shows to have run
  std::set<Op> estimated;          // ops of a profile whose own time is an estimate
  std::vector<std::string> notes;
};

/// What a file holds, told by what is in it.
enum class ContentKind : std::uint8_t { outcome, chrome, kineto, other };

/// A file, unpacked where it is gzip data.
struct Content {
  NamedText named;
  ContentKind kind = ContentKind::other;
};
Content read_content(const std::string& file);

/// One side of a comparison: one outcome or Chrome trace, or all profiles of one run. Throws
/// UsageError for what is neither and for several files of which one is no profile, else what the
/// readers throw.
Recording recording_of(const std::vector<Content>& files);

/// The outcome of simulate --json --timeline (or of stageline-exec --json). Throws TraceError with
/// the JSON pointer.
Recording read_outcome(const std::string& text, const std::string& file);

/// Puts profiles that follow each other into one side; each other file is a side of its own.
std::vector<std::vector<Content>> sides_of(std::vector<Content> files);

}  // namespace stageline
