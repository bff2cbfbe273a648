// The text of a sweep's rows as columns with a type each.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/sweep/spec.hpp"

namespace stageline {

enum class CellForm : std::uint8_t { whole, real, text };

/// The cells of a column. Of `whole`, `real` and `text` the one that `form` names has a value for
/// each row; where `there` is 0 it is empty.
struct SweepColumn {
  std::string name;
  CellForm form = CellForm::text;
  std::vector<std::int64_t> whole{};
  std::vector<double> real{};
  std::vector<std::string> text{};
  std::vector<char> there{};
};

/// The columns of a sweep's table, without rows. Times and bytes are whole numbers, an axis is
/// numbers where all its values are such without a unit.
std::vector<SweepColumn> typed_columns(const SweepSpec& spec);

/// The rows of a table as csv_header() and csv_line() write it. Throws UsageError for any other
/// text, which begins with `name`.
std::vector<SweepColumn> read_table(const SweepSpec& spec, std::string_view csv,
                                    const std::string& name);

}  // namespace stageline
