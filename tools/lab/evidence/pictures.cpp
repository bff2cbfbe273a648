// Pictures of a replay, drawn by the general chart and timeline code.
#include <fmt/core.h>

#include <algorithm>

#include "sim/base/errors.hpp"
#include "tools/lab/evidence/aims.hpp"
#include "tools/lab/evidence/report.hpp"
#include "tools/report/charts/chart.hpp"
#include "tools/report/timeline/overlaid.hpp"

namespace stageline::lab {
namespace {

// The unit in which the longest of these times is 1 to 1000.
struct TimeUnit {
  const char* name;
  double seconds;

  double of(Time time) const { return to_seconds(time) / seconds; }
};
TimeUnit unit_of(Time longest) {
  if (longest >= std::chrono::seconds(1)) return {"s", 1};
  if (longest >= std::chrono::milliseconds(1)) return {"ms", 1e-3};
  return {"µs", 1e-6};
}

}  // namespace

std::string diagonal_svg(const Evidence& evidence, const EvidenceJudgement& judgement,
                         const report::SvgOptions& options) {
  report::Chart chart;
  chart.title = "Predicted against measured time";
  chart.subtitle = "Each point a case; on the line both are equal.";
  Time longest{};
  for (const CaseJudgement& judged : judgement.cases) {
    longest = std::max({longest, judged.measured, judged.prediction.makespan});
  }
  const TimeUnit unit = unit_of(longest);
  chart.x = {"measured", unit.name, true, false, {}, {}};
  chart.y = {"predicted", unit.name, true, false, {}, {}};
  double least = 0;
  double most = 0;
  bool seen = false;
  for (std::size_t i = 0; i < judgement.cases.size(); ++i) {
    const MeasuredCase& measured = evidence.cases[i];
    auto series = std::find_if(chart.series.begin(), chart.series.end(),
                               [&](const report::Series& s) { return s.name == measured.model; });
    if (series == chart.series.end()) {
      chart.series.push_back({measured.model, report::SeriesStyle::points, {}});
      series = std::prev(chart.series.end());
    }
    const double x = unit.of(judgement.cases[i].measured);
    const double y = unit.of(judgement.cases[i].prediction.makespan);
    series->points.push_back({x, y, !measured.held_out});
    least = i == 0 ? std::min(x, y) : std::min({least, x, y});
    most = std::max({most, x, y});
    seen = seen || !measured.held_out;
  }
  chart.series.push_back({"predicted = measured",
                          report::SeriesStyle::dashed,
                          {{0.9 * least, 0.9 * least}, {1.1 * most, 1.1 * most}}});
  if (seen) chart.footnotes.emplace_back("Hollow: a case that the calibration has seen.");
  return report::chart_svg(chart, options);
}

std::string timelines_svg(const MeasuredCase& measured, const CaseJudgement& judged,
                          const report::SvgOptions& options) {
  if (!measured.timeline) {
    throw UsageError(fmt::format("{}: no measured timeline was kept", name_of(measured)));
  }
  const Timeline& predicted = judged.prediction.timeline;
  report::Drawing drawing =
      report::overlaid(*measured.timeline, "measured", predicted, "predicted", predicted.devices);
  drawing.title = "Measured above predicted: " + name_of(measured);
  drawing.subtitle = fmt::format("{} measured (this run {}), {} predicted: {}",
                                 print(judged.measured), print(makespan(*measured.timeline)),
                                 print(judged.prediction.makespan), signed_percent(judged.error));
  return report::svg(drawing, options);
}

std::vector<Picture> replay_pictures(const Evidence& evidence, const EvidenceJudgement& judgement) {
  if (evidence.cases.empty()) return {};
  std::vector<Picture> pictures{
      {"errors.svg",
       "Error of the predicted time, a strip a schedule, a point a case. Points inside of the grey "
       "band differ from the measurement by less than its own noise (the mean noise of the strip).",
       errors_svg(evidence, judgement)},
      {"diagonal.svg", "Predicted over measured time.", diagonal_svg(evidence, judgement)}};
  for (std::size_t i = 0; i < evidence.cases.size(); ++i) {
    const MeasuredCase& measured = evidence.cases[i];
    if (!measured.timeline) continue;
    pictures.push_back(
        {fmt::format("timeline-{}.svg", i + 1),
         fmt::format("{}: {}.", name_of(measured), signed_percent(judgement.cases[i].error)),
         timelines_svg(measured, judgement.cases[i])});
  }
  return pictures;
}

}  // namespace stageline::lab
