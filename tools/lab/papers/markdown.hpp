// Renders the report as Markdown, with its figures beside it.
#pragma once

#include <string>
#include <vector>

#include "tools/lab/papers/finding.hpp"

namespace stageline::lab {

/// Counts by verdict of a section's findings, in two parts that are never mixed: arithmetic on the
/// paper's inputs, and results cut or run from costs.
struct Tally {
  int of[verdicts] = {};
  int all = 0;
};
Tally tally(const Section& section, bool of_costs);
/// "3 reproduced, 1 differs", or "–".
std::string print(const Tally& tally);

/// The whole report. Figures are linked as figures/FILE.
std::string report_markdown(const std::vector<Section>& sections);

/// The head table as text for a terminal; for a single section its findings too.
std::string report_text(const std::vector<Section>& sections);

}  // namespace stageline::lab
