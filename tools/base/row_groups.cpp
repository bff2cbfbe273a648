// Groups the rows of a long table.
#include "tools/base/row_groups.hpp"

#include <algorithm>

#include "sim/base/index.hpp"

namespace stageline {
namespace {

constexpr std::size_t kept_at_ends = 2;

std::vector<RowGroup> equal_runs(std::size_t rows,
                                 const std::function<bool(std::size_t, std::size_t)>& equal) {
  std::vector<RowGroup> groups;
  for (std::size_t row = 0; row < rows; ++row) {
    if (!groups.empty() && equal(groups.back().first, row)) {
      groups.back().last = row;
    } else {
      groups.push_back({row, row});
    }
  }
  return groups;
}

}  // namespace

std::vector<RowGroup> row_groups(std::size_t rows,
                                 const std::function<bool(std::size_t, std::size_t)>& equal,
                                 const std::vector<std::vector<double>>& measures) {
  const auto never = [](std::size_t, std::size_t) { return false; };
  if (rows <= most_rows_shown) return equal_runs(rows, never);
  std::vector<RowGroup> all = equal_runs(rows, equal);
  if (all.size() <= most_rows_shown) return all;

  std::vector<bool> kept(all.size(), false);
  for (std::size_t k = 0; k < kept_at_ends; ++k) kept[k] = kept[all.size() - 1 - k] = true;
  for (const std::vector<double>& measure : measures) {
    const auto [least, greatest] = std::minmax_element(
        all.begin(), all.end(),
        [&](const RowGroup& a, const RowGroup& b) { return measure[a.first] < measure[b.first]; });
    const double most = measure[greatest->first];
    if (measure[least->first] == most) continue;
    kept[as_size(least - all.begin())] = true;
    const auto first_greatest = std::find_if(
        all.begin(), all.end(), [&](const RowGroup& one) { return measure[one.first] == most; });
    kept[as_size(first_greatest - all.begin())] = true;
  }
  std::vector<RowGroup> groups;
  for (std::size_t i = 0; i < all.size(); ++i) {
    // A single one takes no more room than a line that leaves it out.
    const bool alone = i > 0 && i + 1 < all.size() && kept[i - 1] && kept[i + 1];
    if (kept[i] || alone) {
      groups.push_back(all[i]);
    } else if (!groups.empty() && !groups.back().shown) {
      groups.back().last = all[i].last;
    } else {
      groups.push_back({all[i].first, all[i].last, false});
    }
  }
  return groups;
}

}  // namespace stageline
