// Columns of text, aligned by what a reader sees (UTF-8 counted as one column a character).
#pragma once

#include <string>
#include <vector>

#include "sim/units.hpp"

namespace stageline {

struct Column {
  std::string title;
  bool left = false;  // numbers stand right, names left
};

/// Title row, rule, rows; two blanks between columns; no trailing blanks.
std::string table(const std::vector<Column>& columns,
                  const std::vector<std::vector<std::string>>& rows);

/// "42.1 %", "0.0 %".
std::string percent(double fraction);

/// "4.190 MB", or "unknown" for bytes that nobody measured.
std::string bytes_text(Bytes bytes, bool known);

/// What a training takes: as print(Time), or from two hours on "3.25 h", from two days on "2.50
/// days".
std::string long_time(Time time);

}  // namespace stageline
