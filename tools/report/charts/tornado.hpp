// A tornado: how much one number changes with each of many others, the largest change first.
//
//                 −12 %     −6 %       0       +6 %
//   backward        ┌─ ─ ─ ─ ████████████│▒▒▒▒▒▒▒▒▒▒▒    solid: 10 % faster; framed: twice as fast;
//   forward             ┌ ─ ─  █████████│▒▒▒▒▒▒▒        hatched: 10 % slower
//   links: latency                     ▏│
#pragma once

#include <string>
#include <vector>

#include "tools/report/svg/options.hpp"

namespace stageline::report {

/// Changes in percent; below 0 is better.
struct TornadoBar {
  std::string name;
  double faster = 0;
  double twice = 0;
  double slower = 0;
  std::string words;  // tooltip
};

struct Tornado {
  std::string title;
  std::string subtitle;
  std::string label;             // of the axis
  std::vector<TornadoBar> bars;  // from the top
  std::vector<std::string> footnotes;
};

/// A self-contained SVG 1.1 document without scripts; bars differ without colours, too. Throws
/// UsageError where there is no bar, for a number that is not finite, and for a width out of range.
std::string tornado_svg(const Tornado& tornado, const SvgOptions& options = {});

}  // namespace stageline::report
