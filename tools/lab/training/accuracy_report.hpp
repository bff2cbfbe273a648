// Reports time to accuracy: text, charts, JSON.
#pragma once

#include <string>
#include <vector>

#include "tools/lab/training/switch_points.hpp"
#include "tools/lab/training/time_to_accuracy.hpp"
#include "tools/report/charts/chart.hpp"

namespace stageline::lab {

/// The source of the times: the logs, or a new simulation on a trace and a cluster.
struct TimesFrom {
  std::string trace;    // empty: the logs'
  std::string cluster;  // as text
};

/// Two lines: what was trained and on which data; the target and its origin.
std::string accuracy_heading(const AccuracyStudy& study, const TimesFrom& from);

/// A row per curve. The figure behind ± is half the distance from the least to the greatest over
/// the seeds. `width`: the most columns of a line; 0: any.
std::string accuracy_table(const AccuracyStudy& study, int width = 0);

/// Mean accuracy against simulated time, with the target across.
report::Chart accuracy_chart(const AccuracyStudy& study, const TimesFrom& from);

/// A row per switch point; `width` as above.
std::string switch_table(const AccuracyStudy& study, const SwitchFamily& family, int width = 0);

/// Time to target against the share of the steps that is pipelined. Throws UsageError where no
/// point reaches the target.
report::Chart switch_chart(const AccuracyStudy& study, const std::vector<SwitchFamily>& families);

/// Notes on ± and on the times to target: sentences without a full stop.
std::vector<std::string> accuracy_notes(const AccuracyStudy& study);

/// All numbers as JSON, with exact picoseconds (keys in tools/report/json/README.md).
std::string accuracy_json(const AccuracyStudy& study, const std::vector<SwitchFamily>& families,
                          const TimesFrom& from);

}  // namespace stageline::lab
