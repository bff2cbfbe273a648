// What compare says of its rows beside their nominal step: scenarios, causes, what ranks them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/compare/comparison.hpp"
#include "tools/compare/uncertainty.hpp"
#include "tools/report/text/comparison.hpp"
#include "tools/report/text/waterfall.hpp"

namespace stageline {

/// What scenarios say of the rows, and notes on them. Nothing where none are asked for.
struct RowScenarios {
  std::vector<Uncertainty> uncertain;
  std::vector<std::string> notes;
  bool stopped = false;     // by a signal
  std::string interrupted;  // how far it came, where it was stopped
};
/// Draws them on up to `jobs` threads (0: all cores), with its progress on standard error unless
/// `quiet`. Throws Interrupted where a signal comes before the first scenario has ended.
RowScenarios under_scenarios(const std::vector<Row>& rows, ScenarioRequest request, int jobs,
                             bool quiet);

/// Throws UsageError where no row knows what `view` ranks by.
void check_measure(const ComparisonView& view, const std::vector<Row>& rows);

/// The figures behind energy and cost, with their sources, where the table shows them.
std::vector<std::string> amount_notes(const Case& asked, const ComparisonView& view);

/// Throws UsageError unless there are two schedules on one number of devices.
void check_two(const std::vector<ScheduleSpec>& schedules, const Setting& setting);

/// The waterfalls of the two rows; with scenarios, of their mean step. Throws UsageError where one
/// of them is not possible, or where they have other samples in a step.
std::vector<NamedWaterfall> two_waterfalls(const std::vector<Row>& rows, CauseOrder order,
                                           const std::vector<Uncertainty>& uncertain);

}  // namespace stageline
