// Reads axes, and computes their values.
#include "tools/sweep/axis.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <utility>

#include "schedulers/scheduler.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/base/numbers.hpp"
#include "sim/base/units.hpp"
#include "sim/batch/philox.hpp"

namespace stageline {
namespace {

constexpr double most_whole = 9e15;  // doubles below are exact
constexpr std::int64_t most_values = 1'000'000'000;

// To so many significant digits: what is computed is what a row shows.
double rounded(double value, int digits) {
  return parse_number<double>(fmt::format("{:.{}e}", value, digits - 1)).value_or(value);
}

std::string number_text(double value) {
  return std::abs(value) < most_whole && value == std::floor(value)
             ? fmt::format("{}", static_cast<std::int64_t>(value))
             : fmt::format("{}", value);
}

[[noreturn]] void refuse(const std::string& name, const std::string& message) {
  throw UsageError(fmt::format("axis {}: {}", name, message));
}

struct Quantity {
  double number = 0;
  std::string unit;
  bool whole = false;
};

// Nothing where the text does not begin with a number.
std::optional<Quantity> quantity_of(std::string_view text) {
  std::string_view rest = text;
  const std::optional<double> number = take_number<double>(rest);
  if (!number || !std::isfinite(*number)) return std::nullopt;
  Quantity found{*number, std::string(rest), false};
  found.whole = rest.empty() && parse_number<std::int64_t>(text).has_value();
  return found;
}

// One of the unit in picoseconds, bytes or bytes a second; nothing where it is no such unit.
std::optional<double> size_of(const std::string& unit, int dimension) {
  try {
    const std::string one = "1" + unit;
    if (dimension == 0) return static_cast<double>(parse_bandwidth(one).bytes_per_second);
    if (dimension == 1) return static_cast<double>(parse_bytes(one).count);
    return static_cast<double>(parse_time(one).count());
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
}

// How many of the unit `of` one of `unit` is.
double ratio(const std::string& name, const std::string& unit, const std::string& of) {
  if (unit == of) return 1;
  for (int dimension = 0; dimension < 3; ++dimension) {
    const std::optional<double> a = size_of(unit, dimension);
    const std::optional<double> b = size_of(of, dimension);
    if (a && b) return *a / *b;
  }
  refuse(name, fmt::format("its ends are in different units, \"{}\" and \"{}\"; write both in one",
                           of, unit));
}

std::string in_unit(const SweepAxis& axis, double value) { return number_text(value) + axis.unit; }

double at_share(const SweepAxis& axis, double share, bool logarithmic) {
  const double a = axis.from.value;
  const double b = axis.to.value;
  return logarithmic ? a * std::pow(b / a, share) : a + (b - a) * share;
}

// Steps grow along the range, so that rounded values are the same at its beginning alone: there
// value n is the first one and n.
double whole_at(const SweepAxis& axis, std::int64_t digit) {
  const double share = static_cast<double>(digit) / static_cast<double>(axis.count - 1);
  const double spread = std::round(at_share(axis, share, axis.kind == SweepAxis::Kind::log));
  return std::clamp(spread, axis.from.value + static_cast<double>(digit),
                    axis.to.value - static_cast<double>(axis.count - 1 - digit));
}

constexpr int significant = 4;         // digits of values that are spread
constexpr int significant_steps = 12;  // of values that are stepped to
constexpr int significant_drawn = 6;   // of values that are drawn

void set_form(SweepAxis& axis, std::string_view form) {
  const auto number = [&](std::string_view lead) {
    return parse_number<std::int64_t>(form.substr(lead.size()));
  };
  if (form == "random") {
    axis.kind = SweepAxis::Kind::random;
  } else if (form == "randomlog") {
    axis.kind = SweepAxis::Kind::random_log;
  } else if (form.starts_with("log") || form.starts_with("lin")) {
    axis.kind = form.starts_with("log") ? SweepAxis::Kind::log : SweepAxis::Kind::linear;
    const std::optional<std::int64_t> count = number("log");
    if (!count || *count < 2 || *count > most_values) {
      refuse(axis.name, fmt::format("\"{}\" wants a number of values from 2, such as {}7", form,
                                    form.substr(0, 3)));
    }
    axis.count = *count;
  } else {
    axis.kind = SweepAxis::Kind::step;
    axis.step = 1;
    if (!form.empty()) {
      const std::optional<Quantity> step = quantity_of(form);
      if (!step || !(step->number > 0)) {
        refuse(axis.name, fmt::format("\"{}\" is no step above 0, nor one of linN, logN, random, "
                                      "randomlog",
                                      form));
      }
      const std::string unit = step->unit.empty() ? axis.unit : step->unit;
      axis.step = step->number * ratio(axis.name, unit, axis.unit);
      axis.whole = axis.whole && axis.step == std::floor(axis.step);
    }
  }
}

void check_range(SweepAxis& axis) {
  const double a = axis.from.value;
  const double b = axis.to.value;
  if (a > b) {
    refuse(axis.name, fmt::format("the range {} is empty, since it goes downwards; write {}..{}",
                                  axis.text, axis.to.text, axis.from.text));
  }
  const bool logarithmic =
      axis.kind == SweepAxis::Kind::log || axis.kind == SweepAxis::Kind::random_log;
  if (logarithmic && !(a > 0)) {
    refuse(axis.name, fmt::format("{} begins at {}; a logarithmic range begins above 0", axis.text,
                                  axis.from.text));
  }
  if (axis.is_random()) {
    axis.count = 1;
  } else if (axis.kind == SweepAxis::Kind::step) {
    const double steps = std::floor((b - a) / axis.step * (1 + 1e-12));
    if (steps >= static_cast<double>(most_values)) {
      refuse(axis.name, fmt::format("{} has more than {} values", axis.text, most_values));
    }
    axis.count = static_cast<std::int64_t>(steps) + 1;
  } else if (a == b) {
    axis.count = 1;
  } else if (axis.whole) {
    axis.count = std::min(axis.count, static_cast<std::int64_t>(b - a) + 1);
  }
}

// Nothing where the text is no range.
std::optional<SweepAxis> range_of(const std::string& name, const std::string& text) {
  const std::size_t dots = text.find("..");
  if (dots == std::string::npos) return std::nullopt;
  const std::optional<Quantity> from = quantity_of(text.substr(0, dots));
  std::string end = text.substr(dots + 2);
  const std::size_t colon = end.find(':');
  const std::string form = colon == std::string::npos ? "" : end.substr(colon + 1);
  if (colon != std::string::npos) end.resize(colon);
  const std::optional<Quantity> to = quantity_of(end);
  if (!from && !to) return std::nullopt;  // "../trace.json"
  if (!from || !to) refuse(name, fmt::format("\"{}\" has an end that is no number", text));
  SweepAxis axis;
  axis.name = name;
  axis.text = text;
  axis.unit = from->unit.empty() && from->number == 0 ? to->unit : from->unit;
  axis.whole = from->whole && to->whole;
  axis.from = {text.substr(0, dots), from->number};
  axis.to = {end, to->number * ratio(name, to->unit, axis.unit)};
  if (colon != std::string::npos && form.empty()) {
    refuse(name, fmt::format("\"{}\" ends with a colon; a step or one of linN, logN, random, "
                             "randomlog belongs there",
                             text));
  }
  set_form(axis, form);
  check_range(axis);
  return axis;
}

// Whether an item belongs to the one before it: a knob of a schedule, an option of a model, the
// latency of a link.
bool continues(const std::string& item) {
  const std::size_t equals = item.find('=');
  if (equals != std::string::npos) return item.find(':') > equals;
  const std::optional<Quantity> quantity = quantity_of(item);
  return quantity && size_of(quantity->unit, 2) && !quantity->unit.empty();
}

std::vector<std::string> items_of(const std::string& text) {
  const char between = text.find('|') != std::string::npos ? '|' : ',';
  std::vector<std::string> items;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(between, begin), text.size());
    std::string item = text.substr(begin, end - begin);
    if (between == ',' && !items.empty() && continues(item)) {
      items.back() += "," + item;
    } else {
      items.push_back(std::move(item));
    }
    begin = end + 1;
  }
  return items;
}

std::uint32_t hash_of(const std::string& name) {
  std::uint32_t hash = 0x811c9dc5U;  // Fowler, Noll and Vo
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x01000193U;
  return hash;
}

}  // namespace

std::string SweepAxis::value(std::int64_t digit) const {
  if (kind == Kind::list) return nth(values, static_cast<int>(digit));
  if (digit == 0) return from.text;
  if (kind == Kind::step) {
    return in_unit(*this, rounded(from.value + static_cast<double>(digit) * step,
                                  whole ? 16 : significant_steps));
  }
  if (digit == count - 1) return to.text;
  if (whole) return in_unit(*this, whole_at(*this, digit));
  const double share = static_cast<double>(digit) / static_cast<double>(count - 1);
  return in_unit(*this, rounded(at_share(*this, share, kind == Kind::log), significant));
}

std::string SweepAxis::drawn(std::uint64_t draw, std::uint64_t seed) const {
  const PhiloxCounter words = philox(
      {static_cast<std::uint32_t>(draw), static_cast<std::uint32_t>(draw >> 32U), hash_of(name), 0},
      {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32U)});
  const double share = uniform_of(words[0]);
  const bool logarithmic = kind == Kind::random_log;
  if (!whole)
    return in_unit(*this, rounded(at_share(*this, share, logarithmic), significant_drawn));
  const double value = logarithmic ? std::round(at_share(*this, share, true))
                                   : std::floor(from.value + share * (to.value - from.value + 1));
  return in_unit(*this, std::clamp(value, from.value, to.value));
}

SweepAxis list_axis(const std::string& name, std::vector<std::string> values) {
  if (values.empty()) refuse(name, "it has no values; give at least one");
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].empty()) refuse(name, "one of its values is empty");
    const auto before = values.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::find(values.begin(), before, values[i]) != before) {
      refuse(name, fmt::format("\"{}\" is there twice", values[i]));
    }
  }
  SweepAxis axis;
  axis.name = name;
  axis.count = static_cast<std::int64_t>(values.size());
  axis.values = std::move(values);
  return axis;
}

SweepAxis parse_axis(const std::string& name, const std::string& text) {
  if (std::optional<SweepAxis> range = range_of(name, text)) return *std::move(range);
  if (text.empty()) return list_axis(name, {});
  std::vector<std::string> values;
  for (std::string& item : items_of(text)) {
    if (name == "schedule" && item == "all") {
      for (const Scheduler* const one : schedulers()) values.emplace_back(one->name);
    } else {
      values.push_back(std::move(item));
    }
  }
  return list_axis(name, std::move(values));
}

}  // namespace stageline
