// --why, of simulate, compare and report.
#pragma once

#include <optional>
#include <string>

#include "tools/commands/flags.hpp"
#include "tools/study/whatif/waterfall.hpp"

namespace stageline::cli {

/// --why, --why=shapley: the value is empty where the flag is not given.
Flag add_why_flag(Flags command, std::string& why, const std::string& help);

/// The value with which `stageline simulate` starts at the devices' peak: --why=peak.
inline constexpr const char* why_from_peak = "peak";

/// Empty where --why is not given. Throws UsageError for another order than fixed and shapley.
std::optional<CauseOrder> why_order(const std::string& why);

}  // namespace stageline::cli
