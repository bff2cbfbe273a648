#include "tools/commands/profile_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "sim/base/errors.hpp"
#include "tools/inputs/recordings.hpp"
#include "tools/inputs/settings.hpp"

namespace stageline::cli {
namespace {

bool holds_profile(const NamedText& one) {
  const auto formats = recording_formats();
  const auto first = std::find_if(formats.begin(), formats.end(),
                                  [&](const RecordingFormat& f) { return f.recognises(one.text); });
  return first != formats.end() && first->by_rank;
}

}  // namespace

Flag add_profile_files(Flags command, std::vector<std::string>& files, const std::string& help) {
  return command.option("PROFILE", files, help);
}

bool is_profile(const std::string& trace) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(trace, none)) return false;
  try {
    const std::vector<NamedText> profiles = read_profiles(trace);
    return !profiles.empty() && holds_profile(profiles.front());
  } catch (const std::exception&) {
    return false;  // whoever opens it as a trace says what is wrong
  }
}

std::vector<NamedText> profiles_in(const std::vector<std::string>& files) {
  std::vector<NamedText> profiles;
  for (const std::string& file : files) {
    for (NamedText& one : read_profiles(file)) {
      if (!holds_profile(one)) {
        throw UsageError(
            fmt::format("{} is no profile of PyTorch's profiler, which has \"traceEvents\" beside "
                        "\"schemaVersion\"; behind TRACE are the profiles of one run, one a rank",
                        file));
      }
      profiles.push_back(std::move(one));
    }
  }
  return profiles;
}

void check_no_settings(const CommonFlags& flags) {
  const auto refuse = [&](std::string_view flag) {
    throw UsageError(fmt::format(
        "{} says how a run is simulated, and {} is a profile of one; leave it out, or name the run "
        "as TRACE before its profiles (`stageline explain` takes both)",
        flag, flags.trace()));
  };
  for (const auto& [key, typed] : flags.typed) {
    if (key != "trace" && typed.given()) refuse(find_setting(key)->flag());
  }
  if (!flags.schedules.empty()) refuse("--schedule");
  if (!flags.program.empty()) refuse("--program");
}

}  // namespace stageline::cli
