// Prints counts, dollars and joules.
#include "tools/base/amounts.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace stageline {
namespace {

struct Unit {
  double size;
  std::string_view suffix;
};
constexpr std::array counts{Unit{1e12, "T"}, Unit{1e9, "B"}, Unit{1e6, "M"}, Unit{1e3, "k"}};
constexpr std::array joule_units{Unit{1e12, "TJ"}, Unit{1e9, "GJ"}, Unit{1e6, "MJ"},
                                 Unit{1e3, "kJ"},  Unit{1, "J"},    Unit{1e-3, "mJ"},
                                 Unit{1e-6, "µJ"}};

constexpr double least_dollars = 1e-9;

// Which is 1k, and not 1000, where four digits round it up to that.
bool reaches(double value, const Unit& unit) { return value >= 0.99995 * unit.size; }

double in_unit(double value, const Unit& unit) { return std::max(1.0, value / unit.size); }

}  // namespace

std::string count_text(double count) {
  for (const Unit& unit : counts) {
    if (!reaches(count, unit)) continue;
    const double value = in_unit(count, unit);
    return value < 9999.5 ? fmt::format("{:.4g}{}", value, unit.suffix)
                          : fmt::format("{:.0f}{}", value, unit.suffix);
  }
  return fmt::format("{:.4g}", count);
}

std::string dollars_text(double dollars) {
  if (dollars >= least_dollars && dollars < 0.0995) {
    const int zeros = static_cast<int>(std::floor(-std::log10(dollars)));
    return fmt::format("${:.{}f}", dollars, zeros + 3);
  }
  return dollars < 999.995 ? fmt::format("${:.2f}", dollars) : "$" + count_text(dollars);
}

std::string joules_text(double joules) {
  for (const Unit& unit : joule_units) {
    if (reaches(joules, unit)) return fmt::format("{:.4g} {}", in_unit(joules, unit), unit.suffix);
  }
  return fmt::format("{:.4g} J", joules);
}

}  // namespace stageline
