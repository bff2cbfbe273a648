// Which rows of a long table are shown.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace stageline {

/// Neighbouring rows [first, last] that take one row of the table: equal ones that are shown as
/// one, or others of which only the number is shown.
struct RowGroup {
  std::size_t first = 0;
  std::size_t last = 0;
  bool shown = true;

  std::size_t size() const { return last - first + 1; }
  friend bool operator==(const RowGroup&, const RowGroup&) = default;
};

inline constexpr std::size_t most_rows_shown = 24;

/// Up to `most_rows_shown` rows are groups of one. Among more, neighbours that are `equal` form a
/// group; if these are still more, there remain the first two groups, the last two, and the first
/// with the least and with the greatest value of each measure that is not constant. `measures`:
/// each has a value per row, the same within a group.
std::vector<RowGroup> row_groups(std::size_t rows,
                                 const std::function<bool(std::size_t, std::size_t)>& equal,
                                 const std::vector<std::vector<double>>& measures);

}  // namespace stageline
