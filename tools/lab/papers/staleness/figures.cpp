// Draws the figures of the staleness study: a line through the means, a hollow mark for every seed.
#include <fmt/core.h>

#include <algorithm>

#include "tools/lab/papers/staleness/report.hpp"

namespace stageline::lab {
namespace {

struct Placed {
  double x = 0;
  const CaseResult* result = nullptr;
};

// The seeds have the colour and the marker of their mean.
void add_series(report::Chart& chart, const std::string& name, const std::vector<Placed>& some) {
  const std::size_t ink = chart.series.size() / 2;
  report::Series means{name, report::SeriesStyle::line, {}, ink};
  report::Series seeds{name + ", seeds", report::SeriesStyle::points, {}, ink};
  for (const Placed& one : some) {
    means.points.push_back({one.x, one.result->accuracy.mean});
    for (const double percents : one.result->percents) {
      seeds.points.push_back({one.x, percents, true});
    }
  }
  chart.series.push_back(std::move(means));
  chart.series.push_back(std::move(seeds));
}

std::vector<Placed> by_depth(const NetResult& net) {
  std::vector<Placed> some = {{2, net.plain()}};
  for (const CaseResult* const one : net.of(StudyGroup::depth)) {
    some.push_back({static_cast<double>(stages_of(*one->asked)), one});
  }
  return some;
}

// The cases with one register pair, and the non-pipelined run.
std::vector<Placed> one_pair(const NetResult& net) {
  std::vector<Placed> some = {{0, net.plain()}};
  for (const CaseResult& one : net.cases) {
    const bool mine =
        one.asked->group == StudyGroup::sliding || one.asked->group == StudyGroup::depth;
    if (mine && one.asked->ppv.size() == 1) some.push_back({100 * one.stale_share, &one});
  }
  std::sort(some.begin(), some.end(), [](const Placed& a, const Placed& b) { return a.x < b.x; });
  return some;
}

std::vector<Placed> deeper(const NetResult& net) {
  std::vector<Placed> some;
  for (const CaseResult* const one : net.of(StudyGroup::depth)) {
    if (one->asked->ppv.size() > 1) some.push_back({100 * one->stale_share, one});
  }
  std::sort(some.begin(), some.end(), [](const Placed& a, const Placed& b) { return a.x < b.x; });
  return some;
}

}  // namespace

std::vector<StudyFigure> staleness_figures(const std::vector<NetResult>& results) {
  StudyFigure depth;
  depth.file = "staleness-depth.svg";
  depth.caption =
      "Accuracy against depth; 2 stages are a forward and a backward one, "
      "which is not pipelined. Hollow: single seeds.";
  depth.chart.title = "Accuracy by depth of the pipeline";
  depth.chart.x = {"stages of the pipeline, forward and backward", "", false, true, {}, {}};
  depth.chart.y = {"test accuracy", "%", false, false, 0.0, 100.0};

  StudyFigure share;
  share.file = "staleness-share.svg";
  share.caption =
      "Accuracy against the percentage of stale weights: one register pair that slides through the "
      "net, 2 updates late, and deeper pipelines, more updates late. Hollow: single seeds.";
  share.chart.title = "Accuracy by percentage of stale weights";
  share.chart.x = {"stale weights", "%", false, false, 0.0, 100.0};
  share.chart.y = depth.chart.y;
  for (const NetResult& net : results) {
    if (net.plain() == nullptr || net.deepest() == nullptr) continue;
    add_series(depth.chart, net.net->title, by_depth(net));
    if (net.of(StudyGroup::sliding).empty()) continue;
    add_series(share.chart, net.net->title + ", one pair", one_pair(net));
    if (!deeper(net).empty()) add_series(share.chart, net.net->title + ", more pairs", deeper(net));
  }
  std::vector<StudyFigure> figures;
  if (!depth.chart.series.empty()) figures.push_back(std::move(depth));
  if (!share.chart.series.empty()) figures.push_back(std::move(share));
  return figures;
}

}  // namespace stageline::lab
