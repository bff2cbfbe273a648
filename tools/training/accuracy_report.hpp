// What `stageline time-to-accuracy` says: text, charts, JSON.
#pragma once

#include <string>
#include <vector>

#include "tools/report/charts/chart.hpp"
#include "tools/training/switch_points.hpp"
#include "tools/training/time_to_accuracy.hpp"

namespace stageline {

/// Where the times are from: the logs', or simulated again on a trace and a cluster.
struct TimesFrom {
  std::string trace;    // empty: the logs'
  std::string cluster;  // in words
};

/// Two lines: what was trained, on what; the target, and where it is from.
std::string accuracy_heading(const AccuracyStudy& study, const TimesFrom& from);

/// A row for each curve. What stands behind ± is half of the distance from the least to the most
/// over the seeds.
std::string accuracy_table(const AccuracyStudy& study);

/// Mean accuracy against simulated time, with the target across.
Chart accuracy_chart(const AccuracyStudy& study, const TimesFrom& from);

/// A row for each switch point.
std::string switch_table(const AccuracyStudy& study, const SwitchFamily& family);

/// Time to target against the share of the steps that is pipelined. Throws UsageError where no
/// point reaches the target.
Chart switch_chart(const AccuracyStudy& study, const std::vector<SwitchFamily>& families);

/// What the ± and the times to target are: sentences without a full stop.
std::vector<std::string> accuracy_notes(const AccuracyStudy& study);

/// Every number, with exact picoseconds (tools/README.md).
std::string accuracy_json(const AccuracyStudy& study, const std::vector<SwitchFamily>& families,
                          const TimesFrom& from);

}  // namespace stageline
