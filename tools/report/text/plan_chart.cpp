// Draws the front of a plan: peak memory against the step.
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "tools/base/provenance.hpp"
#include "tools/inputs/degrees.hpp"
#include "tools/planner/words.hpp"
#include "tools/report/text/plan.hpp"

namespace stageline::report {
namespace {

constexpr std::size_t most_listed = 12;  // points in the key below the plot
constexpr double most_linear = 20;       // the highest peak over the lowest, on a linear axis
constexpr double far_above = 2.5;        // a limit so many times the highest peak is not drawn
constexpr double giga = 1e9;
constexpr std::size_t most_whiskers = 12;  // of more points the recommended one alone has one

// The limit that all points share; 0: they differ, or one is not known.
double common_limit(const planner::Plan& plan) {
  std::optional<Bytes> limit;
  for (const planner::PlanPoint& point : plan.front) {
    if (!point.verdict.need || (limit && *limit != point.verdict.need->limit)) return 0;
    limit = point.verdict.need->limit;
  }
  return limit ? static_cast<double>(limit->count) / giga : 0;
}

// "3 zb_h1, tp 8 × pp 4, 64 × 1, balanced, recompute full: 7.61 s, 40.1 GB".
std::string described_point(const planner::PlanPoint& point, std::size_t place) {
  const planner::Candidate& candidate = point.candidate;
  const planner::Shape& shape = candidate.shape;
  const std::string divided = zero_words(shape.degrees);
  const std::string zero = divided.empty() ? "" : " with " + divided;
  const std::string size =
      shape.microbatch_size > 0 ? fmt::format(" × {}", shape.microbatch_size) : "";
  std::string text = fmt::format("{} {}, {}{}, {}{} micro-batches, {}", place + 1,
                                 planner::schedule_words(candidate), print(shape.degrees), zero,
                                 shape.microbatches, size, candidate.partition);
  if (!candidate.recomputation.parts.empty()) {
    text += ", recompute " + print(candidate.recomputation);
  }
  return fmt::format("{}: {}, {}", text, print(point.verdict.step), print(point.verdict.fullest()));
}

}  // namespace

Chart plan_chart(const Setting& setting, const planner::PlanRequest& request,
                 const planner::Plan& plan) {
  Chart chart;
  chart.title = "Step and memory · " + setting.model.name;
  chart.subtitle =
      fmt::format("{} {}{} an update · {}", grouped(request.samples),
                  setting.model.sample.empty() ? "sample" : setting.model.sample,
                  request.samples == 1 ? "" : "s", described(setting.model.provenance));
  Time longest{};
  for (const planner::PlanPoint& point : plan.front)
    longest = std::max(longest, point.verdict.step);
  const bool seconds = to_seconds(longest) >= 1;
  chart.x.label = "step";
  chart.x.unit = seconds ? "s" : "ms";
  chart.y.label = "peak memory of the fullest device";
  chart.y.unit = "GB";
  const double scale = seconds ? 1 : 1e3;
  std::map<int, Series> by_devices;
  double highest = 0;
  double lowest = 0;
  bool whiskers = false;
  for (std::size_t i = 0; i < plan.front.size(); ++i) {
    const planner::PlanPoint& point = plan.front[i];
    if (point.verdict.peak.empty()) continue;
    Series& series = by_devices[point.devices()];
    series.style = SeriesStyle::step;
    series.name = fmt::format("{} device{}", point.devices(), point.devices() == 1 ? "" : "s");
    const double peak = static_cast<double>(point.verdict.fullest().count) / giga;
    highest = std::max(highest, peak);
    lowest = lowest > 0 ? std::min(lowest, peak) : peak;
    const bool recommended = i == plan.recommended;
    series.points.push_back({to_seconds(point.verdict.step) * scale, peak, false,
                             fmt::format("{}{}", i + 1, recommended ? " recommended" : ""),
                             recommended});
    const std::optional<Interval>& range = point.verdict.intervals.step;
    if (!range || (plan.front.size() > most_whiskers && !recommended)) continue;
    ChartPoint& drawn = series.points.back();
    drawn.x_range = ChartRange{drawn.x * range->low, drawn.x * range->high};
    whiskers = true;
  }
  for (auto& [devices, series] : by_devices) chart.series.push_back(std::move(series));
  // Where the lightest would lie on the axis otherwise.
  chart.y.log = lowest > 0 && highest / lowest > most_linear;
  const double limit = common_limit(plan);
  if (limit > 0 && limit <= far_above * highest) {
    chart.horizontal.push_back({limit, "memory of a device"});
  }
  if (plan.bound > Time{}) {
    chart.vertical.push_back({to_seconds(plan.bound) * scale, "no candidate is faster"});
  }
  for (std::size_t i = 0; i < std::min(most_listed, plan.front.size()); ++i) {
    chart.footnotes.push_back(described_point(plan.front[i], i) + ".");
  }
  if (whiskers) chart.footnotes.emplace_back(whisker_words);
  if (plan.front.size() > most_listed) {
    chart.footnotes.push_back(fmt::format("{} more points.", plan.front.size() - most_listed));
  }
  if (plan.partial) chart.footnotes.emplace_back("The search was ended early: best so far.");
  for (const std::string& note : plan.notes) chart.footnotes.push_back("Note: " + note + ".");
  return chart;
}

}  // namespace stageline::report
