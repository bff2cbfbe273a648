// A table whose cells keep the numbers behind their words: for readers that sort it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.hpp"

namespace stageline::report {

/// What a cell is worth: to sort by, and exactly as the JSON reports have it.
struct CellFigure {
  std::optional<double> value{};  // empty: unknown
  std::string exact{};            // "14480000000 ps", "0.343"; empty: the words say all
};

/// "14480000000 ps"
CellFigure time_figure(Time time);
/// "4190000 B"; nothing of bytes that are not known.
CellFigure bytes_figure(Bytes bytes, bool known = true);
/// All digits, with the unit where there is one.
CellFigure number_figure(const std::optional<double>& value, const std::string& unit = "");
CellFigure count_figure(std::int64_t count);

struct SheetCell {
  std::string text{};
  CellFigure figure{};
};

struct SheetColumn {
  std::string title{};
  std::string definition{};  // one sentence, without its full stop
  bool left = false;         // names; numbers are at the right
  bool shown = true;         // unasked
};

/// A row a case; all rows have a cell for each column.
struct Sheet {
  std::vector<SheetColumn> columns{};
  std::vector<std::vector<SheetCell>> rows{};
};

/// The words of its cells, by row.
std::vector<std::vector<std::string>> words_of(const Sheet& sheet);

}  // namespace stageline::report
