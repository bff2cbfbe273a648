// Measures and wraps text; prints signed times and shares.
#include "tools/base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>

#include "sim/base/index.hpp"
#include "sim/text/visible.hpp"
#include "tools/base/table.hpp"

namespace stageline {
namespace {

constexpr int indent_of_rest = 2;
constexpr int indent_of_text = 6;  // of an entry whose name leaves no room beside it

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool is_ascii_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

// "8.90", "10.6", "1070".
std::string three_digits(double value) {
  if (!(value > 0)) return "0";
  const int digits = static_cast<int>(std::floor(std::log10(value))) + 1;  // before the point
  const double step = std::pow(10.0, digits - 3);
  return fmt::format("{:.{}f}", std::round(value / step) * step, std::clamp(3 - digits, 0, 6));
}

// Whether a line may not end between two words.
bool stick_together(std::string_view first, std::string_view second) {
  if (second == "·" || second == "%" || second == "×" || first == "→" || first == "±") return true;
  if (!is_digit(first.back())) return false;
  if (is_ascii_letter(second.front()) && second.size() <= 3) return true;  // "20.06 s"
  return second.size() >= 3 && std::all_of(second.begin(), second.begin() + 3, is_digit) &&
         (second.size() == 3 || !is_ascii_letter(second[3]));  // "12 480"
}

// The words up to the next place where a line may end, and the blanks before them.
std::string_view next_unit(std::string_view text) {
  std::size_t begin = std::min(text.find_first_not_of(' '), text.size());
  std::size_t end = std::min(text.find(' ', begin), text.size());
  while (end < text.size()) {
    const std::size_t next = text.find_first_not_of(' ', end);
    if (next == std::string_view::npos) return text;
    const std::size_t next_end = std::min(text.find(' ', next), text.size());
    if (!stick_together(text.substr(begin, end - begin), text.substr(next, next_end - next))) break;
    begin = next;
    end = next_end;
  }
  return text.substr(0, end);
}

int longest_unit(std::string_view text) {
  int longest = 0;
  while (!text.empty()) {
    const std::string_view unit = next_unit(text);
    text.remove_prefix(unit.size());
    const std::size_t first = std::min(unit.find_first_not_of(' '), unit.size());
    longest = std::max(longest, columns_of(unit.substr(first)));
  }
  return longest;
}

// `head`, and behind it the words of `text` in lines that begin with `indent` blanks.
std::string filled(std::string_view head, std::string_view text, int indent, int width) {
  std::string out(head);
  int used = columns_of(head);
  bool begins = true;
  while (!text.empty()) {
    std::string_view unit = next_unit(text);
    text.remove_prefix(unit.size());
    if (!begins && used + columns_of(unit) > width) {
      out += "\n" + std::string(as_size(indent), ' ');
      used = indent;
      begins = true;
    }
    if (begins) unit.remove_prefix(std::min(unit.find_first_not_of(' '), unit.size()));
    out += unit;
    used += columns_of(unit);
    begins = false;
  }
  return out;
}

std::string wrapped_line(std::string_view line, int width) {
  if (columns_of(line) <= width) return std::string(line);
  const std::size_t first = std::min(line.find_first_not_of(' '), line.size());
  const std::size_t gap = line.find("  ", first);
  const std::size_t text = gap == std::string_view::npos ? gap : line.find_first_not_of(' ', gap);
  const bool entry =
      text != std::string_view::npos && line.find("  ", text) == std::string_view::npos;
  if (entry) {
    const int column = columns_of(line.substr(0, text));
    if (column <= width / 2 && column + longest_unit(line.substr(text)) <= width) {
      return filled(line.substr(0, text), line.substr(text), column, width);
    }
    return wrapped_line(line.substr(0, gap), width) + "\n" +
           filled(std::string(as_size(indent_of_text), ' '), line.substr(text), indent_of_text,
                  width);
  }
  // A line that is indented deep continues a text, whose column it keeps where there is room.
  const int blanks = static_cast<int>(first);
  const bool room = blanks <= width / 2 && blanks + longest_unit(line.substr(first)) <= width;
  if (blanks > indent_of_text && !room) {
    return filled(std::string(as_size(indent_of_text), ' '), line.substr(first), indent_of_text,
                  width);
  }
  const int indent = blanks < 2 * indent_of_rest ? blanks + indent_of_rest : blanks;
  return filled(line.substr(0, first), line.substr(first), indent, width);
}

}  // namespace

int columns_of(std::string_view text) {
  int columns = 0;
  bool in_colour = false;
  for (const char c : text) {
    if (c == '\x1b') in_colour = true;
    const bool continues = (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
    if (!in_colour && !continues) ++columns;
    if (c == 'm') in_colour = false;
  }
  return columns;
}

std::string wrapped(const std::string& text, int width) {
  if (width <= 0) return text;
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    out += wrapped_line(std::string_view(text).substr(at, end - at), width);
    if (end < text.size()) out += "\n";
    at = end + 1;
  }
  return out;
}

std::string shell_word(const std::string& text) {
  constexpr std::string_view harmless = "@%+=:,./-_";
  const bool plain = std::all_of(text.begin(), text.end(), [&](char c) {
    return is_ascii_letter(c) || is_digit(c) || harmless.find(c) != std::string_view::npos;
  });
  if (plain && !text.empty()) return text;
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

std::string markdown_line(std::string_view text) {
  constexpr std::string_view markup = "\\`*_<[|";
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const char next = i + 1 < text.size() ? text[i + 1] : ' ';
    const bool entity = c == '&' && (next == '#' || is_ascii_letter(next));
    if (entity || markup.find(c) != std::string_view::npos) out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return visible(out);
}

std::string markdown_code(std::string_view text) {
  std::string code = visible(text);
  std::replace(code.begin(), code.end(), '`', '\'');
  return "`" + code + "`";
}

std::string range_of(const std::string& value, double low, double high) {
  const double number = std::strtod(value.c_str(), nullptr);
  return three_digits(low * number) + "–" + three_digits(high * number);
}

std::string range_with_unit(const std::string& value, double low, double high) {
  return range_of(value, low, high) + value.substr(std::min(value.find(' '), value.size()));
}

std::string signed_time(Time time) {
  if (time == Time{}) return "0";
  return (time < Time{} ? "-" : "+") + print(time < Time{} ? -time : time);
}

std::string signed_share(double share) {
  const std::string text = percent(share < 0 ? -share : share);
  return text == percent(0) ? text : (share < 0 ? "-" : "+") + text;
}

}  // namespace stageline
