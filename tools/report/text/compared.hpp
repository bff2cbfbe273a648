// A comparison as text: heading, tables, advice, notes.
#pragma once

#include <string>
#include <vector>

#include "tools/answers/compared.hpp"
#include "tools/report/text/comparison.hpp"

namespace stageline::report {

/// Reasons why rows have no outcome, each once, with the rows that share it.
struct Impossible {
  Synchrony synchrony;  // of the first row
  int devices;
  std::string why_not;
  std::string schedules;

  /// "dapple on 3 devices: not possible: …"
  std::string sentence(bool sweep) const;
};
std::vector<Impossible> impossible_rows(const std::vector<Row>& rows);

/// The view with what the rows add to it: their scenarios, and whether their cuts differ.
ComparisonView with_rows(ComparisonView view, const answers::Comparison& found);

/// The lines above the tables.
std::string compared_heading(const answers::Comparison& found);

/// What is shown beside the tables.
struct ComparedView {
  bool quiet = false;     // no heading
  int width = 0;          // of what is no table; 0: any
  int chart_columns = 0;  // of the chart of a sweep
};
/// Heading, tables with their advice, causes, changes after which a row fits, and the chart of a
/// sweep; wrapped. `view` is that of with_rows().
std::string compared_text(const answers::Comparison& found, const ComparisonView& view,
                          const ComparedView& beside);

/// What must be known to read the rows, each once, behind what was `said`. `view` is that of
/// with_rows().
std::vector<std::string> compared_notes(const answers::Comparison& found,
                                        const ComparisonView& view, std::vector<std::string> said);

}  // namespace stageline::report
