// Renders the staleness study as a page with figures, from its evidence alone.
#pragma once

#include <string>
#include <vector>

#include "tools/lab/papers/staleness/judge.hpp"
#include "tools/report/charts/chart.hpp"

namespace stageline::lab {

struct StudyFigure {
  std::string file;     // "staleness-depth.svg"
  std::string caption;  // a sentence or two
  report::Chart chart;
};

/// Accuracy by depth; by share of stale weights. Only figures with at least two points.
std::vector<StudyFigure> staleness_figures(const std::vector<NetResult>& results);

/// The page, staleness.md. Throws UsageError where the evidence has no run of the table.
std::string staleness_markdown(const StalenessEvidence& evidence);

/// The findings for a terminal.
std::string staleness_text(const StalenessEvidence& evidence);

/// The findings, and the nets with their cases; tools/report/json/README.md lists the keys.
std::string staleness_json(const StalenessEvidence& evidence);

/// Writes staleness.md and its figures to the folder, which is created if missing.
void write_staleness_report(const std::string& folder, const StalenessEvidence& evidence);

}  // namespace stageline::lab
