// Reports a hybrid study: text, chart, JSON.
#pragma once

#include <string>

#include "tools/answers/hybrid_run.hpp"
#include "tools/inputs/setting.hpp"
#include "tools/report/charts/chart.hpp"
#include "tools/study/hybrid.hpp"

namespace stageline::report {

/// The share of all iterations that is pipelined: 0 to 1.
double fraction(PipelinedShare share);

/// Total, speed-ups, pace, fill and drain: four or five lines.
std::string hybrid_summary(const Case& asked, const HybridStudy& study);

/// A table of every second point of the curve. `width`: the most columns of a line; 0: any.
std::string hybrid_table(const HybridStudy& study, int width = 0);

/// The speed-up over one device against the pipelined share, with the asked share marked.
Chart hybrid_chart(const Setting& setting, const Case& asked, const HybridStudy& study);

/// All numbers as JSON, with exact picoseconds (keys in tools/report/json/README.md).
std::string hybrid_json(const Case& asked, const HybridStudy& study);

/// Heading (unless `quiet`), summary, table and the curve in so many columns; wrapped at `width`.
std::string hybrid_text(const answers::HybridAnswer& answered, int width, int columns, bool quiet);

/// Whether the schedule's rules were rebuilt from abstracts, which is noted wherever their numbers
/// are shown.
bool has_rebuilt_rules(const Scheduler& scheduler);

}  // namespace stageline::report
