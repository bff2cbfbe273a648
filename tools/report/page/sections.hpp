// The sections of a page that are tables and charts of results: a value in, a PageSection out.
// Words and figures are those of the text and JSON reports; web/section_KIND.js draws them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/report/charts/chart.hpp"
#include "tools/report/charts/tornado.hpp"
#include "tools/report/charts/waterfall.hpp"
#include "tools/report/page/page.hpp"
#include "tools/report/text/sheet.hpp"
#include "tools/study/outcome.hpp"
#include "tools/study/whatif/scenario_runs.hpp"

namespace stageline::report {

/// A row of the page: bars and points of the same `id` lead to the row of the table.
struct PageRow {
  std::string id;      // "row3"
  std::string note{};  // "recommended"
};

/// Sortable and filterable; `rows` are those of the sheet. The first column names a row, and is
/// never hidden.
PageSection table_section(std::string title, const Sheet& sheet, const std::vector<PageRow>& rows);
/// The same of a table whose rows nothing leads to.
PageSection table_section(std::string title, const Sheet& sheet);

struct RankingRow {
  PageRow row;
  std::string name;
  Time step{};
  double bubble = 0;
  std::string memory;  // peak, in words
  Fit fit = Fit::unknown;
  std::optional<Time> quantile{};  // marked beside the bar
};

struct RankingGroup {
  std::string title;  // empty: none
  std::vector<std::string> sentences;
  std::vector<RankingRow> rows;  // the best first
};

/// A line across a chart.
struct ReferenceValue {
  double value = 0;  // in the unit of its axis
  std::string words;
  std::string definition{};
};

struct RankingBars {
  std::vector<RankingGroup> groups;
  std::optional<ReferenceValue> bound{};  // ps
  std::string quantile_words{};           // "p95 of 1000 scenarios"
};
/// Bars of the step, its bubble set off; those that do not fit are hatched.
PageSection ranking_section(std::string title, const RankingBars& bars);

struct ScatterPoint {
  PageRow row;
  std::string name;
  Time step{};
  Bytes peak{};
  Fit fit = Fit::unknown;
  std::string command{};  // that reproduces it
  bool front = false;     // set by scatter_section()
};

struct ScatterSeries {
  std::string name;
  std::vector<ScatterPoint> points;
};

struct ScatterChart {
  std::vector<ScatterSeries> series;
  std::optional<ReferenceValue> limit{};  // bytes
  std::optional<ReferenceValue> bound{};  // ps
};
/// Peak memory against the step. Of each series the Pareto front of the points that fit is drawn.
PageSection scatter_section(std::string title, ScatterChart chart);

/// Sets `front` of the points that fit and that no other such point beats in one of step and peak
/// without being worse in the other; of equal points the first.
void mark_front(std::vector<ScatterPoint>& points);

/// One waterfall, or two side by side.
PageSection waterfall_section(std::string title, const WaterfallChart& chart,
                              const std::string& sentence = "");

PageSection tornado_section(std::string title, const Tornado& tornado,
                            const std::string& sentence = "");

struct NamedDistribution {
  std::string name;
  const ScenarioSteps* steps;  // with a scenario, at least
  const Distribution* distribution;
};
/// Cumulative curves and histograms over bins that all share.
PageSection distribution_section(std::string title, const std::vector<NamedDistribution>& rows);

/// The curves of a chart with linear axes, the y axis from 0; the best five have colours, the
/// others are grey.
PageSection curves_section(std::string title, Chart chart);

}  // namespace stageline::report
