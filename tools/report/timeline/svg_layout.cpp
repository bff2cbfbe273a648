// Places the rows of a picture by the number of its devices.
#include <algorithm>
#include <numeric>

#include "tools/report/timeline/svg_page.hpp"

namespace stageline::report {

RowLayout row_layout(std::size_t devices) {
  if (devices <= 8) return {26, 8, 5, 2};
  if (devices <= 16) return {20, 5, 4, 1};
  if (devices <= 32) return {15, 3, 3, 1};
  if (devices <= 64) return {9, 2, 2, 0.5};
  return {6, 1, 1.5, 0.5};
}

std::vector<std::size_t> devices_drawn(const Drawing& drawing) {
  if (!drawing.rows.empty()) return drawing.rows;
  std::vector<std::size_t> all(drawing.timeline.devices.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

RowPlaces row_places(const Rows& rows, const Drawing& drawing, double top) {
  const std::vector<std::size_t> drawn = devices_drawn(drawing);
  const RowLayout layout = row_layout(drawn.size());
  const auto strips = std::count(rows.in_use.begin() + 1, rows.in_use.end(), true);
  RowPlaces places;
  places.height = layout.row;
  places.pitch =
      layout.row + layout.gap + static_cast<double>(strips) * (layout.strip + layout.strip_gap);
  places.bottom = top + static_cast<double>(drawn.size()) * places.pitch - layout.gap;
  places.tops.resize(drawing.timeline.devices.size());
  for (std::size_t place = 0; place < drawn.size(); ++place) {
    places.tops[drawn[place]] = top + static_cast<double>(place) * places.pitch;
  }
  return places;
}

}  // namespace stageline::report
