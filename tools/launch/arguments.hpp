// The arguments of a run, read from what launches it: names and values, without their meaning.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/launch/framework.hpp"

namespace stageline {

struct LaunchArgument {
  std::string name;   // "num-layers", "parallelism.tensor_parallel_degree"
  std::string value;  // several words are joined by blanks; empty: a flag without one
  std::string where;  // "line 3"; empty: not known
};

struct LaunchArguments {
  std::string file;
  std::vector<LaunchArgument> given;
  /// What torchrun, srun and their like start; 0: not said.
  int machines = 0;
  int devices_each = 0;
};

/// What a user adds: a variable of a script, or an argument that the file does not have or has
/// with another value.
using LaunchAdditions = std::vector<std::pair<std::string, std::string>>;
/// Each text is "NAME=VALUE", with or without dashes. Throws UsageError for another one.
LaunchAdditions parse_additions(const std::vector<std::string>& texts);

/// A shell script or a command line: the one command with arguments such as --num-layers. Knows
/// variables and arrays that are set to what is written there, sums and products; what it cannot
/// know, as the output of a command or what is set in a branch, is refused where it is needed.
/// Throws TraceError.
LaunchArguments read_script(const std::string& text, const std::string& file,
                            const LaunchAdditions& additions);

/// The members of a JSON object by their paths. Throws TraceError.
LaunchArguments read_json_arguments(const std::string& text, const std::string& file);
/// The same of TOML and YAML. Throw TraceError, and UsageError where this build cannot read it.
LaunchArguments read_toml_arguments(const std::string& text, const std::string& file);
LaunchArguments read_yaml_arguments(const std::string& text, const std::string& file);

/// By the framework and the beginning of the text.
LaunchArguments read_arguments(Framework framework, const std::string& text,
                               const std::string& file, const LaunchAdditions& additions);

}  // namespace stageline
