// Text to numbers.
#pragma once

#include <charconv>
#include <cstddef>
#include <optional>
#include <string_view>
#include <system_error>

namespace stageline {

/// Cuts the number off the front of `text`. Nothing where none begins there or Number cannot hold
/// it; `text` then stays as it is.
template <class Number>
std::optional<Number> take_number(std::string_view& text) {
  Number value{};
  const char* const begin = text.data();
  const auto [rest, error] = std::from_chars(begin, begin + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(rest - begin));
  return value;
}

/// The whole of `text` as a number; nothing where it is none, or Number cannot hold it.
template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  const std::optional<Number> value = take_number<Number>(text);
  return text.empty() ? value : std::nullopt;
}

}  // namespace stageline
