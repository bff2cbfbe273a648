// What a comparison says of a row.
#include "tools/report/text/comparison_columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/base/index.hpp"
#include "tools/base/amounts.hpp"

namespace stageline {
namespace {

using Facts = ComparisonFacts;

constexpr const char* unknown = "–";
constexpr double usual_quantile = 0.95;

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
                             : unknown;
}

CellFigure throughput_figure(const Facts& row) {
  const Outcome& outcome = *row.outcome;
  if (!takes_time(outcome)) return {};
  return number_figure(outcome.throughput, outcome.throughput_unit);
}

// Of the device that peaks highest.
const DeviceMemory& peak_memory(const Facts& row) {
  return nth(row.outcome->memory.device, row.outcome->peak_device());
}

std::string staleness_text(const Facts& row) {
  const Outcome& outcome = *row.outcome;
  return fmt::format("{:g}{}", outcome.staleness_max(), outcome.consistent() ? "" : " F≠B");
}

template <class Text>
std::string text_or_unknown(const std::optional<double>& value, Text&& text) {
  return value ? text(*value) : unknown;
}

// Empty without scenarios.
std::optional<Time> quantile_of(const Facts& row) {
  if (row.uncertain == nullptr || !row.uncertain->steps) return std::nullopt;
  const bool asked = row.by.measure == RankBy::Measure::quantile;
  return at_quantile(*row.uncertain, asked ? row.by.share : usual_quantile);
}

std::string quantile_text(const Facts& row) {
  const std::optional<Time> time = quantile_of(row);
  return time ? print(*time) : unknown;
}

// Rows that do not fit are no rivals.
std::optional<double> best_of(const Facts& row) {
  const bool rival =
      row.uncertain != nullptr && row.uncertain->steps && row.outcome->fit != Fit::no;
  return rival ? std::optional(row.uncertain->best) : std::nullopt;
}

bool has_scenarios(const Facts& row) { return row.uncertain != nullptr; }

bool by_price(const Facts& row) {
  return row.by.measure == RankBy::Measure::energy || row.by.measure == RankBy::Measure::cost;
}

// Of the training that is asked for, else of a step.
std::optional<double> cost_of(const Facts& row) {
  return row.rates.device_hours ? row.rates.dollars : row.energy.dollars;
}

std::string cut_text(const Facts& row) { return row.cut; }

bool without_tokens(const Facts& row) { return !row.tokens; }
bool with_tokens(const Facts& row) { return row.tokens; }

// In the units of those who train language models.
const std::vector<ComparisonColumn>& language_columns() {
  static const std::vector<ComparisonColumn> columns{
      {{"tokens/s", false, 55},
       "Tokens of a step over its time, all devices together",
       [](const Facts& row) { return text_or_unknown(row.rates.tokens_per_second, count_text); },
       [](const Facts& row) { return number_figure(row.rates.tokens_per_second, "tokens/s"); },
       with_tokens,
       true},
      {{"tokens/s/GPU", false, 25},
       "Tokens of a step over its time and the number of devices",
       [](const Facts& row) {
         return text_or_unknown(row.rates.tokens_per_device_second, count_text);
       },
       [](const Facts& row) {
         return number_figure(row.rates.tokens_per_device_second, "tokens/s/GPU");
       },
       with_tokens,
       true},
      {{"TFLOP/s/GPU", false, 75},
       "Model FLOPs of a step (nothing recomputed) over its time and the number of devices",
       [](const Facts& row) {
         return text_or_unknown(row.rates.flops_per_device_second, [](double flops) {
           return fmt::format("{:.{}f}", flops / 1e12, flops < 1e13 ? 3 : 1);
         });
       },
       [](const Facts& row) {
         return number_figure(row.rates.flops_per_device_second, "FLOP/s/GPU");
       },
       [](const Facts& row) { return row.rates.flops_per_device_second.has_value(); },
       true},
      {{"MFU", false, 5},
       "Model FLOPs utilization: model FLOPs of a step over what the peaks of all devices allow "
       "in that time",
       [](const Facts& row) { return text_or_unknown(row.rates.mfu, percent); },
       [](const Facts& row) { return number_figure(row.rates.mfu); },
       [](const Facts& row) { return row.rates.mfu.has_value(); },
       true},
      {{"HFU", false, 65},
       "Hardware FLOPs utilization: as MFU, with the FLOPs that recomputation repeats",
       [](const Facts& row) { return text_or_unknown(row.rates.hfu, percent); },
       [](const Facts& row) { return number_figure(row.rates.hfu); },
       [](const Facts& row) { return row.rates.hfu > row.rates.mfu; },
       true},
      {{"GPU-hours", false, 35},
       "Hours of all devices together for the tokens of --tokens",
       [](const Facts& row) { return text_or_unknown(row.rates.device_hours, count_text); },
       [](const Facts& row) { return number_figure(row.rates.device_hours, "h"); },
       [](const Facts& row) { return row.rates.device_hours.has_value(); },
       true},
  };
  return columns;
}

std::vector<ComparisonColumn> joined_columns() {
  std::vector<ComparisonColumn> columns{
      {{"schedule", true, 0, true},
       "In what order each device runs its forwards and backwards; the name is what --schedule "
       "takes",
       [](const Facts& row) { return row.outcome->schedule; }},
      {{"cut", true, 0, true},
       "How the layers are cut into stages; the name is what --partition takes",
       cut_text},
      {{"devices", false, 0, true},
       "Devices of the run",
       [](const Facts& row) { return fmt::format("{}", row.outcome->devices); },
       [](const Facts& row) { return count_figure(row.outcome->devices); }},
      {{"step"},
       "Steady state: from the end of one step to the end of the next",
       [](const Facts& row) { return print(row.outcome->step_time); },
       [](const Facts& row) { return time_figure(row.outcome->step_time); }},
      {{"p95", false, 12},
       "Quantile of the step over all scenarios",
       quantile_text,
       [](const Facts& row) {
         const std::optional<Time> time = quantile_of(row);
         return time ? time_figure(*time) : CellFigure{};
       },
       has_scenarios,
       false,
       true},
      {{"best", false, 14},
       "Share of the scenarios in which the schedule is the fastest that fits",
       [](const Facts& row) { return text_or_unknown(best_of(row), percent); },
       [](const Facts& row) { return number_figure(best_of(row)); },
       has_scenarios,
       false,
       true},
      {{"cost", false, 15},
       "Hours of all devices at their price: of the training of --tokens, else of a step",
       [](const Facts& row) { return text_or_unknown(cost_of(row), dollars_text); },
       [](const Facts& row) { return number_figure(cost_of(row), "US dollars"); },
       [](const Facts& row) { return row.rates.dollars || by_price(row); },
       false,
       true},
      {{"energy", false, 16},
       "Of a step: busy and idle time of all devices at their power; hosts, switches and cooling "
       "are not counted",
       [](const Facts& row) { return text_or_unknown(row.energy.joules, joules_text); },
       [](const Facts& row) { return number_figure(row.energy.joules, "J"); },
       by_price,
       false,
       true},
      {{"throughput", false, 70},
       "Samples of a step over its time, all devices together",
       throughput_text,
       throughput_figure,
       without_tokens},
      {{"speed-up", false, 20},
       "Over one device that does the same step, updates included; with tp or cp over one rank, "
       "whose collectives do not count",
       [](const Facts& row) {
         return takes_time(*row.outcome) ? fmt::format("{:.2f}×", row.outcome->speedup)
                                         : std::string(unknown);
       },
       [](const Facts& row) {
         return takes_time(*row.outcome) ? number_figure(row.outcome->speedup) : CellFigure{};
       },
       without_tokens},
      {{"bubble", false, 50},
       "1 − busy time of all devices / (devices × step): the share of their time in which they "
       "idle",
       [](const Facts& row) { return percent(row.outcome->bubble_fraction); },
       [](const Facts& row) { return number_figure(row.outcome->bubble_fraction); }},
      {{"recompute", false, 40},
       "Share of the devices' time that runs forwards again; no part of the bubble",
       [](const Facts& row) { return percent(row.outcome->figures.recompute); },
       [](const Facts& row) { return number_figure(row.outcome->figures.recompute); },
       [](const Facts& row) { return row.outcome->figures.recompute > 0; }},
      {{"blocking", false, 45},
       "Share of the devices' time in collectives inside ops: of tp, cp and ep, and what ZeRO exchanges",
       [](const Facts& row) { return percent(row.outcome->figures.blocking); },
       [](const Facts& row) { return number_figure(row.outcome->figures.blocking); },
       [](const Facts& row) { return row.outcome->figures.blocking > 0; }},
      {{"exposed comm", false, 80},
       "What messages and reductions beside compute add to a step: 1 − step with these free / step",
       [](const Facts& row) { return percent(row.outcome->exposed_communication); },
       [](const Facts& row) { return number_figure(row.outcome->exposed_communication); }},
      {{"peak memory", false, 10},
       "The highest peak of any device; where it does not fit, of the device that lacks most",
       [](const Facts& row) {
         return bytes_text(peak_memory(row).peak, row.outcome->bytes_known());
       },
       [](const Facts& row) {
         return bytes_figure(peak_memory(row).peak, row.outcome->bytes_known());
       }},
      {{"on", true, 90},
       "The device with that peak",
       [](const Facts& row) {
         const Outcome& one = *row.outcome;
         return one.bytes_known() ? nth(one.program.devices, one.peak_device()) : unknown;
       }},
      {{"activations", false, 85},
       "Stashes on that device at its peak",
       [](const Facts& row) {
         return bytes_text(nth(peak_memory(row).at_peak, MemoryKind::stash),
                           row.outcome->bytes_known());
       },
       [](const Facts& row) {
         return bytes_figure(nth(peak_memory(row).at_peak, MemoryKind::stash),
                             row.outcome->bytes_known());
       },
       with_tokens,
       true},
      {{"versions", false, 60},
       "Most versions of its weights that any stage holds at a time",
       [](const Facts& row) { return fmt::format("{}", row.outcome->versions_peak()); },
       [](const Facts& row) { return count_figure(row.outcome->versions_peak()); },
       [](const Facts& row) { return !row.tokens || row.outcome->versions_peak() > 1; }},
      {{"staleness", false, 30},
       "Updates between the weights that a micro-batch reads and those that its gradient changes, "
       "at most; F≠B: a backward reads other weights than its forward",
       staleness_text,
       [](const Facts& row) { return number_figure(row.outcome->staleness_max(), "updates"); },
       [](const Facts& row) {
         return !row.tokens || row.outcome->staleness_max() > 0 || !row.outcome->consistent();
       }},
      {{"fits", true},
       "Whether every peak is within the memory of its device; unknown without --memory or "
       "--cluster",
       fit_text},
  };
  const auto step = std::find_if(columns.begin(), columns.end(), [](const ComparisonColumn& one) {
    return one.column.title == "step";
  });
  columns.insert(std::next(step), language_columns().begin(), language_columns().end());
  return columns;
}

}  // namespace

const std::vector<ComparisonColumn>& all_comparison_columns() {
  static const std::vector<ComparisonColumn> columns = joined_columns();
  return columns;
}

std::vector<ComparisonFacts> comparison_facts(const std::vector<Row>& rows,
                                              const std::vector<std::size_t>& order,
                                              const ComparisonView& view) {
  std::vector<ComparisonFacts> facts;
  for (const std::size_t i : order) {
    const Row& row = rows[i];
    facts.push_back({&*row.outcome, training_rates(row.asked, *row.outcome, view.budget),
                     row.asked.model().tokens > 0, row.asked.cut_asked(),
                     step_energy(row.asked, *row.outcome, view.budget.price_per_hour), view.by,
                     view.uncertain == nullptr ? nullptr : &(*view.uncertain)[i]});
  }
  return facts;
}

std::string comparison_title(const ComparisonColumn& column, const ComparisonView& view) {
  if (column.cell == quantile_text && view.by.measure == RankBy::Measure::quantile) {
    return view.by.share ? name(view.by) : "mean";
  }
  return column.column.title;
}

bool is_shown_unasked(const ComparisonColumn& column, const std::vector<ComparisonFacts>& rows,
                      const ComparisonView& view) {
  if (column.column.title == "devices") return view.sweep;
  if (column.column.title == "cut") return view.cuts;
  return column.matters == nullptr || std::any_of(rows.begin(), rows.end(), column.matters);
}

bool is_known(const ComparisonColumn& column, const std::vector<ComparisonFacts>& rows) {
  if (!column.language && !column.seldom) return true;
  return std::any_of(rows.begin(), rows.end(), [&](const ComparisonFacts& row) {
    return (!column.language || row.is_language()) && column.cell(row) != unknown;
  });
}

}  // namespace stageline
