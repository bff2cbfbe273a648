// From the ideal step to the real one: tables with bars, pictures, and JSON.
#pragma once

#include <string>
#include <vector>

#include "tools/base/json.hpp"
#include "tools/report/charts/waterfall.hpp"
#include "tools/study/whatif/waterfall.hpp"

namespace stageline::report {

/// A bar from one moment to another on a line of so many columns, which is `whole`.
std::string bar_between(Time from, Time to, Time whole, int columns);

/// A row a cause that takes time, each with a bar that begins where the one above ends, and one
/// sentence. `width`: the most columns of a line; bars are left out where there is no room.
std::string waterfall_table(const Waterfall& waterfall, int width);

/// A row a device: its work, and by cause what it does and waits beside that; rows add up to the
/// step.
std::string device_waterfall_table(const Waterfall& waterfall, int width);

/// That the causes are Shapley values, and of how many orders; empty of the fixed order.
std::string shapley_note(const Waterfall& waterfall);

/// Two side by side, cause by cause, with what the second has more; and difference_sentence().
std::string two_waterfalls_table(const NamedWaterfall& first, const NamedWaterfall& second,
                                 int width);

/// "zb_h1 is 11.9 % faster than 1f1b: fill and drain -310.0 ms, messages +12.00 ms": the largest
/// differences of the faster one, which add up with "the rest".
std::string difference_sentence(const NamedWaterfall& first, const NamedWaterfall& second);

/// The picture of one, or of two side by side; without a title.
WaterfallChart waterfall_chart(const std::vector<NamedWaterfall>& waterfalls);

/// The same with its title, and the notes below it, as SVG. `by_device`: of one waterfall, with a
/// bar a device below it, as device_waterfall_table() has it in rows; of more than 64 devices the
/// first and the last 32.
std::string waterfalls_svg(const std::vector<NamedWaterfall>& waterfalls, const std::string& model,
                           const std::vector<std::string>& notes, const SvgOptions& options,
                           bool by_device = false);

/// {"step_s", "step_ps", "ideal_…", "order", "orders", "causes": [{"cause", "time_s", "time_ps"},
/// …], "devices": [{"name", "work_…", "causes": [{"cause", "busy_…", "idle_…"}, …]}, …]}.
Json waterfall_json(const Waterfall& waterfall);

/// {"against", "step_…", "ideal_…", "causes": […], "sentence"}: what the second has more.
Json difference_json(const NamedWaterfall& first, const NamedWaterfall& second);

}  // namespace stageline::report
