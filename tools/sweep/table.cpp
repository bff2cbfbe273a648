// Reads tables of rows.
#include "tools/sweep/table.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "sim/base/errors.hpp"
#include "sim/base/numbers.hpp"
#include "tools/base/csv_cell.hpp"
#include "tools/report/figure_table.hpp"
#include "tools/sweep/rows.hpp"

namespace stageline {
namespace {

template <class Number>
bool all_are(const std::vector<std::string>& values) {
  return std::all_of(values.begin(), values.end(), [](const std::string& value) {
    return parse_number<Number>(value).has_value();
  });
}

CellForm form_of(const SweepAxis& axis) {
  if (axis.kind == SweepAxis::Kind::list) {
    if (all_are<std::int64_t>(axis.values)) return CellForm::whole;
    return all_are<double>(axis.values) ? CellForm::real : CellForm::text;
  }
  if (!axis.unit.empty()) return CellForm::text;
  return axis.whole ? CellForm::whole : CellForm::real;
}

// Beside the figures there are times under scenarios, and why a row has no result.
CellForm form_of_result(const std::string& name) {
  for (const report::FigureRow& figure : report::all_figures()) {
    if (figure.sweep != name) continue;
    if (figure.kind == report::FigureKind::name) return CellForm::text;
    const bool real =
        figure.kind == report::FigureKind::share || figure.kind == report::FigureKind::number;
    return real ? CellForm::real : CellForm::whole;
  }
  return name == "why_not" ? CellForm::text : CellForm::whole;
}

// Takes cells off the front of a text.
class CsvCells {
 public:
  explicit CsvCells(std::string_view text) : rest_(text) {}

  bool done() const { return rest_.empty(); }
  /// With whether it is the last one of its line; nothing where the text is no table.
  std::optional<std::string> take(bool last) {
    std::string cell;
    if (rest_.starts_with('"')) {
      if (!take_quoted(cell)) return std::nullopt;
    } else {
      const std::size_t end = std::min(rest_.find_first_of(",\n"), rest_.size());
      cell = rest_.substr(0, end);
      rest_.remove_prefix(end);
    }
    if (!rest_.starts_with(last ? '\n' : ',')) return std::nullopt;
    rest_.remove_prefix(1);
    return cell;
  }

 private:
  bool take_quoted(std::string& cell) {
    rest_.remove_prefix(1);
    while (true) {
      const std::size_t quote = rest_.find('"');
      if (quote == std::string_view::npos) return false;
      cell += rest_.substr(0, quote);
      rest_.remove_prefix(quote + 1);
      if (!rest_.starts_with('"')) return true;
      cell += '"';
      rest_.remove_prefix(1);
    }
  }

  std::string_view rest_;
};

template <class Number>
bool add_number(std::vector<Number>& values, const std::string& cell) {
  const std::optional<Number> value = parse_number<Number>(cell);
  values.push_back(value.value_or(Number{}));
  return value || cell.empty();
}

bool add(SweepColumn& column, std::string cell) {
  column.there.push_back(cell.empty() ? 0 : 1);
  if (column.form == CellForm::whole) return add_number(column.whole, cell);
  if (column.form == CellForm::real) return add_number(column.real, cell);
  column.text.push_back(text_of_cell(std::move(cell)));
  return true;
}

}  // namespace

std::vector<SweepColumn> typed_columns(const SweepSpec& spec) {
  std::vector<SweepColumn> columns;
  for (const std::string& name : sweep_columns(spec)) {
    const std::size_t at = columns.size();
    const bool axis = at >= 1 && at <= spec.axes.size();
    columns.push_back({name, axis ? form_of(spec.axes[at - 1]) : form_of_result(name)});
  }
  return columns;
}

std::vector<SweepColumn> read_table(const SweepSpec& spec, std::string_view csv,
                                    const std::string& name) {
  const UsageError damaged(fmt::format("{} is no table of this sweep", name));
  const std::string header = csv_header(spec);
  if (!csv.starts_with(header)) throw damaged;
  CsvCells cells(csv.substr(header.size()));
  std::vector<SweepColumn> columns = typed_columns(spec);
  while (!cells.done()) {
    for (SweepColumn& column : columns) {
      std::optional<std::string> cell = cells.take(&column == &columns.back());
      if (!cell || !add(column, *std::move(cell))) throw damaged;
    }
  }
  return columns;
}

}  // namespace stageline
