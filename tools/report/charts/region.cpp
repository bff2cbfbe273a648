// Positions and labels of a region's cells, and its notes.
#include "tools/report/charts/region.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "sim/base/errors.hpp"

namespace stageline::report {

ValueScale value_scale(const Region& region) {
  std::optional<double> low;
  std::optional<double> high;
  for (const auto& row : region.values) {
    for (const auto& value : row) {
      if (value && (!low || *value < *low)) low = value;
      if (value && (!high || *value > *high)) high = value;
    }
  }
  return {*low, *low < *high ? *high : *low + 1, false};
}

double cell_position(const std::vector<double>& axis, double value) {
  // The outermost cells extend beyond their values by half the distance to the neighbour.
  const std::size_t n = axis.size();
  const double before = n > 1 ? axis[1] - axis[0] : 1;
  const double after = n > 1 ? axis[n - 1] - axis[n - 2] : 1;
  if (value < axis.front() - before / 2 || value > axis.back() + after / 2) {
    throw UsageError(fmt::format("a mark at {} is outside of its axis, {} to {}", value_text(value),
                                 value_text(axis.front()), value_text(axis.back())));
  }
  if (value <= axis.front()) return 0.5 + (value - axis.front()) / before;
  for (std::size_t i = 1; i < n; ++i) {
    if (value <= axis[i]) {
      return static_cast<double>(i) - 0.5 + (value - axis[i - 1]) / (axis[i] - axis[i - 1]);
    }
  }
  return static_cast<double>(n) - 0.5 + (value - axis.back()) / after;
}

std::vector<std::size_t> labelled_cells(const std::vector<double>& axis, std::size_t most) {
  const std::size_t stride = (axis.size() + most - 1) / std::max<std::size_t>(most, 1);
  std::vector<std::size_t> best;
  std::size_t least = 0;
  for (std::size_t offset = 0; offset < std::max<std::size_t>(stride, 1); ++offset) {
    std::vector<std::size_t> cells;
    std::size_t characters = 0;
    for (std::size_t i = offset; i < axis.size(); i += stride) {
      cells.push_back(i);
      characters += value_text(axis[i]).size();
    }
    // Fewer cells have fewer characters in all, so compare the average length of a label.
    if (best.empty() || (!cells.empty() && characters * best.size() < least * cells.size())) {
      best = cells;
      least = characters;
    }
  }
  return best;
}

BandSide side_of(const RegionBand& band, double value) {
  return value < band.low    ? BandSide::below
         : value > band.high ? BandSide::above
                             : BandSide::inside;
}

bool in_band(const Region& region, std::size_t row, std::size_t column) {
  const std::optional<double>& value = region.values[row][column];
  return region.band && value && side_of(*region.band, *value) == BandSide::inside;
}

bool has_gaps(const Region& region) {
  return std::any_of(region.values.begin(), region.values.end(), [](const auto& row) {
    return std::any_of(row.begin(), row.end(), [](const auto& value) { return !value; });
  });
}

namespace {

bool band_is_empty(const Region& region) {
  for (std::size_t row = 0; row < region.ys.size(); ++row) {
    for (std::size_t i = 0; i < region.xs.size(); ++i) {
      if (in_band(region, row, i)) return false;
    }
  }
  return true;
}

}  // namespace

std::vector<std::string> notes_of(const Region& region) {
  std::vector<std::string> notes = region.footnotes;
  if (region.band && band_is_empty(region)) {
    notes.push_back(fmt::format("No cell lies in {}.", region.band->label));
  }
  return notes;
}

std::string value_title(const Region& region) {
  ChartAxis axis;
  axis.label = region.value_label;
  axis.unit = region.value_unit;
  return axis_title(axis);
}

}  // namespace stageline::report
