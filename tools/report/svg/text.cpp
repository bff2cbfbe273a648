// Formats numbers, escapes and wraps text, and computes axes.
#include "tools/report/svg/text.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/base/index.hpp"

namespace stageline::report {

std::string svg_number(double value) {
  std::string text = fmt::format("{:.2f}", value);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

namespace {

// Length of the UTF-8 sequence at the head of `text`, or 0 where it is not one that XML may hold
// (overlong forms, surrogates, U+FFFE and U+FFFF are excluded).
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char head = byte(0);
  if (head < 0x80) return 1;
  const std::size_t length = head >= 0xC2 && head <= 0xDF   ? 2
                             : head >= 0xE0 && head <= 0xEF ? 3
                             : head >= 0xF0 && head <= 0xF4 ? 4
                                                            : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  if ((head == 0xE0 && byte(1) < 0xA0) || (head == 0xED && byte(1) > 0x9F)) return 0;
  if ((head == 0xF0 && byte(1) < 0x90) || (head == 0xF4 && byte(1) > 0x8F)) return 0;
  if (head == 0xEF && byte(1) == 0xBF && byte(2) >= 0xBE) return 0;
  return length;
}

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

std::size_t code_points(std::string_view text) {
  return as_size(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

}  // namespace

std::string xml_escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = sequence_length(text);
    const char head = text.front();
    if (length == 0 || (static_cast<unsigned char>(head) < 0x20 && !is_space(head))) {
      out += "\uFFFD";
    } else if (head == '<') {
      out += "&lt;";
    } else if (head == '>') {
      out += "&gt;";
    } else if (head == '&') {
      out += "&amp;";
    } else if (head == '"') {
      out += "&quot;";
    } else if (is_space(head)) {
      out += ' ';
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

namespace {

// "4.000 GB" to "4 GB".
std::string without_zeros(std::string text) {
  const std::size_t point = text.find('.');
  if (point == std::string::npos) return text;
  const std::size_t end = std::min(text.find(' ', point), text.size());
  std::size_t keep = end;
  while (text[keep - 1] == '0') --keep;
  if (text[keep - 1] == '.') --keep;
  return text.erase(keep, end - keep);
}

}  // namespace

std::string brief(Bytes bytes) { return without_zeros(print(bytes)); }
std::string brief(Time time) { return without_zeros(print(time)); }

std::string shortened(std::string_view text, std::size_t characters) {
  const std::size_t count = code_points(text);
  if (count <= characters || characters == 0) return std::string(text);
  const std::size_t tail = (characters - 1) / 2;
  const std::size_t head = characters - 1 - tail;
  std::string out;
  std::size_t number = 0;  // index of the code point, from 1
  bool cut = false;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) ++number;
    if (number > head && !cut) {
      out += "…";
      cut = true;
    }
    if (number <= head || number > count - tail) out += c;
  }
  return out;
}

double text_width(std::string_view text, double size) {
  // DejaVu Sans, rounded up; Helvetica and Arial are narrower.
  constexpr std::string_view narrow = " .,:;'|!()[]-fijlrtI";
  constexpr std::string_view broad = "mwMW%@…";
  double width = 0;  // em
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xC0) == 0x80) continue;  // counted with its lead byte
    width += narrow.find(c) != std::string_view::npos  ? 0.41
             : broad.find(c) != std::string_view::npos ? 1.0
             : c >= 'A' && c <= 'Z'                    ? 0.78
                                                       : 0.64;
  }
  return size * width;
}

std::vector<std::string> text_lines(const std::string& text, double width, double size) {
  std::vector<std::string> lines;
  std::string line;
  std::size_t at = 0;
  while (at < text.size()) {
    std::size_t blank = text.find(' ', at);
    if (blank == std::string::npos) blank = text.size();
    const std::string word = text.substr(at, blank - at);
    if (!line.empty() &&
        text_width(line, size) + text_width(" ", size) + text_width(word, size) > width) {
      lines.push_back(line);
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
    at = blank + 1;
  }
  if (!line.empty()) lines.push_back(line);
  return lines;
}

namespace {

struct PathUnit {
  const char* name;
  std::int64_t size;
};

template <std::size_t n>
Axis axis(std::int64_t top, int intervals, const std::array<PathUnit, n>& units) {
  Axis result;
  for (const PathUnit& unit : units) {
    if (unit.size <= std::max<std::int64_t>(top, 1)) {
      result.unit = unit.size;
      result.unit_name = unit.name;
    }
  }
  const auto too_many = [&](std::int64_t step) { return top / step > std::max(intervals, 1); };
  constexpr std::int64_t last_decade = 1'000'000'000'000'000'000;
  for (std::int64_t decade = 1; too_many(result.step); decade *= 10) {
    for (const std::int64_t digit : {1, 2, 5}) {
      if (too_many(result.step)) result.step = decade * digit;
    }
    if (decade == last_decade) break;
  }
  std::int64_t remainder = result.step % result.unit;
  for (; remainder != 0; remainder = remainder * 10 % result.unit) ++result.decimals;
  return result;
}

}  // namespace

Axis time_axis(Time top, int intervals) {
  constexpr std::array<PathUnit, 5> units{{{"ps", 1},
                                           {"ns", 1'000},
                                           {"µs", 1'000'000},
                                           {"ms", 1'000'000'000},
                                           {"s", 1'000'000'000'000}}};
  return axis(top.count(), intervals, units);
}

Axis byte_axis(Bytes top, int intervals) {
  constexpr std::array<PathUnit, 5> units{{{"B", 1},
                                           {"kB", 1'000},
                                           {"MB", 1'000'000},
                                           {"GB", 1'000'000'000},
                                           {"TB", 1'000'000'000'000}}};
  return axis(top.count, intervals, units);
}

std::string tick_label(const Axis& axis, std::int64_t value) {
  return fmt::format("{:.{}f}", static_cast<double>(value) / static_cast<double>(axis.unit),
                     axis.decimals);
}

}  // namespace stageline::report
