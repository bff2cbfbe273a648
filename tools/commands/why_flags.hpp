// --why, and what simulate and compare make of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/commands/flags.hpp"
#include "tools/commands/svg_flags.hpp"
#include "tools/report/text/waterfall.hpp"
#include "tools/study/whatif/waterfall.hpp"

namespace stageline {

/// --why, --why=shapley: the value is empty where the flag is not given.
Flag add_why_flag(Flags command, std::string& why, const std::string& help);

/// Empty where --why is not given. Throws UsageError for another order than fixed and shapley.
std::optional<CauseOrder> why_order(const std::string& why);

/// Writes the picture of one waterfall, or of two side by side, in all formats asked for.
void write_waterfalls(const SvgFlags& flags, const std::vector<NamedWaterfall>& waterfalls,
                      const std::string& model, const std::vector<std::string>& notes);

}  // namespace stageline
