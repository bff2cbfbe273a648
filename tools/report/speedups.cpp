// Makes the chart of speed-ups by number of devices.
#include "tools/report/speedups.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "tools/base/provenance.hpp"
#include "tools/report/charts/canvas.hpp"
#include "tools/report/text/heading.hpp"
#include "tools/study/evidence/evidence.hpp"

namespace stageline::report {
namespace {

bool is_too_large(const Row& row) { return row.outcome && row.outcome->fit == Fit::no; }

}  // namespace

std::string cuts_of(const std::vector<Row>& rows) {
  std::vector<std::string> cuts;
  for (const Row& row : rows) {
    const std::string& cut = row.asked.cut_asked();
    if (std::find(cuts.begin(), cuts.end(), cut) == cuts.end()) cuts.push_back(cut);
  }
  return fmt::format("{}", fmt::join(cuts, cuts_differ(rows) ? " and " : ""));
}

Chart speedup_chart(const Setting& setting, const std::vector<Row>& rows) {
  Chart chart;
  chart.title = "Speed-up over one device · " + setting.model.name;
  chart.x.label = "devices";
  chart.x.whole = true;
  chart.y.label = "speed-up over one device";
  chart.y.unit = "×";
  chart.horizontal = {{1, "one device"}};
  const RowDifferences differences = differences_of(rows);
  for (const Row& row : rows) {
    const std::string name =
        differences.any() ? fmt::format("{} ({})", row.schedule, own_of_row(row, differences))
                          : row.schedule;
    auto series = std::find_if(chart.series.begin(), chart.series.end(),
                               [&](const Series& known) { return known.name == name; });
    if (series == chart.series.end()) {
      chart.series.push_back({name, SeriesStyle::line, {}});
      series = chart.series.end() - 1;
    }
    ChartPoint point{static_cast<double>(row.asked.device_count()), std::nullopt, false};
    if (row.outcome) {
      point.y = row.outcome->speedup;
      point.open = row.outcome->fit == Fit::no;
    }
    series->points.push_back(point);
  }
  return chart;
}

Chart step_chart(const Setting& setting, const std::vector<Row>& rows) {
  std::vector<const Row*> order;
  for (const Row& row : rows) {
    if (row.outcome && row.outcome->step_time > Time{}) order.push_back(&row);
  }
  std::stable_sort(order.begin(), order.end(), [](const Row* a, const Row* b) {
    return a->outcome->step_time < b->outcome->step_time;
  });
  const bool seconds = !order.empty() && to_seconds(order.back()->outcome->step_time) >= 1;
  const double scale = seconds ? 1 : 1e3;
  Chart chart;
  chart.title = "Step · " + setting.model.name;
  chart.x.label = "place";
  chart.x.whole = true;
  chart.y.label = "step";
  chart.y.unit = seconds ? "s" : "ms";
  Series steps{"step", SeriesStyle::points, {}};
  const RowDifferences differences = differences_of(rows);
  bool whiskers = false;
  for (const Row* const row : order) {
    ChartPoint point;
    point.x = static_cast<double>(steps.points.size() + 1);
    point.y = to_seconds(row->outcome->step_time) * scale;
    point.open = row->outcome->fit == Fit::no;
    point.label = row_name(*row, differences);
    const auto range = intervals_of(row->asked.model(), row->asked.ranked()).step;
    if (range) {
      point.y_range = ChartRange{*point.y * range->low, *point.y * range->high};
      whiskers = true;
    }
    steps.points.push_back(std::move(point));
  }
  chart.series.push_back(std::move(steps));
  if (whiskers) chart.footnotes.emplace_back(whisker_words);
  return chart;
}

Chart with_problem(Chart chart, const Setting& setting, const std::vector<Row>& rows,
                   const std::string& link) {
  // The default of 4 micro-batches per device differs from row to row.
  const auto [least, most] = std::minmax_element(
      rows.begin(), rows.end(),
      [](const Row& a, const Row& b) { return a.asked.microbatches() < b.asked.microbatches(); });
  const int low = least->asked.microbatches();
  const int high = most->asked.microbatches();
  const Model& model = setting.model;
  const std::string count =
      low == high ? fmt::format("{}", low) : fmt::format("{} to {}", low, high);
  chart.subtitle =
      fmt::format("{} layers · {} micro-batches{} a step · cut: {}", model.layers.size(), count,
                  of_samples(model.batch, model.sample), cuts_of(rows));
  if (std::any_of(rows.begin(), rows.end(), is_too_large)) {
    chart.footnotes.emplace_back("Hollow markers: does not fit into the memory of the devices.");
  }
  if (low < high) {
    chart.footnotes.push_back("Micro-batches a step grow with the devices, four to each.");
  }
  chart.footnotes.push_back(
      fmt::format("Costs of {}: {}.", model.name, described(model.provenance)));
  const ClusterChoice& cluster = setting.cluster;
  if (cluster.fixed) {
    chart.footnotes.push_back(
        fmt::format("Cluster: the first devices of {}.", cluster.fixed->name));
  } else if (!link.empty()) {
    chart.footnotes.push_back(fmt::format("Cluster: equal devices with ports of {}.", link));
  }
  for (const std::string& note : notes(setting)) {
    chart.footnotes.push_back("Note: " + note + (!note.empty() && note.back() == '.' ? "" : "."));
  }
  return chart;
}

void add_ideal(Chart& chart) {
  constexpr double headroom = 1.5;  // of the highest point
  constexpr std::size_t grey = 7;   // charts/page.cpp
  double highest = 0;
  std::vector<double> counts;
  for (const Series& series : chart.series) {
    for (const ChartPoint& point : series.points) {
      counts.push_back(point.x);
      highest = std::max(highest, point.y.value_or(0));
    }
  }
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  Series ideal{"ideal", SeriesStyle::dashed, {}, grey};
  ideal.few_markers = true;
  for (const double count : counts) {
    if (count <= headroom * highest) ideal.points.push_back({count, count, false});
  }
  if (ideal.points.size() > 1 && chart.series.size() < letters)
    chart.series.push_back(std::move(ideal));
}

}  // namespace stageline::report
