// Figures with all their digits.
#include "tools/report/text/sheet.hpp"

#include <fmt/core.h>

#include <cmath>

namespace stageline::report {

CellFigure time_figure(Time time) {
  return {static_cast<double>(time.count()), fmt::format("{} ps", time.count())};
}

CellFigure bytes_figure(Bytes bytes, bool known) {
  if (!known) return {};
  return {static_cast<double>(bytes.count), fmt::format("{} B", bytes.count)};
}

CellFigure number_figure(const std::optional<double>& value, const std::string& unit) {
  if (!value || !std::isfinite(*value)) return {};
  return {*value, fmt::format("{}{}{}", *value, unit.empty() ? "" : " ", unit)};
}

CellFigure count_figure(std::int64_t count) { return {static_cast<double>(count), ""}; }

std::vector<std::vector<std::string>> words_of(const Sheet& sheet) {
  std::vector<std::vector<std::string>> rows;
  for (const std::vector<SheetCell>& row : sheet.rows) {
    rows.emplace_back();
    for (const SheetCell& cell : row) rows.back().push_back(cell.text);
  }
  return rows;
}

}  // namespace stageline::report
