// What a user typed: the words of the setting, to repeat in a command; durations.
#pragma once

#include <string>
#include <vector>

#include "tools/commands/case_flags.hpp"
#include "tools/inputs/settings.hpp"

namespace stageline::cli {

/// What was typed for the trace, for the settings of the question and of a whole training, which
/// mean the same to compare, simulate and plan, as words of a shell: "resnet50-cpu --link 2.5GB/s";
/// and for those of `more`, and of `keys`, such as "devices". `all`: the flags of the command.
std::string typed_setting(const CommonFlags& flags, const std::vector<Flag>& all,
                          const std::vector<SettingOf>& more = {},
                          const std::vector<std::string>& keys = {});

/// "8h", "30min", "2d" or a time as everywhere, in seconds, above 0. Throws UsageError, which
/// begins with the flag.
double seconds_of(const std::string& text, const std::string& flag);

}  // namespace stageline::cli
