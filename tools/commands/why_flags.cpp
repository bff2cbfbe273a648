// Declares --why, and draws waterfalls.
#include "tools/commands/why_flags.hpp"

#include <fmt/core.h>

#include "sim/base/errors.hpp"

namespace stageline {
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
  throw UsageError(fmt::format(
      "--why={} is unknown: it is --why, for the documented order of causes, or --why=shapley",
      why));
}

void write_waterfalls(const SvgFlags& flags, const std::vector<NamedWaterfall>& waterfalls,
                      const std::string& model, const std::vector<std::string>& notes) {
  WaterfallChart chart = waterfall_chart(waterfalls);
  chart.title = "Where the step's time goes · " + model;
  chart.subtitle = waterfalls.size() == 1
                       ? fmt::format("{}: step {}", waterfalls.front().name,
                                     print(waterfalls.front().waterfall.step))
                       : difference_sentence(waterfalls.front(), waterfalls.back());
  const std::string order = shapley_note(waterfalls.front().waterfall);
  if (!order.empty()) chart.footnotes.push_back("Note: " + order + ".");
  for (const std::string& note : notes) chart.footnotes.push_back("Note: " + note + ".");
  write_pictures(flags, waterfall_svg(chart, svg_options(flags)));
}

}  // namespace stageline
