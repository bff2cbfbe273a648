// Means, percentiles and the order of schedules of judged rows.
#include "tools/published/summary.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "tools/published/rate_fit.hpp"

namespace stageline {
namespace {

constexpr double decided = 0.02;  // difference of two measured steps that has an order

const std::optional<double>& deviation_of(const JudgedPoint& judged, Deviation deviation) {
  return deviation == Deviation::step ? judged.step_deviation : judged.memory_deviation;
}

// Rows with equal keys differ in the schedule.
auto work_of(const Point& point) {
  return std::tie(point.source, point.model, point.hardware, point.gpus, point.tensor,
                  point.pipeline, point.data, point.micro_batch, point.global_batch, point.seq,
                  point.config.layers, point.config.hidden, point.experts, point.chosen);
}

// Whether the row's measurement has a place in the comparison.
bool ordered(const JudgedPoint& judged) {
  return judged.prediction && judged.measured_step && judged.point.pipeline > 1;
}

ScheduleOrder order_of(const std::vector<JudgedPoint>& judged) {
  ScheduleOrder order;
  for (std::size_t i = 0; i < judged.size(); ++i) {
    for (std::size_t j = i + 1; j < judged.size(); ++j) {
      const JudgedPoint& a = judged[i];
      const JudgedPoint& b = judged[j];
      if (!ordered(a) || !ordered(b) || work_of(a.point) != work_of(b.point)) continue;
      const bool same =
          std::tie(a.point.schedule, a.point.chunks) == std::tie(b.point.schedule, b.point.chunks);
      const double difference = *a.measured_step / *b.measured_step - 1;
      if (same || std::abs(difference) <= decided) continue;
      ++order.pairs;
      if ((difference < 0) == (a.prediction->step < b.prediction->step)) ++order.right;
    }
  }
  return order;
}

PointGroup& group_of(std::vector<PointGroup>& groups, const std::string& source, PointRole role) {
  for (PointGroup& group : groups) {
    if (group.source == source && group.role == role) return group;
  }
  PointGroup group;
  group.source = source;
  group.role = role;
  // Behind the last group of the source with an earlier role, or at the end.
  auto at = std::find_if(groups.begin(), groups.end(), [&](const PointGroup& other) {
    return other.source == source && other.role > role;
  });
  if (at == groups.end()) {
    const auto last = std::find_if(groups.rbegin(), groups.rend(),
                                   [&](const PointGroup& other) { return other.source == source; });
    if (last != groups.rend()) at = last.base();
  }
  return *groups.insert(at, std::move(group));
}

}  // namespace

DeviationFigures deviation_figures(const std::vector<JudgedPoint>& judged,
                                   const std::vector<std::size_t>& rows, Deviation deviation) {
  std::vector<std::size_t> with;
  std::vector<double> ones;
  std::vector<double> ratios;  // predicted over measured
  for (const std::size_t row : rows) {
    const std::optional<double>& found = deviation_of(judged[row], deviation);
    if (!found) continue;
    with.push_back(row);
    ones.push_back(1);
    ratios.push_back(1 + *found);
  }
  DeviationFigures figures;
  if (with.empty()) return figures;
  const StepErrors errors = step_errors(ones, ratios);
  figures.rows = static_cast<int>(with.size());
  figures.mean = errors.mean;
  figures.median = errors.median;
  figures.p95 = errors.p95;
  figures.worst_row = with[errors.worst_step];
  figures.worst = *deviation_of(judged[figures.worst_row], deviation);
  figures.bias = errors.bias;
  return figures;
}

PublishedSummary summary_of(const std::vector<JudgedPoint>& judged) {
  PublishedSummary summary;
  for (std::size_t row = 0; row < judged.size(); ++row) {
    PointGroup& group = group_of(summary.groups, judged[row].point.source, judged[row].role);
    group.rows.push_back(row);
    if (!judged[row].prediction) ++group.unanswered;
  }
  for (PointGroup& group : summary.groups) {
    group.step = deviation_figures(judged, group.rows, Deviation::step);
    group.memory = deviation_figures(judged, group.rows, Deviation::memory);
  }
  summary.order = order_of(judged);
  return summary;
}

std::vector<Unanswered> unanswered_of(const std::vector<JudgedPoint>& judged) {
  std::vector<Unanswered> all;
  for (const JudgedPoint& row : judged) {
    if (row.why_not.empty()) continue;
    auto found = std::find_if(all.begin(), all.end(),
                              [&](const Unanswered& other) { return other.why == row.why_not; });
    if (found == all.end()) found = all.insert(all.end(), {row.why_not, {}});
    found->ids.push_back(row.point.id);
  }
  return all;
}

}  // namespace stageline
