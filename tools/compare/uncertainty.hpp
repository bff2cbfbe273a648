// Schedules under the same scenarios: distributions of the step, and how often each is the best.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/compare/comparison.hpp"
#include "tools/study/whatif/scenario_runs.hpp"

namespace stageline {

/// A schedule under all scenarios, or the reason why there is none.
struct UncertainRow {
  Row row;
  std::optional<ScenarioSteps> steps;
  Distribution distribution;  // of steps
  double best = 0;            // share of the scenarios in which its throughput is the highest, of
                              // those that fit where any does
  /// Mean step over the nominal one, less 1.
  double loss() const;
  /// Not known not to.
  bool fits() const { return !row.outcome || row.outcome->fit != Fit::no; }
};

/// Mean over nominal step, less 1; 0 where a step takes no time.
double loss_of(const ScenarioSteps& steps, const Distribution& distribution);

/// The same of a row that is held elsewhere.
struct Uncertainty {
  std::optional<ScenarioSteps> steps;
  Distribution distribution;  // of steps
  double best = 0;            // as set_best() sets it
  std::string why_not;        // why it has no steps; empty where the row has no outcome
};

/// The distribution of each row with an outcome, under the same scenarios (common random numbers).
/// Where `scenarios.stop` ends the run early, all have as many scenarios as the one with the least,
/// and those without any say that they were interrupted. Throws UsageError where every outcome
/// meets the same refusal.
std::vector<Uncertainty> uncertainty_of(const std::vector<Row>& rows,
                                        const ScenarioRequest& scenarios);

/// Sets `best` of the rivals among the rows, which all have steps: the share of the scenarios in
/// which a row's throughput is the highest of theirs.
void set_best(const std::vector<Row>& rows, const std::vector<std::size_t>& rivals,
              std::vector<Uncertainty>& uncertain);

/// The quantile of a row's step, or its mean.
Time at_quantile(const Uncertainty& row, std::optional<double> share);

/// A row for each schedule, on the setting's one number of devices, all under the same scenarios
/// (common random numbers). Where `scenarios.stop` ends the run early, rows have as many scenarios
/// as the one with the least, and those without any say that they were interrupted. Throws as
/// compare() and scenario_steps().
std::vector<UncertainRow> under_uncertainty(const SettingRequest& request, const Setting& setting,
                                            const std::vector<ScheduleSpec>& schedules,
                                            const ScenarioRequest& scenarios);

/// Indices of the rows with steps, those that fit first, by the quantile (nothing: the mean) of
/// their time a sample, least first.
std::vector<std::size_t> ranked_by_quantile(const std::vector<UncertainRow>& rows,
                                            std::optional<double> share);

/// "p95", "p50", "mean": the share of a quantile; nothing for the mean. Throws UsageError, which
/// begins with `what`.
std::optional<double> parse_quantile(const std::string& text, const std::string& what);

/// What training on a machine that fails yields (Young 1974, doi 10.1145/361147.361115; Daly 2006,
/// doi 10.1016/j.future.2004.11.016). All in seconds.
struct Failures {
  double between = 0;     // mean time between failures, of the whole machine
  double checkpoint = 0;  // to write a checkpoint
  double restart = 0;     // from a failure until work goes on
  double interval = 0;    // of work between checkpoints; 0: Daly's optimum
};
struct UsefulShare {
  double interval = 0;  // of work between checkpoints
  double useful = 0;    // share of the time that is work that lasts
  double young = 0;     // √(2·checkpoint·between): the interval by Young
  double daly = 0;      // the interval by Daly's higher-order formula
};
/// With failures that arrive as a Poisson process, during checkpoints and restarts, too:
///   useful = interval / (between · e^(restart/between) · (e^((interval + checkpoint)/between) −
///   1)).
UsefulShare useful_share(const Failures& failures);

inline constexpr std::string_view nothing_frozen =
    "--freeze has no effect: no links are shared, so that no transfer waits for another";
/// That shared links kept the nominal order, and how far off that is.
std::string frozen_note(const std::string& schedule, const ScenarioSteps& steps);
/// That the scenarios vary about another step than `step`, that of the schedule; empty where they
/// do not (within 1 %).
std::string other_step_note(const std::string& schedule, const ScenarioSteps& steps, Time step);
/// That fewer scenarios than `asked` were finished.
std::string interrupted_note(const ScenarioSteps& steps, std::int64_t asked);

}  // namespace stageline
