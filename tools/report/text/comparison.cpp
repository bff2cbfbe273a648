// Writes the table of a comparison.
#include "tools/report/text/comparison.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tools/base/table.hpp"
#include "tools/base/text.hpp"
#include "tools/report/text/comparison_columns.hpp"

namespace stageline::report {
namespace {

// As names are compared: in lower case, with blanks.
std::string plain(std::string_view title) {
  std::string text;
  for (const char c : title) {
    text +=
        c == '-' || c == '_' ? ' ' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

std::string known_title(const std::string& name) {
  std::vector<std::string> known = comparison_columns();
  for (const std::string& title : known) {
    if (plain(title) == plain(name)) return title;
  }
  throw UsageError(fmt::format("--columns: there is no column \"{}\"{}; they are {}, or all", name,
                               did_you_mean(name, known), fmt::join(known, ", ")));
}

const FigureRow* figure_of_title(const std::string& title) {
  for (const FigureRow* const one : figures_of_columns()) {
    if (one->column.title == title) return one;
  }
  return nullptr;
}

std::vector<const FigureRow*> shown_columns(const std::vector<FigureFacts>& rows,
                                            const ComparisonView& view) {
  std::vector<const FigureRow*> shown;
  if (view.columns.empty()) {
    for (const FigureRow* const one : figures_of_columns()) {
      if (is_shown_unasked(*one, rows, view)) shown.push_back(one);
    }
    return shown;
  }
  const auto add = [&](const std::string& title) {
    const FigureRow* const one = figure_of_title(title);
    if (one == nullptr || std::find(shown.begin(), shown.end(), one) != shown.end()) return;
    if (!view.known_only || is_known(*one, rows)) shown.push_back(one);
  };
  add("schedule");
  if (view.cuts) add("cut");
  if (view.sweep) add("devices");
  for (const std::string& title : view.columns) add(title);
  return shown;
}

std::string rows_left_out(const std::vector<Row>& rows, const RankedRows& order,
                          std::size_t shown) {
  if (shown >= order.rows.size()) return "";
  const std::size_t more = order.rows.size() - shown;
  const auto not_fitting = std::count_if(
      order.rows.begin() + static_cast<std::ptrdiff_t>(shown), order.rows.end(),
      [&](std::size_t i) { return rows[i].outcome && rows[i].outcome->fit == Fit::no; });
  const std::string fit =
      not_fitting == 0 ? ""
      : as_size(not_fitting) == more
          ? fmt::format(", which {} not fit", more == 1 ? "does" : "do")
          : fmt::format(", {} of which {} not fit", not_fitting, not_fitting == 1 ? "does" : "do");
  return fmt::format("… {} more{}: --full\n", more, fit);
}

// The schedule with its recomputation, where several are compared.
std::string cell_in_row(const FigureRow& figure, const FigureFacts& facts, const Row& row,
                        const ComparisonView& view) {
  std::string cell = cell_of(figure, facts);
  if (!view.recomputations || std::string_view(figure.column.title) != "schedule") return cell;
  return fmt::format("{} ({})", cell, own_of_row(row, {false, true}));
}

}  // namespace

std::vector<std::string> comparison_columns() {
  std::vector<std::string> titles;
  for (const FigureRow* const one : figures_of_columns()) titles.emplace_back(one->column.title);
  return titles;
}

std::vector<std::string> comparison_columns_left_out() {
  std::vector<const FigureRow*> columns;
  for (const FigureRow* const one : figures_of_columns()) {
    if (one->column.drop > 0) columns.push_back(one);
  }
  std::sort(columns.begin(), columns.end(),
            [](const FigureRow* a, const FigureRow* b) { return a->column.drop > b->column.drop; });
  std::vector<std::string> titles;
  for (const FigureRow* const one : columns) titles.emplace_back(one->column.title);
  return titles;
}

std::vector<std::string> parse_comparison_columns(const std::string& list) {
  if (plain(list).empty()) {
    throw UsageError(fmt::format("--columns names no column; they are {}, or all",
                                 fmt::join(comparison_columns(), ", ")));
  }
  std::vector<std::string> titles{comparison_columns().front()};
  if (plain(list) == "all") {
    for (const FigureRow* const one : figures_of_columns()) {
      if (!one->column.key) titles.emplace_back(one->column.title);
    }
    return titles;
  }
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t comma = std::min(list.find(',', at), list.size());
    const std::string title = known_title(list.substr(at, comma - at));
    if (std::find(titles.begin(), titles.end(), title) == titles.end()) titles.push_back(title);
    at = comma + 1;
  }
  return titles;
}

std::string comparison_table(const std::vector<Row>& rows, const RankedRows& order,
                             const ComparisonView& view) {
  if (order.rows.empty()) return "";
  const std::vector<FigureFacts> facts = comparison_facts(rows, order.rows, view);
  const std::vector<const FigureRow*> shown = shown_columns(facts, view);
  std::vector<Column> columns;
  for (const FigureRow* const one : shown) columns.push_back(column_of(*one, view));
  const std::size_t top = view.top == 0 ? order.rows.size() : std::min(view.top, order.rows.size());
  std::vector<std::vector<std::string>> cells;
  for (std::size_t k = 0; k < top; ++k) {
    cells.emplace_back();
    for (const FigureRow* const one : shown) {
      cells.back().push_back(cell_in_row(*one, facts[k], rows[order.rows[k]], view));
    }
  }
  const std::string more = rows_left_out(rows, order, top);
  if (!view.columns.empty()) return table(columns, cells, view.width) + more;
  const FittedTable fitted = fitted_table(columns, cells, view.width);
  if (fitted.left_out.empty()) return fitted.text + more;
  return fitted.text + more +
         wrapped(
             fmt::format("… without {}: --full or --columns\n", fmt::join(fitted.left_out, ", ")),
             view.width);
}

Sheet comparison_sheet(const std::vector<Row>& rows, const std::vector<std::size_t>& order,
                       const ComparisonView& view) {
  Sheet sheet;
  const std::vector<FigureFacts> facts = comparison_facts(rows, order, view);
  sheet.rows.resize(facts.size());
  const std::vector<const FigureRow*> shown = shown_columns(facts, view);
  for (const FigureRow* const one : figures_of_columns()) {
    if (!is_known(*one, facts)) continue;
    const bool is_shown = std::find(shown.begin(), shown.end(), one) != shown.end();
    const Column column = column_of(*one, view);
    sheet.columns.push_back({column.title, one->definition, column.left, is_shown});
    for (std::size_t i = 0; i < facts.size(); ++i) {
      sheet.rows[i].push_back(
          {cell_in_row(*one, facts[i], rows[order[i]], view), exact_of(*one, facts[i])});
    }
  }
  return sheet;
}

}  // namespace stageline::report
