#include "tools/report/text/uncertainty.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "tools/base/table.hpp"
#include "tools/base/text.hpp"

namespace stageline::report {
namespace {

constexpr std::size_t curve_points = 101;  // of a distribution's curve

std::string critical_of(const ScenarioSteps& steps) {
  if (steps.critical.empty()) return "–";
  const CriticalShare& most = steps.critical.front();
  return fmt::format("{} {:.0f} %", most.name, most.share * 100);
}

bool memory_known(const std::vector<UncertainRow>& rows) {
  return std::any_of(rows.begin(), rows.end(), [](const UncertainRow& row) {
    return row.row.outcome && row.row.outcome->fit != Fit::unknown;
  });
}

std::string_view fit_of(const UncertainRow& row) {
  return row.fits() ? name(row.row.outcome->fit) : "NO";
}

// "95 % of the steps take at most 12.3 ms", or the mean.
std::string steps_take(const UncertainRow& row, std::optional<double> share, Time& time) {
  time = row.distribution.mean;
  if (!share) return fmt::format("a step takes {} on average", print(time));
  std::vector<Time> sorted = row.steps->step;
  std::sort(sorted.begin(), sorted.end());
  time = quantile(sorted, *share);
  return fmt::format("{:g} % of the steps take at most {}", *share * 100, print(time));
}

// "p50" at the curve's 50 %, "p95" at its 95 %; no label elsewhere.
std::string quantile_label(std::size_t point) {
  return point == 50 || point == 95 ? fmt::format("p{}", point) : "";
}

// From 0 to 100 %, through the step without variation, which is hollow.
template <class ToUnit>
Series distribution_curve(const UncertainRow& row, const std::vector<Time>& sorted,
                          const ToUnit& in_unit) {
  Series series{row.row.schedule, SeriesStyle::line, {}};
  series.few_markers = true;
  for (std::size_t point = 0; point < curve_points; ++point) {
    const double share = static_cast<double>(point) / (curve_points - 1);
    series.points.push_back(
        {in_unit(quantile(sorted, share)), share * 100, false, quantile_label(point)});
  }
  const Time nominal = row.steps->nominal;
  const auto above = std::upper_bound(sorted.begin(), sorted.end(), nominal);
  const double share =
      100.0 * static_cast<double>(above - sorted.begin()) / static_cast<double>(sorted.size());
  const double x = in_unit(nominal);
  const auto place = std::find_if(series.points.begin(), series.points.end(),
                                  [&](const ChartPoint& point) { return point.x > x; });
  series.points.insert(place, {x, share, true, "nominal"});
  return series;
}

}  // namespace

Sheet uncertainty_sheet(const std::vector<UncertainRow>& rows,
                        const std::vector<std::size_t>& order) {
  Sheet sheet{{{"schedule", "In what order each device runs its forwards and backwards", true},
               {"nominal", "The step without any perturbation"},
               {"mean", "Mean step over the scenarios"},
               {"loss", "Mean over nominal step, less 1"},
               {"p5", "5 % of the steps take at most so long"},
               {"p50", "The median step"},
               {"p95", "95 % of the steps take at most so long"},
               {"p99", "99 % of the steps take at most so long"},
               {"best",
                "Share of the scenarios in which the schedule has the highest throughput of those "
                "that fit"},
               {"critical",
                "The device whose ops, or the messages that, have the largest share of "
                "the critical path",
                true}},
              {}};
  const bool with_fit = memory_known(rows);
  if (with_fit) {
    sheet.columns.insert(std::prev(sheet.columns.end()),
                         {"fits", "Whether every peak is within the memory of its device", true});
  }
  for (const std::size_t i : order) {
    const UncertainRow& row = rows[i];
    const Distribution& d = row.distribution;
    const auto time = [](Time one) { return SheetCell{print(one), time_figure(one)}; };
    sheet.rows.push_back({{row.row.schedule, {}},
                          time(row.steps->nominal),
                          time(d.mean),
                          {signed_share(row.loss()), number_figure(row.loss())},
                          time(d.p5),
                          time(d.p50),
                          time(d.p95),
                          time(d.p99),
                          {percent(row.best), number_figure(row.best)},
                          {critical_of(*row.steps), {}}});
    if (!with_fit) continue;
    std::vector<SheetCell>& cells = sheet.rows.back();
    cells.insert(std::prev(cells.end()), {std::string(fit_of(row)), {}});
  }
  return sheet;
}

std::string uncertainty_table(const std::vector<UncertainRow>& rows,
                              const std::vector<std::size_t>& order, int width) {
  const Sheet sheet = uncertainty_sheet(rows, order);
  std::vector<Column> columns;
  for (const SheetColumn& column : sheet.columns) {
    columns.push_back({column.title, column.left});
  }
  columns.back().prose = true;
  return table(columns, words_of(sheet), width);
}

std::string uncertainty_sentence(const std::vector<UncertainRow>& rows,
                                 const std::vector<std::size_t>& order,
                                 std::optional<double> share) {
  if (order.empty()) return "";
  const UncertainRow& first = rows[order.front()];
  if (order.size() == 1) {
    Time time{};
    std::string text =
        fmt::format("{}{}: {}", first.row.schedule, first.fits() ? "" : ", which does not fit",
                    steps_take(first, share, time));
    const Time nominal = first.steps->nominal;
    if (nominal == Time{}) return text;
    return text + fmt::format(", {} against the nominal step",
                              signed_share(to_seconds(time) / to_seconds(nominal) - 1));
  }
  const std::string by = share ? fmt::format("p{:g}", *share * 100) : "the mean";
  std::string text =
      fmt::format("{}: least by {}; the fastest in {} of {} scenarios", first.row.schedule, by,
                  percent(first.best), first.steps->step.size());
  if (!first.fits()) text = "none fits into memory; " + text;
  const auto most = std::max_element(
      rows.begin(), rows.end(),
      [](const UncertainRow& a, const UncertainRow& b) { return a.best < b.best; });
  if (most->best > first.best) {
    text += fmt::format(", {} in {}", most->row.schedule, percent(most->best));
  }
  return text;
}

Chart uncertainty_chart(const std::vector<UncertainRow>& rows,
                        const std::vector<std::size_t>& order, std::size_t most) {
  Chart chart;
  chart.x.label = "step";
  Time longest{};
  for (const std::size_t i : order) longest = std::max(longest, rows[i].distribution.p99);
  const bool long_steps = to_seconds(longest) >= 10;
  chart.x.unit = long_steps ? "s" : "ms";
  const double unit = long_steps ? 1 : 1e3;
  chart.key_above = true;  // all curves end at 100 %
  chart.y.label = "share of the steps that take at most so long";
  chart.y.unit = "%";
  chart.y.from = 0;
  chart.y.to = 100;
  for (std::size_t place = 0; place < std::min(most, order.size()); ++place) {
    const UncertainRow& row = rows[order[place]];
    std::vector<Time> sorted = row.steps->step;
    if (sorted.empty()) continue;
    std::sort(sorted.begin(), sorted.end());
    chart.series.push_back(
        distribution_curve(row, sorted, [&](Time time) { return to_seconds(time) * unit; }));
    const Distribution& steps = row.distribution;
    chart.footnotes.push_back(fmt::format("{}: {} without variation, {} in the median, {} at p95.",
                                          row.row.schedule, print(row.row.outcome->step_time),
                                          print(steps.p50), print(steps.p95)));
  }
  return chart;
}

}  // namespace stageline::report
