// Hybrid training: a part of the steps is pipelined, T = f·T_pipe + (1 − f)·T_non.
#include <fmt/core.h>

#include "tools/lab/papers/published.hpp"
#include "tools/lab/papers/sections.hpp"
#include "tools/lab/papers/zhang_runs.hpp"
#include "tools/report/charts/chart.hpp"
#include "tools/study/hybrid.hpp"

namespace stageline::lab {
namespace {

// 200 epochs of 390 batches of 128 of the 50,000 images; the speed-up hardly depends on it.
constexpr std::int64_t iterations = 78'000;

// The published whole runs, mixed; the one drain left out.
Hybrid mixed(const ZhangSpeedup& row, PipelinedShare share) {
  return hybrid_of(from_seconds(row.non_pipelined), from_seconds(row.pipelined), share, Time{});
}

// Speed-up against the fraction, from the published seconds, with the published hybrid runs at the
// fraction that their seconds imply.
report::Chart curves() {
  report::Chart chart;
  chart.title = "Hybrid training: speed-up against the part that is pipelined";
  chart.subtitle = "lines: from the published seconds of the two ends; hollow: the published runs";
  chart.x = {"pipelined fraction of the training", "", false, false, 0.0, 1.0};
  chart.y = {"speed-up over non-pipelined", "×", false, false, 1.0, {}};
  report::Series runs{"published hybrid runs", report::SeriesStyle::points, {}};
  for (const ZhangSpeedup& row : zhang_table5) {
    report::Series line{std::string(row.title), report::SeriesStyle::line, {}};
    for (int tenth = 0; tenth <= 10; ++tenth) {
      line.points.push_back({tenth / 10.0, mixed(row, {tenth, 10}).over_nonpipelined});
    }
    chart.series.push_back(line);
    runs.points.push_back({(row.non_pipelined - row.hybrid) / (row.non_pipelined - row.pipelined),
                           row.non_pipelined / row.hybrid, true});
  }
  chart.series.push_back(runs);
  chart.vertical.push_back({0.5, "f = 1/2"});
  return chart;
}

}  // namespace

Section hybrid_training() {
  Section section;
  section.source = "Zhang & Abdelrahman, arXiv 1912.12675, table 5";
  section.says = {
      "The paper trains with stale weights first and without a pipeline afterwards. The mix of its "
      "own two times at one half, `T = T_pipe/2 + T_non/2`, is held to its hybrid times; the one "
      "drain at the switch, two mini-batches of some ten thousands, is left out."};
  for (const ZhangSpeedup& row : zhang_table5) {
    const Hybrid half = mixed(row, {1, 2});
    section.findings.push_back(judged(
        {fmt::format("{}, hybrid at f = 1/2", row.title), claim_of({row.hybrid_speedup, 2, "×"}),
         Number{half.over_nonpipelined, 3, "×"}, 0.01, Basis::their_inputs, Rule::quoted}));
    section.findings.push_back(
        judged({fmt::format("{}, hybrid time", row.title), claim_of({row.hybrid, 0, " s"}),
                Number{to_seconds(half.total), 0, " s"}, 0.01 * row.hybrid, Basis::their_inputs,
                Rule::quoted}));
  }
  for (const ZhangRun& run : zhang_runs()) {
    if (run.row == nullptr) continue;
    const auto half = hybrid_study(run.asked, {iterations / 2, iterations}, 1);
    if (!half) continue;
    section.findings.push_back(judged({fmt::format("{}, hybrid at f = 1/2", run.title),
                                       claim_of({run.row->hybrid_speedup, 2, "×"}),
                                       Number{half->asked.hybrid.over_nonpipelined, 3, "×"},
                                       0.05 * run.row->hybrid_speedup, run.basis, Rule::quoted}));
  }
  section.figures.push_back(
      {"hybrid.svg",
       "Each curve follows from two published times; the published hybrid runs lie on them a "
       "little left of one half.",
       report::chart_svg(curves())});
  section.headline = "All eight from the paper's own times, at one half.";
  return section;
}

}  // namespace stageline::lab
