// Profiles that are named in the place of TRACE, or behind it.
#pragma once

#include <string>
#include <vector>

#include "tools/commands/case_flags.hpp"
#include "traces/timelines.hpp"

namespace stageline::cli {

/// PROFILE, any number of files behind TRACE.
Flag add_profile_files(Flags command, std::vector<std::string>& files, const std::string& help);

/// Whether TRACE is a file that PyTorch's profiler wrote, or an export of Nsight Systems.
bool is_profile(const std::string& trace);

/// The profiles of one run, of all files. Throws UsageError for a file that holds none, and what
/// reading a file throws.
std::vector<NamedText> profiles_in(const std::vector<std::string>& files);

/// Throws UsageError for a setting that is given beside profiles of a run, which are not simulated.
void check_no_settings(const CommonFlags& flags);

}  // namespace stageline::cli
