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

/// A row that cannot be read.
struct UnreadRow {
  int line = 0;     // of the file
  std::string why;  // a clause
};

struct CsvTable {
  std::vector<std::string> columns;
  std::vector<CsvRow> rows;       // each with as many cells as there are columns
  std::vector<UnreadRow> unread;  // the others

  std::optional<std::size_t> find(std::string_view column) const;
};

/// Cells may be quoted, with quotes inside doubled; empty lines are passed over. A row with another
/// number of cells than there are columns, or with text behind a closing quote, is `unread`. Throws
/// TraceError, which begins with `file` and the line, for a text without a title row and a quote
/// that does not end.
CsvTable read_csv(const std::string& text, const std::string& file);

/// Throws TraceError for the first row that is unread.
void refuse_unread(const std::vector<UnreadRow>& unread, const std::string& file);

}  // namespace stageline
