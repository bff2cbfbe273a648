// Declares --why, and reads it.
#include "tools/commands/why_flags.hpp"

#include <fmt/core.h>

#include "sim/base/errors.hpp"

namespace stageline::cli {
namespace {

constexpr const char* without_value = "true";

}  // namespace

Flag add_why_flag(Flags command, std::string& why, const std::string& help) {
  return command.in(SettingGroup::output)
      .common()
      .flag("--why", why,
            help +
                "; --why=shapley: each cause as the mean over all orders in which "
                "causes can be removed");
}

std::optional<CauseOrder> why_order(const std::string& why) {
  if (why.empty()) return std::nullopt;
  if (why == without_value) return CauseOrder::fixed;
  if (why == "shapley") return CauseOrder::shapley;
  if (why == why_from_peak) {
    throw UsageError(
        "--why=peak is of one schedule, of `stageline simulate`; here it is --why or "
        "--why=shapley");
  }
  throw UsageError(fmt::format(
      "--why={} is unknown: it is --why, for the documented order of causes, --why=shapley, or of "
      "`stageline simulate` --why=peak",
      why));
}

}  // namespace stageline::cli
