// Draws maps over two axes as SVG.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "sim/base/index.hpp"
#include "tools/report/charts/page.hpp"
#include "tools/report/charts/region.hpp"

namespace stageline::report {
namespace {

constexpr double region_tick = 11;  // px, of numbers
constexpr double bar_width = 14;    // px, of the scale
constexpr double faintest = 0.06;
constexpr double strongest = 0.85;

struct RegionGrid {
  Plot plot;
  double cell_width = 0;   // px
  double cell_height = 0;  // px

  // Position of an edge or middle of a cell; whole, or renderers leave seams between neighbours.
  double px(double cells) const { return std::round(plot.left + cells * cell_width); }
  double py(double cells) const { return std::round(plot.bottom - cells * cell_height); }
};

std::string rectangle(std::string_view attributes, double x1, double y1, double x2, double y2) {
  return fmt::format("<rect {} x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n", attributes,
                     svg_number(x1), svg_number(y1), svg_number(x2 - x1), svg_number(y2 - y1));
}

// Draws runs of cells in a row that look alike as one rectangle. `look` gives the attributes of a
// cell, "" for none.
template <class Look>
std::string runs(const Region& region, const RegionGrid& grid, Look look) {
  std::string out;
  for (std::size_t row = 0; row < region.ys.size(); ++row) {
    std::size_t first = 0;
    while (first < region.xs.size()) {
      const std::string attributes = look(row, first);
      std::size_t next = first + 1;
      while (next < region.xs.size() && look(row, next) == attributes) ++next;
      if (!attributes.empty()) {
        out += rectangle(attributes, grid.px(static_cast<double>(first)),
                         grid.py(static_cast<double>(row + 1)), grid.px(static_cast<double>(next)),
                         grid.py(static_cast<double>(row)));
      }
      first = next;
    }
  }
  return out;
}

std::string heat(const ValueScale& scale, double value) {
  return fmt::format("class=\"heat\" shape-rendering=\"crispEdges\" fill-opacity=\"{}\"",
                     svg_number(faintest + (strongest - faintest) * scale.share(value)));
}

// The edges between cells inside and outside the band. The map's own edge closes it.
std::string outline(const Region& region, const RegionGrid& grid) {
  const auto rows = static_cast<std::ptrdiff_t>(region.ys.size());
  const auto columns = static_cast<std::ptrdiff_t>(region.xs.size());
  const auto inside = [&](std::ptrdiff_t row, std::ptrdiff_t column) {
    return row >= 0 && row < rows && column >= 0 && column < columns &&
           in_band(region, as_size(row), as_size(column));
  };
  std::string path;
  for (std::ptrdiff_t row = 0; row <= rows; ++row) {  // below each row, and above the last
    std::ptrdiff_t column = 0;
    while (column < columns) {
      const std::ptrdiff_t first = column;
      while (column < columns && inside(row, column) != inside(row - 1, column)) ++column;
      if (column > first) {
        path += fmt::format("M{} {}H{}", svg_number(grid.px(static_cast<double>(first))),
                            svg_number(grid.py(static_cast<double>(row))),
                            svg_number(grid.px(static_cast<double>(column))));
      }
      ++column;
    }
  }
  for (std::ptrdiff_t column = 0; column <= columns; ++column) {  // at the left of each column
    std::ptrdiff_t row = 0;
    while (row < rows) {
      const std::ptrdiff_t first = row;
      while (row < rows && inside(row, column) != inside(row, column - 1)) ++row;
      if (row > first) {
        path += fmt::format("M{} {}V{}", svg_number(grid.px(static_cast<double>(column))),
                            svg_number(grid.py(static_cast<double>(first))),
                            svg_number(grid.py(static_cast<double>(row))));
      }
      ++row;
    }
  }
  if (path.empty()) return "";
  return fmt::format("<path class=\"band edge\" stroke-linecap=\"square\" d=\"{}\"/>\n", path);
}

std::string axes(const Region& region, const RegionGrid& grid) {
  const Plot& plot = grid.plot;
  std::string out;
  double widest = 0;
  for (const double x : region.xs) {
    widest = std::max(widest, text_width(value_text(x), region_tick));
  }
  const auto room = static_cast<std::size_t>((plot.right - plot.left) / (widest + 10));
  for (const std::size_t i : labelled_cells(region.xs, std::max<std::size_t>(room, 1))) {
    const double x = grid.px(static_cast<double>(i) + 0.5);
    out += line_at(x, plot.bottom, x, plot.bottom + 4, "axis");
    out += text_at(x, plot.bottom + 17, "d n", region_tick, value_text(region.xs[i]));
  }
  const auto high = static_cast<std::size_t>((plot.bottom - plot.top) / 18);
  for (const std::size_t i : labelled_cells(region.ys, std::max<std::size_t>(high, 1))) {
    const double y = grid.py(static_cast<double>(i) + 0.5);
    out += line_at(plot.left - 4, y, plot.left, y, "axis");
    out += text_at(plot.left - 7, y + 4, "d r", region_tick, value_text(region.ys[i]));
  }
  return out + text_at(plot.right, plot.bottom + 34, "d r", region_tick, axis_title(region.x));
}

// The scale at the right: from the least value below to the greatest above, with the band on it.
std::string scale_bar(const Region& region, const ValueScale& scale, const Plot& plot) {
  constexpr int steps = 40;
  const double height = plot.bottom - plot.top;
  const auto y_of = [&](double value) { return plot.bottom - scale.share(value) * height; };
  const double left = std::round(plot.right + 26);
  std::string out;
  for (int i = 0; i < steps; ++i) {
    const double middle = scale.low + (scale.high - scale.low) * (i + 0.5) / steps;
    out += rectangle(heat(scale, middle), left, std::round(plot.bottom - height * (i + 1) / steps),
                     left + bar_width, std::round(plot.bottom - height * i / steps));
  }
  if (region.band) {
    const double top = y_of(std::min(region.band->high, scale.high));
    const double bottom = y_of(std::max(region.band->low, scale.low));
    if (top <= bottom) {
      out += rectangle("fill=\"url(#stageline-hatch-band)\"", left, top, left + bar_width, bottom);
      out += rectangle("class=\"band\"", left, top, left + bar_width, bottom);
    }
  }
  for (const Tick& tick : ticks(scale, std::max(2, static_cast<int>(height / 40)), false)) {
    out += line_at(left + bar_width, y_of(tick.at), left + bar_width + 4, y_of(tick.at), "axis");
    out += text_at(left + bar_width + 7, y_of(tick.at) + 4, "d", region_tick, tick.label);
  }
  return out;
}

// Marked points. A name is at the right of its point, or at the left, above or below it, wherever
// it collides with no other name and no other point.
std::string marks(const Region& region, const RegionGrid& grid) {
  struct Rectangle {
    double left = 0, top = 0, right = 0, bottom = 0;
  };
  const auto meets = [](const Rectangle& a, const Rectangle& b) {
    return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  };
  std::vector<Rectangle> taken;
  std::vector<std::pair<double, double>> places;
  for (const RegionMark& mark : region.marks) {
    const double x = grid.px(cell_position(region.xs, mark.x));
    const double y = grid.py(cell_position(region.ys, mark.y));
    places.emplace_back(x, y);
    taken.push_back({x - 5, y - 5, x + 5, y + 5});
  }
  std::string out;
  for (std::size_t i = 0; i < region.marks.size(); ++i) {
    const std::string& text = region.marks[i].label;
    const auto [x, y] = places[i];
    const double width = text_width(text, region_tick) + 6;
    std::vector<Rectangle> candidates;
    for (const double away : {0.0, 18.0, 36.0, 54.0, 72.0}) {
      candidates.push_back({x + 7, y - 8 - away, x + 7 + width, y + 8 - away});
      candidates.push_back({x - 7 - width, y - 8 - away, x - 7, y + 8 - away});
      candidates.push_back({x + 7, y - 8 + away, x + 7 + width, y + 8 + away});
      candidates.push_back({x - 7 - width, y - 8 + away, x - 7, y + 8 + away});
    }
    const auto free = std::find_if(candidates.begin(), candidates.end(), [&](const auto& here) {
      return here.left >= grid.plot.left && here.right <= grid.plot.right &&
             here.top >= grid.plot.top && here.bottom <= grid.plot.bottom &&
             std::none_of(taken.begin(), taken.end(),
                          [&](const Rectangle& other) { return meets(here, other); });
    });
    const Rectangle at = free == candidates.end() ? candidates.front() : *free;
    taken.push_back(at);
    out +=
        rectangle("class=\"bg plate\" fill-opacity=\"0.8\"", at.left, at.top, at.right, at.bottom);
    out += text_at(at.left + 3, (at.top + at.bottom) / 2 + 4, "t", region_tick, text);
    out += marker(1, x, y, false, 1,
                  fmt::format("{}: {}, {}", text, value_text(region.marks[i].x, region.x.unit),
                              value_text(region.marks[i].y, region.y.unit)));
  }
  return out;
}

// The key: the band, and the meaning of a blank cell.
Fragment key(const Region& region, bool gaps, double width, double top) {
  Fragment result;
  result.bottom = top;
  std::vector<std::string> texts;
  if (region.band) {
    result.text += rectangle("fill=\"url(#stageline-hatch-band)\"", page_margin, top,
                             page_margin + 22, top + 12) +
                   rectangle("class=\"band\"", page_margin, top, page_margin + 22, top + 12);
    for (const std::string& line :
         text_lines(region.band->label, width - 2 * page_margin - 30, 12)) {
      result.text += text_at(page_margin + 30, result.bottom + 11, "t", 12, line);
      result.bottom += 18;
    }
    result.bottom = std::max(result.bottom, top + 18);
  }
  if (gaps) {
    result.text += rectangle("class=\"dm swatch\"", page_margin, result.bottom, page_margin + 22,
                             result.bottom + 12);
    result.text += text_at(page_margin + 30, result.bottom + 11, "t", 12, "not possible");
    result.bottom += 18;
  }
  return result;
}

}  // namespace

std::string region_svg(const Region& region, const SvgOptions& options) {
  check(region);
  check(options);
  const double width = options.width;
  const ValueScale scale = value_scale(region);
  const bool gaps = has_gaps(region);
  double numbers = 0;
  for (const double y : region.ys) {
    numbers = std::max(numbers, text_width(value_text(y), region_tick));
  }
  Fragment head = page_head(region.title, region.subtitle, options);
  const Fragment legend = key(region, gaps, width, head.bottom + 10);
  head.text += legend.text;

  RegionGrid grid;
  grid.plot.left = std::round(page_margin + numbers + 10);
  grid.plot.right = width - page_margin - 26 - bar_width - 48;
  grid.plot.top = std::round(legend.bottom + 26);
  const double height = std::min(std::max(0.55 * (grid.plot.right - grid.plot.left), 180.0), 520.0);
  grid.plot.bottom = grid.plot.top + height;
  grid.cell_width = (grid.plot.right - grid.plot.left) / static_cast<double>(region.xs.size());
  grid.cell_height = height / static_cast<double>(region.ys.size());

  std::string body = head.text;
  const double titles = grid.plot.top - 9;
  const std::string value_words = value_title(region);
  body += text_at(page_margin, titles, "d", region_tick, axis_title(region.y));
  body += text_at(width - page_margin, titles, "d r", region_tick, value_words);
  body += runs(region, grid, [&](std::size_t row, std::size_t column) {
    const std::optional<double>& value = region.values[row][column];
    return value ? heat(scale, *value) : std::string("class=\"dm\"");
  });
  body += runs(region, grid, [&](std::size_t row, std::size_t column) {
    return std::string(in_band(region, row, column) ? "fill=\"url(#stageline-hatch-band)\"" : "");
  });
  body += outline(region, grid) + axes(region, grid) + marks(region, grid);
  body += scale_bar(region, scale, grid.plot);
  return chart_document(
      region.title,
      fmt::format("Map of {} over {} and {}: {} by {} cells.", region.value_label, region.x.label,
                  region.y.label, region.xs.size(), region.ys.size()),
      body, grid.plot.bottom + 38, notes_of(region), options);
}

}  // namespace stageline::report
