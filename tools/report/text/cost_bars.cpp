// Draws bars of costs and ratios.
#include "tools/report/text/cost_bars.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "sim/base/index.hpp"

namespace stageline::report {
namespace {

struct Sign {
  std::string_view glyph;
  std::string_view colour;  // ANSI, the palette of the figures
  std::string_view meaning;
};
constexpr std::array<Sign, 4> signs{{{"█", "\x1b[38;5;32m", "F forward"},
                                     {"▓", "\x1b[38;5;172m", "I input gradient"},
                                     {"▒", "\x1b[38;5;36m", "W weight gradient"},
                                     {"░", "\x1b[38;5;245m", "update"}}};
constexpr std::string_view no_colour = "\x1b[0m";

std::string repeated(std::string_view glyph, std::int64_t count) {
  std::string text;
  for (std::int64_t i = 0; i < count; ++i) text += glyph;
  return text;
}

// A number from 0.1 in three digits: 0.123, 1.23, 12.3, 123, 1234.
std::string three_digits(double value) {
  const int decimals = value < 0.9995 ? 3 : value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f}", value, decimals);
}

}  // namespace

std::string cost_bar(const CostRow& row, Time longest, int width) {
  if (longest <= Time{} || row.step() <= Time{}) return {};
  const double of_backward = ratio(row.input_grad, row.input_grad + row.weight_grad).value_or(1) *
                             static_cast<double>(row.backward.count());
  const std::array<double, 4> parts{static_cast<double>(row.forward.count()), of_backward,
                                    static_cast<double>(row.backward.count()) - of_backward,
                                    static_cast<double>(row.update.count())};
  // Ends are rounded, not lengths, so that the whole bar has its right length.
  std::string bar;
  double sum = 0;
  std::int64_t cells = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    sum += parts[i];
    const std::int64_t end = std::llround(sum / static_cast<double>(longest.count()) * width);
    bar += repeated(signs[i].glyph, end - cells);
    cells = end;
  }
  return bar.empty() ? "▏" : bar;
}

std::string cost_bar_legend() {
  std::string text;
  for (const Sign& sign : signs) {
    text += fmt::format("{}{} {}", text.empty() ? "" : "  ", sign.glyph, sign.meaning);
  }
  return text;
}

std::string coloured_bars(const std::string& text) {
  std::string result;
  std::string_view current = no_colour;
  std::size_t at = 0;
  while (at < text.size()) {
    const auto sign = std::find_if(signs.begin(), signs.end(), [&](const Sign& s) {
      return text.compare(at, s.glyph.size(), s.glyph) == 0;
    });
    const std::string_view wanted = sign == signs.end() ? no_colour : sign->colour;
    if (wanted != current) result += wanted;
    current = wanted;
    const std::size_t length = sign == signs.end() ? 1 : sign->glyph.size();
    result.append(text, at, length);
    at += length;
  }
  if (current != no_colour) result += no_colour;
  return result;
}

std::string ratio_text(Time first, Time second) {
  const std::optional<double> times = ratio(first, second);
  if (!times) return first == Time{} ? "–" : "∞";
  if (first == Time{}) return "0×";
  if (*times < 0.1) return "1/" + three_digits(1 / *times) + "×";
  return three_digits(*times) + "×";
}

std::string ratio_bar(Time first, Time second, double widest, int half) {
  const std::string blank(as_size(half), ' ');
  if (first == second) return blank + "│";
  const bool faster = first < second;
  const double times = std::min(first, second) == Time{}
                           ? std::numeric_limits<double>::infinity()
                           : *ratio(std::max(first, second), std::min(first, second));
  if (times > widest) {
    const std::string cells = repeated("█", half - 1);
    return faster ? "◀" + cells + "│" : blank + "│" + cells + "▶";
  }
  const std::int64_t length = std::llround(std::log(times) / std::log(widest) * half);
  const std::string cells = repeated("█", length);
  return faster ? std::string(as_size(half - length), ' ') + cells + "│" : blank + "│" + cells;
}

double widest_ratio(const std::vector<CostPair>& pairs) {
  double needed = 1;
  for (const CostPair& pair : pairs) {
    const Time shorter = std::min(pair.first.step(), pair.second.step());
    needed = std::max(needed, ratio(pair.longer(), shorter).value_or(1));
  }
  for (const double widest : {1.1, 1.25, 1.5, 2.0, 3.0, 5.0}) {
    if (needed <= widest) return widest;
  }
  for (double power = 10;; power *= 10) {
    for (const double step : {1.0, 2.0, 5.0}) {
      if (needed <= step * power) return step * power;
    }
  }
}

std::string ratio_scale(double widest, int half) {
  const std::string left = fmt::format("1/{:g}×", widest);
  const std::string right = fmt::format("{:g}×", widest);
  const auto blanks = [&](std::size_t taken) {
    const auto room = as_size(half);
    return std::string(room > taken ? room - taken : 1, ' ');
  };
  // × is two bytes and one character.
  return left + blanks(left.size() - 1) + "1×" + blanks(right.size()) + right;
}

}  // namespace stageline::report
