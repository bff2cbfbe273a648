// Text to numbers.
#pragma once

#include <charconv>
#include <cstddef>
#include <optional>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace stageline {

/// std::from_chars of a double, which the library of clang 14 for WebAssembly lacks.
std::from_chars_result read_number(const char* begin, const char* end, double& value);

/// Cuts the number off the front of `text`. Nothing where none begins there or Number cannot hold
/// it; `text` then stays as it is.
template <class Number>
std::optional<Number> take_number(std::string_view& text) {
  Number value{};
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  std::from_chars_result read{};
  if constexpr (std::is_same_v<Number, double>) {
    read = read_number(begin, end, value);
  } else {
    read = std::from_chars(begin, end, value);
  }
  if (read.ec != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(read.ptr - begin));
  return value;
}

/// The whole of `text` as a number; nothing where it is none, or Number cannot hold it.
template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  const std::optional<Number> value = take_number<Number>(text);
  return text.empty() ? value : std::nullopt;
}

}  // namespace stageline
