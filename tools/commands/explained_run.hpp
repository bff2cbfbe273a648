// The run that `stageline explain` is asked about, by its flags, by what launched it, or by its
// log.
#pragma once

#include <string>
#include <vector>

#include "tools/answers/explained.hpp"
#include "tools/commands/case_flags.hpp"

namespace stageline::cli {

struct ExplainedRunFlags {
  std::string launch;  // file
  std::string log;     // file
  std::string model;
  std::string kind;                    // of device
  std::vector<std::string> additions;  // "NAME=VALUE"
};

/// --launch, --log, --model, --kind, --set.
void add_explained_run_flags(Flags command, ExplainedRunFlags& flags);

/// What a log has of its steps.
struct MeasuredRun {
  std::vector<answers::MeasuredValue> values;
  std::optional<Bytes> memory{};
  std::int64_t samples = 0;
};

struct ExplainedRun {
  CommonFlags common;  // as typed, with what the file says
  MeasuredRun measured;
  std::vector<std::string> notes{};
};

/// Reads the files. Throws TraceError for a file that is none, and UsageError where a flag and the
/// file contradict each other, and where nothing says the run.
ExplainedRun explained_run(const ExplainedRunFlags& flags, const CommonFlags& common);

}  // namespace stageline::cli
