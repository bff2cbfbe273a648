// Text to floating point, where the standard library can read it and where it cannot.
#include "sim/base/numbers.hpp"

#ifndef __cpp_lib_to_chars
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <string>
#endif

namespace stageline {

#ifdef __cpp_lib_to_chars

std::from_chars_result read_number(const char* begin, const char* end, double& value) {
  return std::from_chars(begin, end, value);
}

#else

namespace {

const char* digits_from(const char* at, const char* end) {
  while (at != end && std::isdigit(static_cast<unsigned char>(*at)) != 0) ++at;
  return at;
}

// Where a decimal number without its sign ends; `begin` if none begins there.
const char* end_of_decimal(const char* begin, const char* end) {
  const char* at = digits_from(begin, end);
  bool digits = at != begin;
  if (at != end && *at == '.') {
    const char* const after = digits_from(at + 1, end);
    digits = digits || after != at + 1;
    at = after;
  }
  if (!digits) return begin;
  if (at == end || (*at != 'e' && *at != 'E')) return at;
  const char* exponent = at + 1;
  if (exponent != end && (*exponent == '+' || *exponent == '-')) ++exponent;
  const char* const after = digits_from(exponent, end);
  return after == exponent ? at : after;
}

const char* end_of_word(const char* begin, const char* end, std::string_view word) {
  for (const char letter : word) {
    if (begin == end || std::tolower(static_cast<unsigned char>(*begin)) != letter) return nullptr;
    ++begin;
  }
  return begin;
}

// "inf", "infinity" or "nan", in any case.
const char* end_of_name(const char* begin, const char* end) {
  for (const std::string_view word : {"infinity", "inf", "nan"}) {
    if (const char* const at = end_of_word(begin, end, word)) return at;
  }
  return begin;
}

}  // namespace

// The library's strtod rounds correctly and knows one locale; it takes blanks, a plus and
// hexadecimal digits too, which are kept from it.
std::from_chars_result read_number(const char* begin, const char* end, double& value) {
  const char* const unsigned_begin = begin + (begin != end && *begin == '-' ? 1 : 0);
  const char* rest = end_of_decimal(unsigned_begin, end);
  const bool decimal = rest != unsigned_begin;
  if (!decimal) rest = end_of_name(unsigned_begin, end);
  if (rest == unsigned_begin) return {begin, std::errc::invalid_argument};
  const std::string text(begin, rest);
  errno = 0;
  const double number = std::strtod(text.c_str(), nullptr);
  const bool lost = errno == ERANGE && number == 0;
  if (decimal && (std::isinf(number) || lost)) return {rest, std::errc::result_out_of_range};
  value = number;
  return {rest, std::errc{}};
}

#endif

}  // namespace stageline
