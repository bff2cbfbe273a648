// The bars of a waterfall's devices: one a device, of parts beside one another.
//
//   By device   1 ▇ work   2 ▒ fill and drain   3 ░ messages
//   gpu0        |11111111111111111|222|3333|
//   gpu1        |1111111111111111111|22|333|
#pragma once

#include <utility>

#include "tools/report/charts/axis.hpp"
#include "tools/report/charts/waterfall.hpp"
#include "tools/report/timeline/svg_page.hpp"

namespace stageline::report {

/// The sums of the parts below and above 0.
std::pair<double, double> stack_ends(const WaterfallStack& stack);

/// Where they are, in px.
struct StackFrame {
  double margin = 0;
  double left = 0;  // of the plot
  double right = 0;
  double width = 0;  // of the page
  const ValueScale* scale = nullptr;
};

/// A heading, a key, and a bar each. Parts have a number of their own where they have room, so that
/// they differ without colours, too.
Fragment draw_stacks(const WaterfallChart& chart, const StackFrame& frame, double top);

}  // namespace stageline::report
