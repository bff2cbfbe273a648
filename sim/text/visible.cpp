#include "sim/text/visible.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace stageline {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

std::uint32_t byte_at(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

// How many bytes the UTF-8 character at the front has, 0 where it is none; its code is put in
// `code`.
std::size_t decode(std::string_view text, std::uint32_t& code) {
  const std::uint32_t lead = byte_at(text, 0);
  const std::size_t length = lead < 0x80   ? 1
                             : lead < 0xC2 ? 0
                             : lead < 0xE0 ? 2
                             : lead < 0xF0 ? 3
                             : lead < 0xF5 ? 4
                                           : 0;
  if (length == 0 || length > text.size()) return 0;
  code = length == 1 ? lead : lead & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    const std::uint32_t next = byte_at(text, i);
    if ((next & 0xC0U) != 0x80U) return 0;
    code = code << 6U | (next & 0x3FU);
  }
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  return overlong || surrogate || code > 0x10FFFF ? 0 : length;
}

bool is_control(std::uint32_t code) { return code < 0x20 || code == 0x7F; }

// C1, line separators, and the marks that embed, override and isolate a direction.
bool drives(std::uint32_t code) {
  return (code >= 0x80 && code < 0xA0) || (code >= 0x2028 && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069);
}

std::string picture_of(std::uint32_t control) {
  const std::uint32_t code = control == 0x7F ? 0x2421 : 0x2400 + control;
  return {static_cast<char>(0xE0U | code >> 12U), static_cast<char>(0x80U | (code >> 6U & 0x3FU)),
          static_cast<char>(0x80U | (code & 0x3FU))};
}

// The length of a colour sequence of reports at the front.
std::size_t colour_at(std::string_view text) {
  constexpr std::string_view colour = "\x1b[38;5;";
  constexpr std::string_view none = "\x1b[0m";
  if (text.starts_with(none)) return none.size();
  if (!text.starts_with(colour)) return 0;
  const std::size_t end = text.find_first_not_of("0123456789", colour.size());
  return end != std::string_view::npos && text[end] == 'm' ? end + 1 : 0;
}

enum class Keeps : std::uint8_t { nothing, colours, colours_and_lines };

std::string shown(std::string_view text, Keeps keeps) {
  const auto plain = [](char c) { return c >= ' ' && c <= '~'; };
  const bool lines = keeps == Keeps::colours_and_lines;
  std::string out;
  out.reserve(text.size());
  while (true) {
    const auto run = std::find_if_not(text.begin(), text.end(), plain) - text.begin();
    out += text.substr(0, static_cast<std::size_t>(run));
    text.remove_prefix(static_cast<std::size_t>(run));
    if (text.empty()) return out;
    std::uint32_t code = 0;
    std::size_t length = decode(text, code);
    const std::size_t colour = keeps == Keeps::nothing ? 0 : colour_at(text);
    if (colour > 0) {
      length = colour;
      out += text.substr(0, length);
    } else if (length == 0) {
      length = 1;
      out += replacement;
    } else if (is_control(code) && !(lines && (code == '\n' || code == '\t'))) {
      out += picture_of(code);
    } else if (drives(code)) {
      out += replacement;
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
}

}  // namespace

bool is_utf8(std::string_view text) {
  std::uint32_t code = 0;
  while (!text.empty()) {
    const std::size_t length = decode(text, code);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string_view head_of(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  const auto goes_on = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; };
  while (most > 0 && goes_on(text[most])) --most;
  return text.substr(0, most);
}

std::string visible(std::string_view text) { return shown(text, Keeps::nothing); }
std::string visible_cell(std::string_view text) { return shown(text, Keeps::colours); }
std::string visible_lines(std::string_view text) { return shown(text, Keeps::colours_and_lines); }

}  // namespace stageline
