// Converts decimal text to integers without a detour through floating point.
#include <algorithm>

#include "sim/base/index.hpp"
#include "traces/json/tree.hpp"

namespace stageline {

std::optional<ScaledDecimal> scale_decimal(std::string_view number, int shift) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::size_t at = 0;
  const auto take_digits = [&] {
    const std::size_t begin = at;
    while (at < number.size() && is_digit(number[at])) ++at;
    return number.substr(begin, at - begin);
  };
  const bool negative = number.substr(0, 1) == "-";
  if (negative) ++at;
  const std::string_view before = take_digits();
  std::string_view after;
  if (at < number.size() && number[at] == '.') {
    ++at;
    after = take_digits();
    if (after.empty()) return {};
  }
  if (before.empty()) return {};
  constexpr std::int64_t far = 1'000'000'000;  // an exponent past this only has a sign
  std::int64_t exponent = 0;
  if (at < number.size() && (number[at] == 'e' || number[at] == 'E')) {
    ++at;
    const bool down = at < number.size() && number[at] == '-';
    if (at < number.size() && (number[at] == '-' || number[at] == '+')) ++at;
    const std::string_view digits = take_digits();
    if (digits.empty()) return {};
    for (const char c : digits) exponent = std::min(far, exponent * 10 + (c - '0'));
    if (down) exponent = -exponent;
  }
  if (at != number.size()) return {};

  // value = 0.d1 d2 d3 … · 10^point, d1 not 0
  std::string digits = std::string(before) + std::string(after);
  std::int64_t point = static_cast<std::int64_t>(before.size()) + exponent + shift;
  const std::size_t zeros = std::min(digits.find_first_not_of('0'), digits.size());
  digits.erase(0, zeros);
  point -= static_cast<std::int64_t>(zeros);
  if (digits.empty()) return ScaledDecimal{};
  if (point > 19) return {};  // at least 10^19
  std::uint64_t value = 0;
  const std::size_t whole = point > 0 ? as_size(point) : 0;
  for (std::size_t i = 0; i < whole; ++i) {
    value = value * 10 + (i < digits.size() ? static_cast<std::uint64_t>(digits[i] - '0') : 0);
  }
  bool exact = true;
  if (whole < digits.size()) {
    exact = digits.find_first_not_of('0', whole) == std::string::npos;
    if (point >= 0 && digits[whole] >= '5') ++value;
  }
  if (value > static_cast<std::uint64_t>(most_bytes)) return {};
  const auto magnitude = static_cast<std::int64_t>(value);
  return ScaledDecimal{negative ? -magnitude : magnitude, exact};
}

}  // namespace stageline
