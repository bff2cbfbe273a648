// Comma-separated values with a title row (RFC 4180).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stageline {

struct CsvRow {
  int line = 0;  // of the file, the title row is 1
  std::vector<std::string> cells;
};

struct CsvTable {
  std::vector<std::string> columns;
  std::vector<CsvRow> rows;  // each with as many cells as there are columns

  std::optional<std::size_t> find(std::string_view column) const;
};

/// Cells may be quoted, with quotes inside doubled; empty lines are passed over. Throws TraceError,
/// which begins with `file` and the line, for a text without a title row, a quote that does not
/// end, and a row with another number of cells than there are columns.
CsvTable read_csv(const std::string& text, const std::string& file);

}  // namespace stageline
