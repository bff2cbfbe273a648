#include "tools/launch/launched_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <stdexcept>

#include "sim/base/errors.hpp"
#include "tools/launch/flag_table.hpp"

namespace stageline {
namespace {

std::ptrdiff_t known_of(Framework framework, const LaunchArguments& arguments) {
  return std::count_if(
      arguments.given.begin(), arguments.given.end(),
      [&](const LaunchArgument& one) { return find_launch_flag(framework, one.name) != nullptr; });
}

// Whose errors are those of a file that nobody reads.
Framework framework_by_name(const std::string& file) {
  if (file.ends_with(".toml") || file.ends_with(".py")) return Framework::torchtitan;
  if (file.ends_with(".json")) return Framework::deepspeed;
  if (file.ends_with(".yaml") || file.ends_with(".yml")) return Framework::megatron_bridge;
  return Framework::megatron;
}

}  // namespace

LaunchAdditions parse_additions(const std::vector<std::string>& texts) {
  LaunchAdditions all;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos) {
      throw UsageError(fmt::format("--set takes NAME=VALUE, and \"{}\" is none", text));
    }
    std::string name = text.substr(0, equals);
    name.erase(0, name.find_first_not_of('-'));
    all.emplace_back(name, text.substr(equals + 1));
  }
  return all;
}

LaunchedRun read_launched_run(const std::string& text, const std::string& file,
                              const LaunchAdditions& additions) {
  std::optional<LaunchedRun> found;
  std::ptrdiff_t most = 0;
  std::exception_ptr why;
  for (const Framework framework : all_frameworks) {
    try {
      LaunchedRun run{framework, read_arguments(framework, text, file, additions)};
      const std::ptrdiff_t known = known_of(framework, run.arguments);
      if (known <= most) continue;
      most = known;
      found = std::move(run);
    } catch (const std::runtime_error&) {
      if (framework == framework_by_name(file)) why = std::current_exception();
    }
  }
  if (found) return *std::move(found);
  if (why) std::rethrow_exception(why);
  throw TraceError(file, "",
                   "no argument of it is known; a run is launched by a script or command line of "
                   "Megatron-LM, YAML of NeMo or Megatron-Bridge, TOML of torchtitan, or JSON of "
                   "DeepSpeed");
}

}  // namespace stageline
