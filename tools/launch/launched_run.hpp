// A run by what launched it, of whichever framework that is, or by what it printed of itself.
#pragma once

#include <optional>
#include <string>

#include "tools/launch/arguments.hpp"

namespace stageline {

struct LaunchedRun {
  Framework framework = Framework::megatron;
  LaunchArguments arguments;
  std::string device{};  // "h100", where a log names it
};

/// A launch file, read as that framework's which knows most of its arguments. Throws TraceError
/// where none knows any, and what read_arguments() throws.
LaunchedRun read_launched_run(const std::string& text, const std::string& file,
                              const LaunchAdditions& additions);

/// The arguments that Megatron-LM, torchtitan or DeepSpeed printed at the beginning of a log, those
/// that are known here: they print all their defaults. With the number of devices where the log
/// says it. Empty: it has none. Throws TraceError where they end in the middle.
std::optional<LaunchedRun> printed_run(const std::string& log, const std::string& file);

}  // namespace stageline
