#include "tools/report/charts/waterfall_stacks.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tools/report/charts/layout.hpp"
#include "tools/report/svg/text.hpp"

namespace stageline::report {
namespace {

constexpr double stack_pitch = 19;   // px, of bars
constexpr double stack_height = 14;  // px
constexpr double part_size = 9;      // px, of numbers on parts

// Classes of report/svg/theme.hpp: neighbours differ in lightness, so also in a grey print.
struct PartLook {
  const char* fill;
  const char* ink;
};
constexpr std::array<PartLook, 13> part_looks{{{"f", "k"},
                                               {"b", "w"},
                                               {"i", "k"},
                                               {"g", "w"},
                                               {"pf", "k"},
                                               {"u", "w"},
                                               {"pi", "k"},
                                               {"co", "w"},
                                               {"pg", "k"},
                                               {"st", "w"},
                                               {"pb", "k"},
                                               {"ci", "k"},
                                               {"dn", "k"}}};

const PartLook& look_of(std::size_t part) { return part_looks[part % part_looks.size()]; }

std::string part_box(std::size_t part, double x, double y, double width) {
  std::string out = fmt::format(
      "<rect class=\"{} e\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n", look_of(part).fill,
      svg_number(x), svg_number(y), svg_number(width), svg_number(stack_height));
  const std::string number = fmt::format("{}", part + 1);
  if (width >= text_width(number, part_size) + 3) {
    out +=
        text_at(x + width / 2, y + 10.5, fmt::format("{} n", look_of(part).ink), part_size, number);
  }
  return out;
}

Fragment stack_key(const WaterfallChart& chart, const StackFrame& frame, double top) {
  Fragment result;
  const double left = frame.left + 12;  // clear of the axis
  double x = left;
  double y = top;
  for (std::size_t part = 0; part < chart.stack_parts.size(); ++part) {
    const std::string& name = chart.stack_parts[part];
    const double needed = 22 + text_width(name, tick_size) + 16;
    if (x > left && x + needed - 16 > frame.width - frame.margin) {
      x = left;
      y += 19;
    }
    result.text += part_box(part, x, y, 16) + text_at(x + 22, y + 11, "d", tick_size, name);
    x += needed;
  }
  result.bottom = y + 24;
  return result;
}

}  // namespace

std::pair<double, double> stack_ends(const WaterfallStack& stack) {
  std::pair<double, double> ends{0, 0};
  for (const double part : stack.parts) (part < 0 ? ends.first : ends.second) += part;
  return ends;
}

Fragment draw_stacks(const WaterfallChart& chart, const StackFrame& frame, double top) {
  Fragment result = stack_key(chart, frame, top);
  result.text += text_at(frame.margin, top + 11, "t h", name_size, "By device");
  const auto px = [&](double value) {
    return frame.left + frame.scale->share(value) * (frame.right - frame.left);
  };
  double y = result.bottom;
  for (const WaterfallStack& stack : chart.stacks) {
    result.text += text_at(frame.margin, y + 11, "t", name_size, shortened(stack.name, 40));
    double above = 0;
    double below = 0;
    for (std::size_t part = 0; part < stack.parts.size(); ++part) {
      const double size = stack.parts[part];
      if (size == 0) continue;
      double& end = size < 0 ? below : above;
      const auto [low, high] = std::minmax({end, end + size});
      end += size;
      result.text +=
          fmt::format("<g><title>{}</title>\n",
                      xml_escaped(fmt::format("{}, {}: {}", stack.name, chart.stack_parts[part],
                                              value_text(size, chart.label))));
      result.text += part_box(part, px(low), y, px(high) - px(low)) + "</g>\n";
    }
    y += stack_pitch;
  }
  result.bottom = y;
  return result;
}

}  // namespace stageline::report
