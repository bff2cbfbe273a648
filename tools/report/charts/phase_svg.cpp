// Draws maps of winners as SVG.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tools/base/table.hpp"
#include "tools/report/charts/canvas.hpp"
#include "tools/report/charts/page.hpp"
#include "tools/report/charts/phase.hpp"

namespace stageline::report {
namespace {

constexpr double phase_tick = 11;  // px, of numbers
constexpr double phase_name = 12;
// Classes of report/svg/theme.hpp: neighbours in the list differ in lightness, so also in a grey
// print; from the ninth name on they come again, fainter.
constexpr std::array<const char*, 8> fills{"f", "i", "b", "g", "pf", "pb", "pg", "pu"};
constexpr const char* opacity = "0.9";
constexpr const char* faint = "0.45";

struct PhaseGrid {
  Plot plot;
  double cell_width = 0;   // px
  double cell_height = 0;  // px

  double px(std::size_t cells) const {
    return std::round(plot.left + static_cast<double>(cells) * cell_width);
  }
  double py(std::size_t cells) const {
    return std::round(plot.bottom - static_cast<double>(cells) * cell_height);
  }
};

std::string rectangle(const std::string& attributes, double x1, double y1, double x2, double y2,
                      const std::string& tooltip) {
  return fmt::format(
      "<rect {} x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"{}\n", attributes, svg_number(x1),
      svg_number(y1), svg_number(x2 - x1), svg_number(y2 - y1),
      tooltip.empty() ? "/>" : fmt::format("><title>{}</title></rect>", xml_escaped(tooltip)));
}

std::string fill_of(std::size_t name) {
  return fmt::format("class=\"{}\" fill-opacity=\"{}\" shape-rendering=\"crispEdges\"",
                     fills[name % fills.size()], name < fills.size() ? opacity : faint);
}

std::string tooltip_of(const PhaseChart& chart, std::size_t row, std::size_t column) {
  const PhaseCell& cell = chart.cells[row][column];
  std::string text =
      fmt::format("{} {}, {} {}: ", chart.x, chart.xs[column], chart.y, chart.ys[row]);
  if (!cell.winner) return text + (cell.possible ? "none fits" : "none can run");
  text += chart.names[*cell.winner];
  if (cell.lead) {
    text += fmt::format(", {} ahead{}", percent(*cell.lead),
                        cell.second.empty() ? "" : " of " + cell.second);
  }
  if (cell.by_memory) text += "; a faster one does not fit";
  return text;
}

std::string cells(const PhaseChart& chart, const PhaseGrid& grid) {
  std::string out;
  std::string hatched;
  for (std::size_t row = 0; row < chart.ys.size(); ++row) {
    for (std::size_t column = 0; column < chart.xs.size(); ++column) {
      const PhaseCell& cell = chart.cells[row][column];
      const std::string look = cell.winner
                                   ? fill_of(*cell.winner)
                                   : std::string(cell.possible ? "class=\"dm\"" : "class=\"bg\"");
      const auto draw = [&](const std::string& attributes) {
        return rectangle(attributes, grid.px(column), grid.py(row + 1), grid.px(column + 1),
                         grid.py(row), tooltip_of(chart, row, column));
      };
      out += draw(look);
      if (cell.winner && cell.by_memory) hatched += draw("fill=\"url(#stageline-hatch-band)\"");
    }
  }
  return out + hatched;
}

int lead_class(const PhaseCell& cell) {
  if (!cell.lead) return -1;
  return static_cast<int>(std::upper_bound(phase_leads.begin(), phase_leads.end(), *cell.lead) -
                          phase_leads.begin());
}

// Edges between neighbouring cells that `differ`.
template <class Differ>
std::string edges(const PhaseChart& chart, const PhaseGrid& grid, const char* style,
                  Differ differ) {
  std::string path;
  for (std::size_t row = 0; row < chart.ys.size(); ++row) {
    for (std::size_t column = 0; column < chart.xs.size(); ++column) {
      const PhaseCell& cell = chart.cells[row][column];
      if (column + 1 < chart.xs.size() && differ(cell, chart.cells[row][column + 1])) {
        path += fmt::format("M{} {}V{}", svg_number(grid.px(column + 1)), svg_number(grid.py(row)),
                            svg_number(grid.py(row + 1)));
      }
      if (row + 1 < chart.ys.size() && differ(cell, chart.cells[row + 1][column])) {
        path += fmt::format("M{} {}H{}", svg_number(grid.px(column)), svg_number(grid.py(row + 1)),
                            svg_number(grid.px(column + 1)));
      }
    }
  }
  if (path.empty()) return "";
  return fmt::format(
      "<path class=\"band edge\" style=\"{}\" stroke-linecap=\"square\" d=\"{}\"/>\n", style, path);
}

// How far a cell is from the nearest one of another winner, or from the edge, in cells.
std::vector<std::vector<int>> depths(const PhaseChart& chart) {
  const std::size_t rows = chart.ys.size();
  const std::size_t columns = chart.xs.size();
  std::vector<std::vector<int>> depth(rows, std::vector<int>(columns, 1));
  const auto pass = [&](std::size_t row, std::size_t column) {
    const auto at = [&](std::size_t r, std::size_t c) {
      if (r >= rows || c >= columns) return 1;  // behind the edge, below 0 too
      return chart.cells[r][c].winner == chart.cells[row][column].winner ? depth[r][c] : 0;
    };
    const int least = std::min(
        {at(row + 1, column), at(row - 1, column), at(row, column + 1), at(row, column - 1)});
    return least + 1;
  };
  for (std::size_t round = 0; round < std::max(rows, columns); ++round) {
    std::vector<std::vector<int>> next = depth;
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t column = 0; column < columns; ++column)
        next[row][column] = pass(row, column);
    }
    if (next == depth) break;
    depth = std::move(next);
  }
  return depth;
}

// Where text stands.
struct PhasePlate {
  double x = 0;  // its middle, in px
  double y = 0;
  double half = 0;  // of its width
};

bool is_covered(const std::vector<PhasePlate>& plates, const PhasePlate& one) {
  return std::any_of(plates.begin(), plates.end(), [&](const PhasePlate& other) {
    return std::abs(one.x - other.x) < one.half + other.half && std::abs(one.y - other.y) < 17;
  });
}

std::string plate(const PhaseGrid& grid, double middle, double y, double size,
                  const std::string& words, std::vector<PhasePlate>& plates) {
  const double half = text_width(words, size) / 2 + 4;
  const double x = std::clamp(middle, grid.plot.left + half + 2, grid.plot.right - half - 2);
  if (is_covered(plates, {x, y, half})) return "";
  plates.push_back({x, y, half});
  return rectangle("class=\"bg plate\" fill-opacity=\"0.85\"", x - half, y - 0.75 * size, x + half,
                   y + 0.67 * size, "") +
         text_at(x, y + size / 3, "t n", size, words);
}

// The lead beside each line of equal lead: at the middle one of the places where cells of one
// winner have less and more than it.
std::string lead_numbers(const PhaseChart& chart, const PhaseGrid& grid,
                         std::vector<PhasePlate>& plates) {
  constexpr double size = 9;  // px
  struct Crossing {
    double x, y;
  };
  std::string out;
  for (std::size_t name = 0; name < chart.names.size(); ++name) {
    for (std::size_t lead = 0; lead < phase_leads.size(); ++lead) {
      const int below = static_cast<int>(lead);
      const auto crosses = [&](const PhaseCell& a, const PhaseCell& b) {
        if (a.winner != name || b.winner != name || !a.lead || !b.lead) return false;
        return std::min(lead_class(a), lead_class(b)) <= below &&
               std::max(lead_class(a), lead_class(b)) > below;
      };
      std::vector<Crossing> places;
      for (std::size_t row = 0; row < chart.ys.size(); ++row) {
        for (std::size_t column = 0; column < chart.xs.size(); ++column) {
          const PhaseCell& cell = chart.cells[row][column];
          const double x = (grid.px(column) + grid.px(column + 1)) / 2;
          const double y = (grid.py(row) + grid.py(row + 1)) / 2;
          if (column + 1 < chart.xs.size() && crosses(cell, chart.cells[row][column + 1])) {
            places.push_back({grid.px(column + 1), y});
          }
          if (row + 1 < chart.ys.size() && crosses(cell, chart.cells[row + 1][column])) {
            places.push_back({x, grid.py(row + 1)});
          }
        }
      }
      if (places.empty()) continue;
      const Crossing& at = places[places.size() / 2];
      out += plate(grid, at.x, at.y, size, fmt::format("{:g} %", 100 * phase_leads[lead]), plates);
    }
  }
  return out;
}

// Each winner's name in its widest place, where it has room.
std::string names(const PhaseChart& chart, const PhaseGrid& grid, std::vector<PhasePlate>& plates) {
  const std::vector<std::vector<int>> depth = depths(chart);
  std::string out;
  for (std::size_t name = 0; name < chart.names.size(); ++name) {
    std::size_t best_row = 0;
    std::size_t best_column = 0;
    int best = 0;
    for (std::size_t row = 0; row < chart.ys.size(); ++row) {
      for (std::size_t column = 0; column < chart.xs.size(); ++column) {
        if (chart.cells[row][column].winner != name || depth[row][column] <= best) continue;
        best = depth[row][column];
        best_row = row;
        best_column = column;
      }
    }
    if (best == 0) continue;
    const double middle = (grid.px(best_column) + grid.px(best_column + 1)) / 2;
    const double y = (grid.py(best_row) + grid.py(best_row + 1)) / 2;
    out += plate(grid, middle, y, phase_name, chart.names[name], plates);
  }
  return out;
}

// A tick in the middle of each value's cell, or those of the chart.
std::vector<PhaseTick> phase_ticks(const std::vector<PhaseTick>& round,
                                   const std::vector<std::string>& values) {
  if (!round.empty()) return round;
  std::vector<PhaseTick> ticks;
  for (std::size_t i = 0; i < values.size(); ++i) {
    ticks.push_back({static_cast<double>(i) + 0.5, values[i]});
  }
  return ticks;
}

std::string axis_words(const std::string& words, const std::string& name) {
  return words.empty() ? name : words;
}

std::string axes(const PhaseChart& chart, const PhaseGrid& grid) {
  const Plot& plot = grid.plot;
  std::string out;
  double last = -1e9;
  for (const PhaseTick& tick : phase_ticks(chart.x_ticks, chart.xs)) {
    const double x = std::round(plot.left + tick.at * grid.cell_width);
    const double half = text_width(tick.label, phase_tick) / 2 + 4;
    if (x - half < last) continue;
    last = x + half;
    out += line_at(x, plot.bottom, x, plot.bottom + 4, "axis");
    out += text_at(x, plot.bottom + 17, "d n", phase_tick, tick.label);
  }
  double below = 1e9;
  for (const PhaseTick& tick : phase_ticks(chart.y_ticks, chart.ys)) {
    const double y = std::round(plot.bottom - tick.at * grid.cell_height);
    if (y > below - 16) continue;
    below = y;
    out += line_at(plot.left - 4, y, plot.left, y, "axis");
    out += text_at(plot.left - 7, y + 4, "d r", phase_tick, tick.label);
  }
  return out + text_at(plot.right, plot.bottom + 34, "d r", phase_tick,
                       axis_words(chart.x_words, chart.x));
}

Fragment legend(const PhaseChart& chart, double width, double top) {
  Fragment result;
  result.bottom = top;
  const auto entry = [&](const std::string& attributes, const std::string& over,
                         const std::string& text) {
    const double y = result.bottom;
    result.text += rectangle(attributes, page_margin, y, page_margin + 22, y + 12, "");
    if (!over.empty()) {
      result.text += rectangle(over, page_margin, y, page_margin + 22, y + 12, "");
    }
    for (const std::string& line : text_lines(text, width - 2 * page_margin - 30, 12)) {
      result.text += text_at(page_margin + 30, result.bottom + 11, "t", 12, line);
      result.bottom += 18;
    }
  };
  for (const std::string& line : phase_shares(chart)) {
    for (std::size_t name = 0; name < chart.names.size(); ++name) {
      const std::string lead = letter(name) + " ";
      if (line.starts_with(lead)) entry(fill_of(name), "", line.substr(lead.size()));
    }
  }
  bool by_memory = false;
  bool none = false;
  for (const std::vector<PhaseCell>& row : chart.cells) {
    for (const PhaseCell& cell : row) {
      by_memory = by_memory || (cell.winner && cell.by_memory);
      none = none || (!cell.winner && cell.possible);
    }
  }
  if (by_memory) {
    entry("class=\"bg swatch\"", "fill=\"url(#stageline-hatch-band)\"",
          "memory decides: a faster one does not fit");
  }
  if (none) entry("class=\"dm swatch\"", "", "none fits");
  result.text += text_at(page_margin, result.bottom + 11, "d", phase_tick,
                         "dotted lines: where the lead passes 1, 2, 5, 10, 20 and 50 %");
  result.bottom += 18;
  return result;
}

}  // namespace

std::string phase_svg(const PhaseChart& chart, const SvgOptions& options) {
  check(options);
  if (chart.names.size() > letters) {
    throw UsageError(
        fmt::format("a map shows up to {} names, not {}", letters, chart.names.size()));
  }
  const double width = options.width;
  double numbers = 0;
  for (const PhaseTick& tick : phase_ticks(chart.y_ticks, chart.ys)) {
    numbers = std::max(numbers, text_width(tick.label, phase_tick));
  }
  Fragment head = page_head(chart.title, chart.subtitle, options);
  const Fragment key = legend(chart, width, head.bottom + 10);
  PhaseGrid grid;
  grid.plot.left = std::round(page_margin + numbers + 10);
  grid.plot.right = width - page_margin - 8;
  grid.plot.top = std::round(key.bottom + 26);
  const double height = std::min(std::max(0.5 * (grid.plot.right - grid.plot.left), 180.0), 520.0);
  grid.plot.bottom = grid.plot.top + height;
  grid.cell_width = (grid.plot.right - grid.plot.left) / static_cast<double>(chart.xs.size());
  grid.cell_height = height / static_cast<double>(chart.ys.size());

  std::string body = head.text + key.text;
  body +=
      text_at(page_margin, grid.plot.top - 9, "d", phase_tick, axis_words(chart.y_words, chart.y));
  body += cells(chart, grid);
  body += edges(chart, grid, "stroke-width:.6;stroke-dasharray:1 3",
                [](const PhaseCell& a, const PhaseCell& b) {
                  return a.winner && a.winner == b.winner && lead_class(a) != lead_class(b);
                });
  body += edges(chart, grid, "stroke-width:2",
                [](const PhaseCell& a, const PhaseCell& b) { return a.winner != b.winner; });
  std::vector<PhasePlate> plates;
  body += axes(chart, grid) + names(chart, grid, plates) + lead_numbers(chart, grid, plates);
  return chart_document(
      chart.title,
      fmt::format("Map of which of {} is the fastest over {} and {}: {} by {} "
                  "cells.",
                  chart.names.size(), chart.x, chart.y, chart.xs.size(), chart.ys.size()),
      body, grid.plot.bottom + 38, chart.footnotes, options);
}

}  // namespace stageline::report
