// Columns of text, aligned by the characters that a reader sees, for lines of any or limited width.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/base/units.hpp"

namespace stageline {

struct Column {
  std::string title;
  bool left = false;   // alignment: left for names, right for numbers
  int drop = 0;        // fitted_table(): the highest is left out first; 0: never
  bool key = false;    // repeated where a table is broken into bands, as the first column is
  bool prose = false;  // the last column: sentences, which may be wrapped
  /// fitted_table(): where the title may be broken into two lines, in bytes; 0: nowhere.
  std::size_t break_at = 0;
};

/// Title row, rule, rows, of cells as visible_cell() shows them; two blanks between columns; no
/// trailing blanks. A row may have fewer cells than there are columns. `width`: the most columns of
/// a line; 0: any. In a table that is wider, sentences of a last column are wrapped where they have
/// room; else the table is broken into bands, one below the other, each with the keys and as many
/// other columns as fit. A name that leaves no room beside it has a line of its own.
std::string table(const std::vector<Column>& columns,
                  const std::vector<std::vector<std::string>>& rows, int width = 0);

/// A table without the columns that do not fit.
struct FittedTable {
  std::string text;
  std::vector<std::string> left_out;  // their titles, in the order of the columns
};

/// As table(), but where it is too wide titles are broken into two lines, and then columns with a
/// `drop` are left out, the highest first, until the rest fits.
FittedTable fitted_table(const std::vector<Column>& columns,
                         const std::vector<std::vector<std::string>>& rows, int width);

/// "42.1 %", "0.0 %".
std::string percent(double fraction);

/// "4.190 MB", or "unknown" for bytes that were not measured.
std::string bytes_text(Bytes bytes, bool known);

/// The duration of a training: as print(Time), or from two hours on "3.25 h", from two days on
/// "2.50 days".
std::string long_time(Time time);

}  // namespace stageline
