// Draws maps over two axes as text.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tools/report/charts/axis.hpp"
#include "tools/report/charts/canvas.hpp"
#include "tools/report/charts/region.hpp"
#include "tools/report/svg/text.hpp"

namespace stageline::report {
namespace {

std::string cell_character(const Region& region, const ValueScale& scale,
                           const std::optional<double>& value) {
  if (!value) return " ";
  if (!region.band) {
    return std::to_string(std::min(9, static_cast<int>(scale.share(*value) * 10)));
  }
  switch (side_of(*region.band, *value)) {
    case BandSide::below:
      return ".";
    case BandSide::inside:
      return "#";
    case BandSide::above:
      return "+";
  }
  return " ";  // unreachable; g++ requires it
}

// Indices of the samples to show: all, or evenly chosen ones where there is no room for all.
std::vector<std::size_t> sampled(std::size_t count, std::size_t places) {
  std::vector<std::size_t> chosen;
  const std::size_t n = std::min(count, places);
  for (std::size_t i = 0; i < n; ++i) {
    chosen.push_back(n == 1 ? 0 : (i * (count - 1) + (n - 1) / 2) / (n - 1));
  }
  return chosen;
}

// The index of the shown cell nearest to a position in cells.
int nearest(const std::vector<std::size_t>& shown, double position) {
  std::size_t best = 0;
  const auto distance = [&](std::size_t i) {
    return std::abs(static_cast<double>(shown[i]) + 0.5 - position);
  };
  for (std::size_t i = 1; i < shown.size(); ++i) {
    if (distance(i) < distance(best)) best = i;
  }
  return static_cast<int>(best);
}

std::vector<std::string> key_of(const Region& region, const ValueScale& scale, bool gaps) {
  std::vector<std::string> entries;
  if (region.band) {
    entries.push_back("# " + region.band->label);
    entries.push_back(". below " + value_text(region.band->low, region.value_unit));
    entries.push_back("+ above " + value_text(region.band->high, region.value_unit));
  } else {
    entries.push_back("0 to 9: from " + value_text(scale.low, region.value_unit) + " to " +
                      value_text(scale.high, region.value_unit) + " in equal steps");
  }
  if (gaps) entries.emplace_back("blank: not possible");
  for (std::size_t i = 0; i < region.marks.size(); ++i) {
    entries.push_back(letter(i) + " " + region.marks[i].label);
  }
  return entries;
}

}  // namespace

std::string region_text(const Region& region, int columns, int rows) {
  check(region);
  if (columns < 30 || rows < 2) {
    throw UsageError(
        fmt::format("a map as text needs at least 30 columns and 2 rows, but there are {} and {}",
                    columns, rows));
  }
  const ValueScale scale = value_scale(region);
  int numbers = 0;
  for (const double y : region.ys) numbers = std::max(numbers, columns_of(value_text(y)));
  const int left = numbers + 2;
  const auto room = as_size(columns - left);
  const std::vector<std::size_t> xs = sampled(region.xs.size(), room);
  const std::vector<std::size_t> ys = sampled(region.ys.size(), as_size(rows));
  const int cell = std::min(4, static_cast<int>(room / xs.size()));  // characters
  const int width = cell * static_cast<int>(xs.size());
  const int height = static_cast<int>(ys.size());

  Canvas map(width, height);
  for (int row = 0; row < height; ++row) {
    for (std::size_t i = 0; i < xs.size(); ++i) {
      const auto& value = region.values[nth(ys, row)][xs[i]];
      for (int k = 0; k < cell; ++k) {
        map.put(height - 1 - row, static_cast<int>(i) * cell + k,
                cell_character(region, scale, value));
      }
    }
  }
  for (std::size_t i = 0; i < region.marks.size(); ++i) {
    const int column = nearest(xs, cell_position(region.xs, region.marks[i].x));
    const int row = nearest(ys, cell_position(region.ys, region.marks[i].y));
    map.put(height - 1 - row, column * cell + cell / 2, letter(i));
  }

  std::vector<double> shown_ys;
  for (const std::size_t i : ys) shown_ys.push_back(region.ys[i]);
  std::vector<double> shown_xs;
  for (const std::size_t i : xs) shown_xs.push_back(region.xs[i]);
  std::vector<std::string> margin(as_size(height), std::string(as_size(numbers), ' ') + " │");
  for (const std::size_t i :
       labelled_cells(shown_ys, as_size(height <= 8 ? height : (height + 1) / 2))) {
    const std::string label = value_text(shown_ys[i]);
    margin[as_size(height) - 1 - i] =
        std::string(as_size(numbers - columns_of(label)), ' ') + label + " ┤";
  }
  AxisNumbers x_numbers;
  std::vector<int> at;
  for (std::size_t most = shown_xs.size(); most >= 1; --most) {
    at.clear();
    std::vector<std::string> labels;
    for (const std::size_t i : labelled_cells(shown_xs, most)) {
      at.push_back(left + static_cast<int>(i) * cell + cell / 2);
      labels.push_back(value_text(shown_xs[i]));
    }
    x_numbers = axis_numbers(at, labels, columns);
    if (x_numbers.fits) break;
  }
  Canvas foot(left + width, 1);
  for (int c = left; c < left + width; ++c) foot.put(0, c, "─");
  foot.put(0, left - 1, "└");
  for (const int mark : at) foot.put(0, mark, "┬");

  std::string out;
  if (!region.title.empty()) out += region.title + "\n";
  out += wrapped_text(region.subtitle, columns);
  out +=
      wrapped_text(fmt::format("{}; rows: {}", value_title(region), axis_title(region.y)), columns);
  for (int r = 0; r < height; ++r) {
    out += nth(margin, r) + map.line(r) + "\n";
  }
  out += foot.line(0) + "\n" + x_numbers.line;
  const std::string x_title = shortened(axis_title(region.x), as_size(columns));
  const int indent = std::max(0, left + width - columns_of(x_title));
  out += std::string(as_size(indent), ' ') + x_title + "\n";
  out += key_text(key_of(region, scale, has_gaps(region)), columns);
  for (const std::string& note : notes_of(region)) out += wrapped_text(note, columns);
  if (xs.size() < region.xs.size() || ys.size() < region.ys.size()) {
    out += wrapped_text(fmt::format("Shown are {} of {} columns and {} of {} rows.", xs.size(),
                                    region.xs.size(), ys.size(), region.ys.size()),
                        columns);
  }
  return out;
}

}  // namespace stageline::report
