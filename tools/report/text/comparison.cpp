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
#include "tools/report/text/training.hpp"
#include "tools/study/recompute.hpp"

namespace stageline {
namespace {

// What the cells of a row show.
struct Facts {
  const Outcome* outcome;
  TrainingRates rates;
  bool tokens;  // whether the trace counts tokens
  std::string cut;

  bool is_language() const { return tokens || rates.model_flops; }
};

std::string fit_text(const Facts& row) {
  switch (row.outcome->fit) {
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

std::string throughput_text(const Facts& row) {
  const Outcome& outcome = *row.outcome;
  return takes_time(outcome) ? fmt::format("{:.5g} {}", outcome.throughput, outcome.throughput_unit)
                             : "–";
}

std::string peak_text(const Facts& row) {
  const Outcome& outcome = *row.outcome;
  return bytes_text(nth(outcome.memory.device, outcome.peak_device()).peak, outcome.bytes_known());
}

std::string staleness_text(const Facts& row) {
  const Outcome& outcome = *row.outcome;
  return fmt::format("{:g}{}", outcome.staleness_max(), outcome.consistent() ? "" : " F≠B");
}

// At the peak of the device that peaks highest.
std::string activations_text(const Facts& row) {
  const Outcome& outcome = *row.outcome;
  const DeviceMemory& memory = nth(outcome.memory.device, outcome.peak_device());
  return bytes_text(nth(memory.at_peak, MemoryKind::stash), outcome.bytes_known());
}

constexpr const char* unknown = "–";

template <class Text>
std::string text_or_unknown(const std::optional<double>& value, Text&& text) {
  return value ? text(*value) : unknown;
}

bool without_tokens(const Facts& row) { return !row.tokens; }
bool with_tokens(const Facts& row) { return row.tokens; }

// The columns. `drop` decides which are left out where a line is short: what follows from others or
// seldom differs goes first.
struct ComparisonColumn {
  Column column;
  std::string (*cell)(const Facts&);
  bool (*matters)(const Facts&) = nullptr;  // shown unasked where any row does; null: always
  bool language = false;                    // known of language models alone
};

// In the units of those who train language models.
const std::vector<ComparisonColumn>& language_columns() {
  static const std::vector<ComparisonColumn> columns{
      {{"tokens/s", false, 55},
       [](const Facts& row) { return text_or_unknown(row.rates.tokens_per_second, count_text); },
       with_tokens,
       true},
      {{"tokens/s/GPU", false, 25},
       [](const Facts& row) {
         return text_or_unknown(row.rates.tokens_per_device_second, count_text);
       },
       with_tokens,
       true},
      {{"TFLOP/s/GPU", false, 75},
       [](const Facts& row) {
         return text_or_unknown(row.rates.flops_per_device_second, [](double flops) {
           return fmt::format("{:.{}f}", flops / 1e12, flops < 1e13 ? 3 : 1);
         });
       },
       [](const Facts& row) { return row.rates.flops_per_device_second.has_value(); },
       true},
      {{"MFU", false, 5},
       [](const Facts& row) { return text_or_unknown(row.rates.mfu, percent); },
       [](const Facts& row) { return row.rates.mfu.has_value(); },
       true},
      {{"HFU", false, 65},
       [](const Facts& row) { return text_or_unknown(row.rates.hfu, percent); },
       [](const Facts& row) { return row.rates.hfu > row.rates.mfu; },
       true},
      {{"GPU-hours", false, 35},
       [](const Facts& row) { return text_or_unknown(row.rates.device_hours, count_text); },
       [](const Facts& row) { return row.rates.device_hours.has_value(); },
       true},
      {{"cost", false, 15},
       [](const Facts& row) { return text_or_unknown(row.rates.dollars, dollars_text); },
       [](const Facts& row) { return row.rates.dollars.has_value(); },
       true},
  };
  return columns;
}

std::vector<ComparisonColumn> joined_columns() {
  std::vector<ComparisonColumn> columns{
      {{"schedule", true, 0, true}, [](const Facts& row) { return row.outcome->schedule; }},
      {{"cut", true, 0, true}, [](const Facts& row) { return row.cut; }},
      {{"devices", false, 0, true},
       [](const Facts& row) { return fmt::format("{}", row.outcome->devices); }},
      {{"step"}, [](const Facts& row) { return print(row.outcome->step_time); }},
      {{"throughput", false, 70}, throughput_text, without_tokens},
      {{"speed-up", false, 20},
       [](const Facts& row) {
         return takes_time(*row.outcome) ? fmt::format("{:.2f}×", row.outcome->speedup)
                                         : std::string(unknown);
       },
       without_tokens},
      {{"bubble", false, 50},
       [](const Facts& row) { return percent(row.outcome->bubble_fraction); }},
      {{"recompute", false, 40},
       [](const Facts& row) { return percent(recompute_fraction(*row.outcome)); },
       [](const Facts& row) { return recompute_fraction(*row.outcome) > 0; }},
      {{"exposed comm", false, 80},
       [](const Facts& row) { return percent(row.outcome->exposed_communication); }},
      {{"peak memory", false, 10}, peak_text},
      {{"on", true, 90},
       [](const Facts& row) {
         const Outcome& one = *row.outcome;
         return one.bytes_known() ? nth(one.program.devices, one.peak_device()) : unknown;
       }},
      {{"activations", false, 85}, activations_text, with_tokens, true},
      {{"versions", false, 60},
       [](const Facts& row) { return fmt::format("{}", row.outcome->versions_peak()); },
       [](const Facts& row) { return !row.tokens || row.outcome->versions_peak() > 1; }},
      {{"staleness", false, 30},
       staleness_text,
       [](const Facts& row) {
         return !row.tokens || row.outcome->staleness_max() > 0 || !row.outcome->consistent();
       }},
      {{"fits", true}, fit_text},
  };
  const auto step = std::find_if(columns.begin(), columns.end(), [](const ComparisonColumn& one) {
    return one.column.title == "step";
  });
  columns.insert(std::next(step), language_columns().begin(), language_columns().end());
  return columns;
}

const std::vector<ComparisonColumn>& all_columns() {
  static const std::vector<ComparisonColumn> columns = joined_columns();
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

bool is_shown_unasked(const ComparisonColumn& column, const std::vector<Facts>& rows,
                      const ComparisonView& view) {
  if (column.column.title == "devices") return view.sweep;
  if (column.column.title == "cut") return view.cuts;
  return column.matters == nullptr || std::any_of(rows.begin(), rows.end(), column.matters);
}

bool is_known(const ComparisonColumn& column, const std::vector<Facts>& rows) {
  return !column.language || std::any_of(rows.begin(), rows.end(), [&](const Facts& row) {
    return row.is_language() && column.cell(row) != unknown;
  });
}

std::vector<ComparisonColumn> shown_columns(const std::vector<Facts>& rows,
                                            const ComparisonView& view) {
  std::vector<ComparisonColumn> shown;
  if (view.columns.empty()) {
    for (const ComparisonColumn& one : all_columns()) {
      if (is_shown_unasked(one, rows, view)) shown.push_back(one);
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
    if (at == all_columns().end() || there) return;
    if (!view.known_only || is_known(*at, rows)) shown.push_back(*at);
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
  std::vector<Facts> facts;
  for (const std::size_t i : order.rows) {
    const Row& row = rows[i];
    facts.push_back({&*row.outcome, training_rates(row.asked, *row.outcome, view.budget),
                     row.asked.model.tokens > 0, row.asked.cut_asked()});
  }
  const std::vector<ComparisonColumn> shown = shown_columns(facts, view);
  std::vector<Column> columns;
  for (const ComparisonColumn& one : shown) columns.push_back(one.column);
  const std::size_t top = view.top == 0 ? order.rows.size() : std::min(view.top, order.rows.size());
  std::vector<std::vector<std::string>> cells;
  for (std::size_t k = 0; k < top; ++k) {
    cells.emplace_back();
    for (const ComparisonColumn& one : shown) cells.back().push_back(one.cell(facts[k]));
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
