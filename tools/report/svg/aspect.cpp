#include "tools/report/svg/aspect.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "sim/base/errors.hpp"
#include "sim/base/numbers.hpp"
#include "tools/report/svg/text.hpp"
#include "tools/report/svg/width.hpp"

namespace stageline::report {
namespace {

constexpr int most_trials = 8;  // widths; three are enough where the height hardly changes
constexpr double flattest = 4;  // width over height, or height over width

// The size in the head of a document of ours, and where the head's words begin and end.
struct Head {
  std::size_t begin = 0;
  std::size_t end = 0;
  double width = 0;
  double height = 0;
};

double number_after(const std::string& svg, std::string_view name) {
  const std::size_t begin = svg.find(name) + name.size();
  return parse_number<double>(svg.substr(begin, svg.find('"', begin) - begin)).value();
}

Head head_of(const std::string& svg) {
  constexpr std::string_view first = " width=\"";
  constexpr std::string_view last = " role=\"img\"";
  return {svg.find(first), svg.find(last), number_after(svg, first),
          number_after(svg, " height=\"")};
}

std::string replaced(std::string text, const std::string& old, const std::string& by) {
  const std::size_t at = text.find(old);
  return at == std::string::npos ? text : text.replace(at, old.size(), by);
}

// The same in a box of this size, in its middle.
std::string boxed(const std::string& svg, const Head& head, double width, double height) {
  const std::string x = svg_number((head.width - width) / 2);
  const std::string y = svg_number((head.height - height) / 2);
  const std::string size =
      fmt::format("width=\"{}\" height=\"{}\"", svg_number(width), svg_number(height));
  const std::string box =
      fmt::format(" {} viewBox=\"{} {} {} {}\"", size, x, y, svg_number(width), svg_number(height));
  const std::string ground = fmt::format("class=\"bg\" width=\"{}\" height=\"{}\"",
                                         svg_number(head.width), svg_number(head.height));
  return replaced(svg.substr(0, head.begin) + box + svg.substr(head.end), ground,
                  fmt::format("class=\"bg\" x=\"{}\" y=\"{}\" {}", x, y, size));
}

}  // namespace

double aspect_of(std::string_view text) {
  const std::size_t colon = text.find(':');
  std::optional<double> width;
  std::optional<double> height;
  if (colon != std::string_view::npos) {
    width = parse_number<double>(text.substr(0, colon));
    height = parse_number<double>(text.substr(colon + 1));
  }
  if (!width || !height || !(*width > 0) || !(*height > 0)) {
    throw UsageError(fmt::format("--aspect must be WIDTH:HEIGHT, such as 16:9, but is {}", text));
  }
  const double aspect = *width / *height;
  if (!(aspect <= flattest) || !(aspect >= 1 / flattest)) {
    throw UsageError(fmt::format("--aspect goes from 1:4 to 4:1, and {} is {} than that", text,
                                 aspect > 1 ? "wider" : "higher"));
  }
  return aspect;
}

std::string in_aspect(double aspect, SvgOptions options,
                      const std::function<std::string(const SvgOptions&)>& draw) {
  std::string svg = draw(options);
  Head head = head_of(svg);
  for (int trial = 1; trial < most_trials; ++trial) {
    const int width =
        std::clamp(static_cast<int>(std::lround(head.height * aspect)), least_desk, most_picture);
    if (width == options.width) break;
    options.width = width;
    svg = draw(options);
    head = head_of(svg);
  }
  const double width = std::max(head.width, head.height * aspect);
  return boxed(svg, head, width, width / aspect);
}

}  // namespace stageline::report
