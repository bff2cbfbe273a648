// Writes the table of a comparison.
#include "tools/report/text/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "sim/errors.hpp"
#include "sim/index.hpp"
#include "tools/base/table.hpp"
#include "tools/base/text.hpp"
#include "tools/study/recompute.hpp"

namespace stageline {
namespace {

std::string fit_text(const Outcome& outcome) {
  switch (outcome.fit) {
    case Fit::yes:
      return "yes";
    case Fit::no:
      return "NO";
    case Fit::unknown:
      return "unknown";
  }
  return "";
}

bool takes_time(const Outcome& outcome) { return outcome.step_time > Time{}; }

std::string throughput_text(const Outcome& outcome) {
  return takes_time(outcome) ? fmt::format("{:.5g} {}", outcome.throughput, outcome.throughput_unit)
                             : "–";
}

std::string peak_text(const Outcome& outcome) {
  return bytes_text(nth(outcome.memory.device, outcome.peak_device()).peak, outcome.bytes_known());
}

std::string staleness_text(const Outcome& outcome) {
  return fmt::format("{:g}{}", outcome.staleness_max(), outcome.consistent() ? "" : " F≠B");
}

// The columns. `drop` decides which are left out where a line is short: what follows from others or
// seldom differs goes first.
struct ComparisonColumn {
  Column column;
  std::string (*cell)(const Outcome&);
  bool (*matters)(const Outcome&) = nullptr;  // shown unasked where any row does; null: always
};

const std::vector<ComparisonColumn>& all_columns() {
  static const std::vector<ComparisonColumn> columns{
      {{"schedule", true, 0, true}, [](const Outcome& one) { return one.schedule; }},
      {{"devices", false, 0, true},
       [](const Outcome& one) { return fmt::format("{}", one.devices); }},
      {{"step"}, [](const Outcome& one) { return print(one.step_time); }},
      {{"throughput", false, 7}, throughput_text},
      {{"speed-up", false, 2},
       [](const Outcome& one) {
         return takes_time(one) ? fmt::format("{:.2f}×", one.speedup) : std::string("–");
       }},
      {{"bubble", false, 5}, [](const Outcome& one) { return percent(one.bubble_fraction); }},
      {{"recompute", false, 4},
       [](const Outcome& one) { return percent(recompute_fraction(one)); },
       [](const Outcome& one) { return recompute_fraction(one) > 0; }},
      {{"exposed comm", false, 8},
       [](const Outcome& one) { return percent(one.exposed_communication); }},
      {{"peak memory", false, 1}, peak_text},
      {{"on", true, 9},
       [](const Outcome& one) {
         return one.bytes_known() ? nth(one.program.devices, one.peak_device()) : std::string("–");
       }},
      {{"versions", false, 6},
       [](const Outcome& one) { return fmt::format("{}", one.versions_peak()); }},
      {{"staleness", false, 3}, staleness_text},
      {{"fits", true}, fit_text},
  };
  return columns;
}

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

bool is_shown_unasked(const ComparisonColumn& column, const std::vector<Row>& rows,
                      const RankedRows& order, const ComparisonView& view) {
  if (column.column.title == "devices") return view.sweep;
  return column.matters == nullptr ||
         std::any_of(order.rows.begin(), order.rows.end(),
                     [&](std::size_t i) { return column.matters(*rows[i].outcome); });
}

std::vector<ComparisonColumn> shown_columns(const std::vector<Row>& rows, const RankedRows& order,
                                            const ComparisonView& view) {
  std::vector<ComparisonColumn> shown;
  if (view.columns.empty()) {
    for (const ComparisonColumn& one : all_columns()) {
      if (is_shown_unasked(one, rows, order, view)) shown.push_back(one);
    }
    return shown;
  }
  const auto add = [&](const std::string& title) {
    const auto at =
        std::find_if(all_columns().begin(), all_columns().end(),
                     [&](const ComparisonColumn& one) { return one.column.title == title; });
    const bool there = std::any_of(shown.begin(), shown.end(), [&](const ComparisonColumn& one) {
      return one.column.title == title;
    });
    if (at != all_columns().end() && !there) shown.push_back(*at);
  };
  add("schedule");
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

}  // namespace

std::vector<std::string> comparison_columns() {
  std::vector<std::string> titles;
  for (const ComparisonColumn& one : all_columns()) titles.push_back(one.column.title);
  return titles;
}

std::vector<std::string> comparison_columns_left_out() {
  std::vector<Column> columns;
  for (const ComparisonColumn& one : all_columns()) {
    if (one.column.drop > 0) columns.push_back(one.column);
  }
  std::sort(columns.begin(), columns.end(),
            [](const Column& a, const Column& b) { return a.drop > b.drop; });
  std::vector<std::string> titles;
  for (const Column& column : columns) titles.push_back(column.title);
  return titles;
}

std::vector<std::string> parse_comparison_columns(const std::string& list) {
  if (plain(list).empty()) {
    throw UsageError(fmt::format("--columns names no column; they are {}, or all",
                                 fmt::join(comparison_columns(), ", ")));
  }
  std::vector<std::string> titles{comparison_columns().front()};
  if (plain(list) == "all") {
    for (const ComparisonColumn& one : all_columns()) {
      if (!one.column.key) titles.push_back(one.column.title);
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
  const std::vector<ComparisonColumn> shown = shown_columns(rows, order, view);
  std::vector<Column> columns;
  for (const ComparisonColumn& one : shown) columns.push_back(one.column);
  const std::size_t top = view.top == 0 ? order.rows.size() : std::min(view.top, order.rows.size());
  std::vector<std::vector<std::string>> cells;
  for (std::size_t k = 0; k < top; ++k) {
    cells.emplace_back();
    for (const ComparisonColumn& one : shown) {
      cells.back().push_back(one.cell(*rows[order.rows[k]].outcome));
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

}  // namespace stageline
