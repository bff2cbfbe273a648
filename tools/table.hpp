// Columns of text, aligned by what a reader sees (UTF-8 counted as one column a character).
#pragma once

#include <string>
#include <vector>

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

}  // namespace stageline
