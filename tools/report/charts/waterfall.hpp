// A waterfall: how a whole is made of pieces, each drawn from where the one above ends; one, or two
// side by side.
//
//                  0        20        40       60 ms
//   ideal          ████████████████                    48.0 ms     solid: the first;
//                  ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒                    48.0 ms     hatched: the second
//   fill and drain                 ██████             +18.0 ms
//                                  ▒▒                  +6.0 ms
//   step           ██████████████████████              66.0 ms
//                  ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒                  54.0 ms
#pragma once

#include <string>
#include <vector>

#include "tools/report/svg/options.hpp"

namespace stageline::report {

/// A bar of one waterfall, in the unit of the axis. `to` is below `from` where the piece lessens
/// the whole.
struct WaterfallBar {
  double from = 0;
  double to = 0;
  std::string words;    // beside the bar
  std::string tooltip;  // empty: none
};

struct WaterfallRow {
  std::string name;
  std::vector<WaterfallBar> bars;  // one a waterfall
};

/// One bar of parts beside one another: how a device spends the step. A part below 0 lies left of
/// 0.
struct WaterfallStack {
  std::string name;
  std::vector<double> parts;  // in the unit of the axis, in the order of `stack_parts`
};

struct WaterfallChart {
  std::string title;
  std::string subtitle;
  std::string label;                    // of the axis: "ms"
  std::vector<std::string> waterfalls;  // names; one or two
  std::vector<WaterfallRow> rows;       // from the top
  std::vector<std::string> footnotes;
  std::vector<std::string> stack_parts{};  // names; at most 13
  std::vector<WaterfallStack> stacks{};    // below the rows, on the same axis
};

/// A self-contained SVG 1.1 document without scripts; the two waterfalls differ without colours,
/// too. Throws UsageError where there is no row, for a number that is not finite, and for a width
/// out of range.
std::string waterfall_svg(const WaterfallChart& chart, const SvgOptions& options = {});

}  // namespace stageline::report
