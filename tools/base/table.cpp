// Aligns cells, and fits tables into lines of limited width.
#include "tools/base/table.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/base/index.hpp"
#include "sim/text/visible.hpp"
#include "tools/base/text.hpp"

namespace stageline {
namespace {

using TextCells = std::vector<std::string>;
using Indices = std::vector<std::size_t>;  // of columns, from left to right

constexpr int gap = 2;           // blanks between columns
constexpr int least_prose = 20;  // the narrowest column of sentences
constexpr int least_name = 8;    // the narrowest first column

std::vector<int> widths_of(const std::vector<Column>& columns, const std::vector<TextCells>& rows) {
  std::vector<int> widths;
  for (const Column& column : columns) widths.push_back(columns_of(column.title));
  for (const TextCells& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], columns_of(row[i]));
  }
  return widths;
}

int width_of(const Indices& shown, const std::vector<int>& widths) {
  int width = -gap;
  for (const std::size_t i : shown) width += gap + widths[i];
  return std::max(width, 0);
}

// The lines of one cell of sentences.
TextCells lines_of(const std::string& cell, int width) {
  TextCells lines;
  const std::string text = wrapped(cell, width);
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    lines.push_back(line.substr(std::min(line.find_first_not_of(' '), line.size())));
    at = end + 1;
  }
  return lines;
}

class Writer {
 public:
  Writer(const std::vector<Column>& columns, const Indices& shown, const std::vector<int>& widths)
      : columns_(columns), shown_(shown), widths_(widths) {}

  // `above`: the upper lines of titles, by column; empty: titles have one line.
  std::string write(const std::vector<TextCells>& rows, const TextCells& above) const {
    const bool any = std::any_of(shown_.begin(), shown_.end(), [&](std::size_t i) {
      return i < above.size() && !above[i].empty();
    });
    return (any ? row_text(above) : "") + write(rows);
  }

 private:
  std::string write(const std::vector<TextCells>& rows) const {
    TextCells titles;
    TextCells rule;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      titles.push_back(columns_[i].title);
      rule.emplace_back();
      for (int k = 0; k < widths_[i]; ++k) rule.back() += "─";
    }
    std::string text = row_text(titles) + row_text(rule);
    for (const TextCells& row : rows) text += row_text(row);
    return text;
  }

  std::string row_text(const TextCells& row) const {
    TextCells cells;
    for (const std::size_t i : shown_) cells.push_back(i < row.size() ? row[i] : "");
    std::string text;
    if (columns_of(cells.front()) > widths_[shown_.front()]) {
      text = cells.front() + "\n";
      cells.front().clear();
    }
    const std::size_t last = shown_.back();
    if (!columns_[last].prose || columns_of(cells.back()) <= widths_[last]) {
      return text + line_text(cells);
    }
    for (const std::string& line : lines_of(cells.back(), widths_[last])) {
      cells.back() = line;
      text += line_text(cells);
      std::fill(cells.begin(), cells.end(), std::string());
    }
    return text;
  }

  std::string line_text(const TextCells& cells) const {
    std::string line;
    for (std::size_t k = 0; k < cells.size(); ++k) {
      const std::size_t i = shown_[k];
      const std::string pad(as_size(std::max(0, widths_[i] - columns_of(cells[k]))), ' ');
      if (k > 0) line += std::string(as_size(gap), ' ');
      line += columns_[i].left ? cells[k] + pad : pad + cells[k];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    return line + "\n";
  }

  const std::vector<Column>& columns_;
  const Indices& shown_;
  const std::vector<int>& widths_;
};

// The columns of each band: the keys, and others while there is room. Narrows the first column and
// a column of sentences where a band of one column would be too wide.
std::vector<Indices> bands_of(const std::vector<Column>& columns, const Indices& shown,
                              std::vector<int>& widths, int width) {
  Indices keys;
  Indices others;
  for (const std::size_t i : shown) {
    (i == shown.front() || columns[i].key ? keys : others).push_back(i);
  }
  int widest = 0;
  for (const std::size_t i : others) {
    widest = std::max(widest, columns[i].prose ? std::min(widths[i], least_prose) : widths[i]);
  }
  const int excess = width_of(keys, widths) + gap + widest - width;
  int& first = widths[shown.front()];
  if (excess > 0) first = std::min(first, std::max(least_name, first - excess));
  std::vector<Indices> bands;
  for (const std::size_t i : others) {
    if (columns[i].prose) {
      const int room = std::max(least_prose, width - width_of(keys, widths) - gap);
      widths[i] = std::min(widths[i], room);
    }
    if (bands.empty() || width_of(bands.back(), widths) + gap + widths[i] > width) {
      bands.push_back(keys);
    }
    bands.back().push_back(i);
  }
  if (bands.empty()) bands.push_back(keys);
  return bands;
}

std::string text_of(const std::vector<Column>& columns, const std::vector<TextCells>& rows,
                    const Indices& shown, std::vector<int> widths, int width,
                    const TextCells& above = {}) {
  if (shown.empty()) return "";
  const int whole = width_of(shown, widths);
  if (width <= 0 || whole <= width) return Writer(columns, shown, widths).write(rows, above);
  const std::size_t last = shown.back();
  const int room = width - (whole - widths[last]);
  if (columns[last].prose && room >= least_prose) {
    widths[last] = room;
    return Writer(columns, shown, widths).write(rows, above);
  }
  std::string text;
  for (const Indices& band : bands_of(columns, shown, widths, width)) {
    text += (text.empty() ? "" : "\n") + Writer(columns, band, widths).write(rows, above);
  }
  return text;
}

// Names of files are in cells: a newline in one must not end the row.
std::vector<TextCells> visible_rows(std::vector<TextCells> rows) {
  for (TextCells& row : rows) {
    for (std::string& cell : row) cell = visible_cell(cell);
  }
  return rows;
}

std::vector<Column> visible_titles(std::vector<Column> columns) {
  for (Column& column : columns) column.title = visible_cell(column.title);
  return columns;
}

// Takes the upper lines from the titles that may be broken.
TextCells broken_titles(std::vector<Column>& columns) {
  TextCells above;
  for (Column& column : columns) {
    const std::size_t at = std::min(column.break_at, column.title.size());
    std::string upper = column.title.substr(0, at);
    column.title.erase(0, at);
    upper.erase(upper.find_last_not_of(' ') + 1);
    above.push_back(std::move(upper));
  }
  return above;
}

Indices all_of(const std::vector<Column>& columns) {
  Indices all(columns.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

}  // namespace

std::string table(const std::vector<Column>& given_columns,
                  const std::vector<std::vector<std::string>>& given_rows, int width) {
  const std::vector<Column> columns = visible_titles(given_columns);
  const std::vector<TextCells> rows = visible_rows(given_rows);
  return text_of(columns, rows, all_of(columns), widths_of(columns, rows), width);
}

FittedTable fitted_table(const std::vector<Column>& given_columns,
                         const std::vector<std::vector<std::string>>& given_rows, int width) {
  std::vector<Column> columns = visible_titles(given_columns);
  const std::vector<Column> whole = columns;
  const std::vector<TextCells> rows = visible_rows(given_rows);
  std::vector<int> widths = widths_of(columns, rows);
  Indices shown = all_of(columns);
  FittedTable fitted;
  TextCells above;
  if (width > 0 && width_of(shown, widths) > width) {
    above = broken_titles(columns);
    widths = widths_of(columns, rows);
    for (std::size_t i = 0; i < above.size(); ++i) {
      widths[i] = std::max(widths[i], columns_of(above[i]));
    }
  }
  while (width > 0 && width_of(shown, widths) > width) {
    const auto dropped = std::max_element(
        shown.begin(), shown.end(),
        [&](std::size_t a, std::size_t b) { return columns[a].drop < columns[b].drop; });
    if (dropped == shown.end() || columns[*dropped].drop <= 0) break;
    shown.erase(dropped);
  }
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (std::find(shown.begin(), shown.end(), i) == shown.end()) {
      fitted.left_out.push_back(whole[i].title);
    }
  }
  fitted.text = text_of(columns, rows, shown, widths, width, above);
  return fitted;
}

std::string percent(double fraction) {
  // No "-0.0": a bubble of no size has no sign.
  const double value = fraction * 100;
  return fmt::format("{:.1f} %", value < 0 && value > -0.05 ? 0.0 : value);
}

std::string bytes_text(Bytes bytes, bool known) { return known ? print(bytes) : "unknown"; }

std::string long_time(Time time) {
  const double seconds = to_seconds(time);
  if (seconds < 7200) return print(time);
  if (seconds < 2 * 86400) return fmt::format("{:.2f} h", seconds / 3600);
  return fmt::format("{:.2f} days", seconds / 86400);
}

}  // namespace stageline
