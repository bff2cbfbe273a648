#include "tools/base/table.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "sim/index.hpp"

namespace stageline {
namespace {

std::size_t width_of(const std::string& text) {
  return as_size(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U;
  }));
}

}  // namespace

std::string table(const std::vector<Column>& columns,
                  const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const Column& column : columns) widths.push_back(width_of(column.title));
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string text;
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string out;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string pad(widths[i] - width_of(cells[i]), ' ');
      out += (i > 0 ? "  " : "") + (columns[i].left ? cells[i] + pad : pad + cells[i]);
    }
    out.erase(out.find_last_not_of(' ') + 1);
    text += out + "\n";
  };
  std::vector<std::string> titles;
  std::vector<std::string> rule;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    titles.push_back(columns[i].title);
    rule.emplace_back();
    for (std::size_t k = 0; k < widths[i]; ++k) rule.back() += "─";
  }
  line(titles);
  line(rule);
  for (const auto& row : rows) line(row);
  return text;
}

std::string percent(double fraction) {
  // No "-0.0": a bubble of no size has no sign.
  const double value = fraction * 100;
  return fmt::format("{:.1f} %", value < 0 && value > -0.05 ? 0.0 : value);
}

std::string bytes_text(Bytes bytes, bool known) { return known ? print(bytes) : "unknown"; }

std::string long_time(Time time) {
  const double seconds = to_seconds(time);
  if (seconds < 7200) return print(time);
  if (seconds < 2 * 86400) return fmt::format("{:.2f} h", seconds / 3600);
  return fmt::format("{:.2f} days", seconds / 86400);
}

}  // namespace stageline
