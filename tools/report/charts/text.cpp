// Draws curves as text.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tools/report/charts/axis.hpp"
#include "tools/report/charts/canvas.hpp"
#include "tools/report/svg/text.hpp"

namespace stageline::report {
namespace {

constexpr std::size_t most_joined = 4;  // series; lines between more would be clutter

struct Cell {
  int row = 0;
  int column = 0;
};

// Maps values to cells. One column is left free at either side of the first and the last x.
struct CellGrid {
  ValueScale x;
  ValueScale y;
  int columns = 0;
  int rows = 0;

  int column(double value) const {
    return 1 + static_cast<int>(std::lround(x.share(value) * (columns - 3)));
  }
  int row(double value) const {
    return rows - 1 - static_cast<int>(std::lround(y.share(value) * (rows - 1)));
  }
  Cell of(const ChartPoint& point) const { return {row(*point.y), column(point.x)}; }
};

void put_dot(Canvas& canvas, int row, int column) {
  if (canvas.blank(row, column)) canvas.put(row, column, "·");
}

// Draws dots between two points, every other one if dashed.
void join(Canvas& canvas, Cell from, Cell to, SeriesStyle style) {
  const int across = to.column - from.column;
  if (style == SeriesStyle::step) {
    const int step = across < 0 ? -1 : 1;
    for (int c = from.column; c != to.column; c += step) put_dot(canvas, from.row, c);
    for (int r = std::min(from.row, to.row); r <= std::max(from.row, to.row); ++r) {
      put_dot(canvas, r, to.column);
    }
    return;
  }
  const int steps = std::max(std::abs(across), std::abs(to.row - from.row));
  for (int i = 1; i < steps; ++i) {
    if (style == SeriesStyle::dashed && i % 2 == 1) continue;
    const double share = static_cast<double>(i) / steps;
    put_dot(canvas, from.row + static_cast<int>(std::lround(share * (to.row - from.row))),
            from.column + static_cast<int>(std::lround(share * across)));
  }
}

void draw_joins(Canvas& canvas, const Chart& chart, const CellGrid& cells) {
  for (const Series& series : chart.series) {
    if (series.style == SeriesStyle::points) continue;
    const ChartPoint* last = nullptr;
    for (const ChartPoint& point : series.points) {
      if (last != nullptr && point.y) {
        join(canvas, cells.of(*last), cells.of(point), series.style);
      }
      last = point.y ? &point : nullptr;
    }
  }
}

// How far to the right of its place a letter may move without coming near another x.
int room_beside(const Chart& chart, const CellGrid& cells) {
  std::vector<int> columns;
  for (const Series& series : chart.series) {
    for (const ChartPoint& point : series.points) columns.push_back(cells.column(point.x));
  }
  std::sort(columns.begin(), columns.end());
  int room = cells.columns;
  for (std::size_t i = 1; i < columns.size(); ++i) {
    if (columns[i] > columns[i - 1]) room = std::min(room, columns[i] - columns[i - 1] - 2);
  }
  return std::max(room, 0);
}

// Draws the letters; returns whether several points had to share one '*'.
bool draw_letters(Canvas& canvas, const Chart& chart, const CellGrid& cells) {
  const int room = room_beside(chart, cells);
  bool shared = false;
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    for (const ChartPoint& point : chart.series[i].points) {
      if (!point.y) continue;
      const Cell cell = cells.of(point);
      const std::string mine = letter(i, point.open);
      int column = cell.column;
      const int last = std::min(cell.column + room, cells.columns - 1);
      const auto taken = [&](int at) {
        const std::string& there = canvas.at(cell.row, at);
        return there == "*" || (is_letter(there) && there != mine);
      };
      while (column < last && taken(column)) ++column;
      const bool full = taken(column);
      shared = shared || full;
      canvas.put(cell.row, column, full ? "*" : mine);
    }
  }
  return shared;
}

std::vector<std::string> key_of(const Chart& chart, bool shared) {
  std::vector<std::string> entries;
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    entries.push_back(letter(i) + " " + chart.series[i].name);
  }
  for (const ReferenceLine& line : chart.horizontal) {
    entries.push_back("╌ " + line.label);
  }
  for (const ReferenceLine& line : chart.vertical) {
    entries.push_back("┊ " + line.label);
  }
  if (shared) entries.emplace_back("* several");
  return entries;
}

void check_size(int columns, int rows, int least_rows) {
  if (columns < 30 || rows < least_rows) {
    throw UsageError(fmt::format(
        "a chart as text needs at least 30 columns and {} rows, but there are {} and {}",
        least_rows, columns, rows));
  }
}

}  // namespace

std::string chart_text(const Chart& chart, int columns, int rows) {
  check(chart);
  check_size(columns, rows, 4);
  const int y_intervals = std::max(1, (rows - 1) / 2);
  CellGrid cells;
  cells.x = x_scale(chart);
  cells.y = y_scale(chart, y_intervals);
  cells.rows = rows;
  const std::vector<Tick> y_ticks = ticks(cells.y, y_intervals, chart.y.whole);
  int numbers = 0;
  for (const Tick& tick : y_ticks) numbers = std::max(numbers, columns_of(tick.label));
  const int left = numbers + 2;  // first column of the plot, behind "1.5 ┤"
  cells.columns = columns - left;

  Canvas plot(cells.columns, rows);
  for (const ReferenceLine& line : chart.vertical) {
    for (int r = 0; r < rows; ++r) plot.put(r, cells.column(line.at), "┊");
  }
  for (const ReferenceLine& line : chart.horizontal) {
    for (int c = 0; c < cells.columns; ++c) plot.put(cells.row(line.at), c, "╌");
  }
  if (chart.series.size() <= most_joined) draw_joins(plot, chart, cells);
  const bool shared = draw_letters(plot, chart, cells);

  std::vector<std::string> margin(as_size(rows), std::string(as_size(numbers), ' ') + " │");
  for (const Tick& tick : y_ticks) {
    nth(margin, cells.row(tick.at)) =
        std::string(as_size(numbers - columns_of(tick.label)), ' ') + tick.label + " ┤";
  }

  // As many numbers as there is room for.
  AxisNumbers x_numbers;
  std::vector<int> marks;
  for (int intervals = std::max(1, cells.columns / 3);; --intervals) {
    marks.clear();
    std::vector<std::string> labels;
    for (const Tick& tick : ticks(cells.x, intervals, chart.x.whole)) {
      marks.push_back(left + cells.column(tick.at));
      labels.push_back(tick.label);
    }
    x_numbers = axis_numbers(marks, labels, columns);
    if (x_numbers.fits || intervals == 1) break;
  }
  Canvas foot(columns, 1);
  for (int c = left; c < columns; ++c) foot.put(0, c, "─");
  foot.put(0, left - 1, "└");
  for (const int mark : marks) foot.put(0, mark, "┬");

  std::string out;
  if (!chart.title.empty()) out += chart.title + "\n";
  out += wrapped_text(chart.subtitle, columns) + wrapped_text(axis_title(chart.y), columns);
  for (int r = 0; r < rows; ++r) {
    const std::string line = plot.line(r);
    out += nth(margin, r) + line + "\n";
  }
  out += foot.line(0) + "\n" + x_numbers.line;
  const std::string x_title = shortened(axis_title(chart.x), as_size(columns));
  out += std::string(as_size(columns - columns_of(x_title)), ' ') + x_title + "\n";
  out += key_text(key_of(chart, shared), columns);
  for (const std::string& note : chart.footnotes) out += wrapped_text(note, columns);
  return out;
}

}  // namespace stageline::report
