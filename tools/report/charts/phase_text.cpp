// Draws maps of winners as text.
#include <fmt/core.h>

#include <algorithm>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tools/base/table.hpp"
#include "tools/report/charts/canvas.hpp"
#include "tools/report/charts/phase.hpp"
#include "tools/report/svg/text.hpp"

namespace stageline::report {
namespace {

constexpr int widest_cell = 4;  // characters

// Indices of the cells to show: all, or evenly chosen ones where there is no room for all.
std::vector<std::size_t> shown(std::size_t count, std::size_t places) {
  std::vector<std::size_t> chosen;
  const std::size_t n = std::min(count, places);
  for (std::size_t i = 0; i < n; ++i) {
    chosen.push_back(n == 1 ? 0 : (i * (count - 1) + (n - 1) / 2) / (n - 1));
  }
  return chosen;
}

std::string character(const PhaseCell& cell) {
  if (cell.winner) return letter(*cell.winner, cell.by_memory);
  return cell.possible ? "·" : " ";
}

// Where columns of the axis are labelled, as many as there is room for.
AxisNumbers numbers_of(const PhaseChart& chart, const std::vector<std::size_t>& xs, int left,
                       int cell, int columns, std::vector<int>& at) {
  AxisNumbers numbers;
  for (std::size_t stride = 1; stride <= xs.size(); ++stride) {
    at.clear();
    std::vector<std::string> labels;
    for (std::size_t i = 0; i < xs.size(); i += stride) {
      at.push_back(left + static_cast<int>(i) * cell + cell / 2);
      labels.push_back(chart.xs[xs[i]]);
    }
    numbers = axis_numbers(at, labels, columns);
    if (numbers.fits) break;
  }
  return numbers;
}

}  // namespace

std::vector<std::string> phase_shares(const PhaseChart& chart) {
  struct Share {
    std::size_t name = 0;
    std::size_t cells = 0;
    double most = 0;
  };
  std::vector<Share> shares;
  std::size_t all = 0;
  for (std::size_t i = 0; i < chart.names.size(); ++i) shares.push_back({i, 0, 0});
  for (const std::vector<PhaseCell>& row : chart.cells) {
    for (const PhaseCell& cell : row) {
      ++all;
      if (!cell.winner) continue;
      Share& share = shares[*cell.winner];
      ++share.cells;
      share.most = std::max(share.most, cell.lead.value_or(0));
    }
  }
  std::stable_sort(shares.begin(), shares.end(),
                   [](const Share& a, const Share& b) { return a.cells > b.cells; });
  std::vector<std::string> lines;
  for (const Share& share : shares) {
    if (share.cells == 0) continue;
    lines.push_back(
        fmt::format("{} {}: {} of the map{}", letter(share.name), chart.names[share.name],
                    percent(static_cast<double>(share.cells) / static_cast<double>(all)),
                    share.most > 0 ? fmt::format(", up to {} ahead", percent(share.most)) : ""));
  }
  return lines;
}

std::string phase_text(const PhaseChart& chart, int columns, int rows) {
  if (columns < 30 || rows < 2) {
    throw UsageError(
        fmt::format("a map as text needs at least 30 columns and 2 rows, but there are {} and {}",
                    columns, rows));
  }
  int names = 0;
  for (const std::string& y : chart.ys) names = std::max(names, columns_of(y));
  const int left = names + 2;
  const std::size_t room = as_size(std::max(columns - left, 8));
  const std::vector<std::size_t> xs = shown(chart.xs.size(), room);
  const std::vector<std::size_t> ys = shown(chart.ys.size(), as_size(rows));
  const int cell = std::min(widest_cell, static_cast<int>(room / xs.size()));
  const int width = cell * static_cast<int>(xs.size());

  std::string out;
  if (!chart.title.empty()) out += chart.title + "\n";
  out += wrapped_text(chart.subtitle, columns);
  out += wrapped_text(fmt::format("rows: {}", chart.y), columns);
  const std::size_t stride = ys.size() <= 9 ? 1 : 2;
  for (std::size_t r = ys.size(); r-- > 0;) {
    const std::string label = r % stride == 0 ? chart.ys[ys[r]] : "";
    std::string line = std::string(as_size(names - columns_of(label)), ' ') + label +
                       (label.empty() ? " │" : " ┤");
    for (const std::size_t x : xs) {
      for (int k = 0; k < cell; ++k) line += character(chart.cells[ys[r]][x]);
    }
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  std::vector<int> at;
  const AxisNumbers numbers = numbers_of(chart, xs, left, cell, columns, at);
  Canvas foot(left + width, 1);
  for (int c = left; c < left + width; ++c) foot.put(0, c, "─");
  foot.put(0, left - 1, "└");
  for (const int mark : at) foot.put(0, mark, "┬");
  out += foot.line(0) + "\n" + numbers.line;
  const std::string title = shortened(chart.x, as_size(columns));
  out += std::string(as_size(std::max(0, left + width - columns_of(title))), ' ') + title + "\n";

  bool small = false;
  bool none = false;
  bool blank = false;
  for (const std::vector<PhaseCell>& row : chart.cells) {
    for (const PhaseCell& one : row) {
      small = small || (one.winner && one.by_memory);
      none = none || (!one.winner && one.possible);
      blank = blank || (!one.winner && !one.possible);
    }
  }
  for (const std::string& line : phase_shares(chart)) out += wrapped_text(line, columns);
  std::vector<std::string> key;
  if (small) {
    out += wrapped_text("small letters: a faster one does not fit into memory", columns);
  }
  if (none) key.emplace_back("·: none fits");
  if (blank) key.emplace_back("blank: none can run");
  if (!key.empty()) out += key_text(key, columns);
  for (const std::string& note : chart.footnotes) out += wrapped_text(note, columns);
  if (xs.size() < chart.xs.size() || ys.size() < chart.ys.size()) {
    out += wrapped_text(fmt::format("Shown are {} of {} columns and {} of {} rows.", xs.size(),
                                    chart.xs.size(), ys.size(), chart.ys.size()),
                        columns);
  }
  return out;
}

}  // namespace stageline::report
