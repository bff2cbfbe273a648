// Spells what a comparison says of a row.
#include "tools/report/text/comparison_columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace stageline::report {
namespace {

bool has_title(const FigureRow& figure, std::string_view title) {
  return figure.column.title == title;
}

struct CellWords {
  const FigureRow& figure;

  std::string operator()(std::monostate) const { return figure.column.unknown; }
  std::string operator()(bool yes) const { return yes ? "yes" : "no"; }
  std::string operator()(std::int64_t count) const { return fmt::format("{}", count); }
  std::string operator()(double number) const {
    return figure.column.words == nullptr ? percent(number) : figure.column.words(number);
  }
  std::string operator()(Time time) const { return print(time); }
  std::string operator()(Bytes bytes) const { return print(bytes); }
  std::string operator()(const std::string& name) const { return name; }
};

struct ExactFigure {
  std::string unit;

  CellFigure operator()(std::int64_t count) const { return count_figure(count); }
  CellFigure operator()(double number) const { return number_figure(number, unit); }
  CellFigure operator()(Time time) const { return time_figure(time); }
  CellFigure operator()(Bytes bytes) const { return bytes_figure(bytes); }
  template <class Words>
  CellFigure operator()(const Words&) const {  // its cell says all
    return {};
  }
};

}  // namespace

std::vector<FigureFacts> comparison_facts(const std::vector<Row>& rows,
                                          const std::vector<std::size_t>& order,
                                          const ComparisonView& view) {
  std::vector<FigureFacts> facts;
  for (const std::size_t i : order) {
    facts.push_back(facts_of(rows[i]));
    facts.back().by = view.by;
    if (view.uncertain != nullptr) facts.back().uncertain = &(*view.uncertain)[i];
  }
  return facts;
}

std::string cell_of(const FigureRow& figure, const FigureFacts& row) {
  if (figure.column.cell != nullptr) return figure.column.cell(row);
  return std::visit(CellWords{figure}, figure.value(row));
}

CellFigure exact_of(const FigureRow& figure, const FigureFacts& row) {
  return std::visit(ExactFigure{unit_of(figure, row)}, figure.value(row));
}

Column column_of(const FigureRow& figure, const ComparisonView& view) {
  Column column{figure.column.title, figure.column.left, figure.column.drop, figure.column.key};
  if (has_title(figure, "p95") && view.by.measure == RankBy::Measure::quantile) {
    column.title = view.by.share ? name(view.by) : "mean";
  }
  return column;
}

bool is_shown_unasked(const FigureRow& figure, const std::vector<FigureFacts>& rows,
                      const ComparisonView& view) {
  if (has_title(figure, "devices")) return view.sweep;
  if (has_title(figure, "cut")) return view.cuts;
  return figure.column.matters == nullptr ||
         std::any_of(rows.begin(), rows.end(), figure.column.matters);
}

bool is_known(const FigureRow& figure, const std::vector<FigureFacts>& rows) {
  const FigureColumn& column = figure.column;
  if (!column.language && !column.seldom) return true;
  return std::any_of(rows.begin(), rows.end(), [&](const FigureFacts& row) {
    return (!column.language || row.is_language()) && cell_of(figure, row) != unknown_cell;
  });
}

}  // namespace stageline::report
