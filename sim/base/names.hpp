// Text to the values of an enumeration, by their names. `all` is a table of the values, and
// name(value) the name of one.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/errors.hpp"

namespace stageline {

template <class Enum, std::size_t n>
std::vector<std::string> names_of(const std::array<Enum, n>& all) {
  std::vector<std::string> names;
  for (const Enum value : all) names.emplace_back(name(value));
  return names;
}

/// The value of that name; nothing where none has it.
template <class Enum, std::size_t n>
std::optional<Enum> find_named(const std::array<Enum, n>& all, std::string_view text) {
  for (const Enum value : all) {
    if (name(value) == text) return value;
  }
  return std::nullopt;
}

/// The value of that name. Throws UsageError "WHAT is one of a, b, c (not "x")", with the nearest
/// name, where none has it.
template <class Enum, std::size_t n>
Enum one_of(const std::array<Enum, n>& all, const std::string& text, std::string_view what) {
  if (const std::optional<Enum> value = find_named(all, text)) return *value;
  const std::vector<std::string> names = names_of(all);
  throw UsageError(fmt::format("{} is one of {} (not \"{}\"{})", what, fmt::join(names, ", "), text,
                               did_you_mean(text, names)));
}

}  // namespace stageline
