// Writes results as JSON. The keys are documented in tools/report/json/README.md and stable.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/answers/step_parts.hpp"
#include "tools/compare/advice.hpp"
#include "tools/compare/comparison.hpp"
#include "tools/compare/long_run.hpp"
#include "tools/compare/uncertainty.hpp"
#include "tools/inputs/setting.hpp"
#include "tools/report/text/waterfall.hpp"
#include "tools/study/figures/training_rates.hpp"
#include "tools/study/study.hpp"
#include "tools/study/whatif/waterfall.hpp"

namespace stageline::report {

/// Real runs of a program, beside the prediction of it.
struct MeasuredRuns {
  std::string devices;                      // as named on the command line: "cuda:2"
  std::string device_title;                 // "2 × NVIDIA H200"; empty: cores
  std::vector<Time> makespan;               // by run
  std::vector<std::int64_t> peak;           // bytes, by device
  std::vector<std::int64_t> stash;          // bytes, by device
  std::vector<std::vector<double>> losses;  // by run and micro-batch
  Time predicted_makespan{};
  bool imitated = false;  // ops waited instead of computing: no losses, no bytes
};

/// One result as a JSON object, times in seconds (`…_s`) and as exact integers of picoseconds
/// (`…_ps`); `timeline`: with every span. `measured`: the outcome is that of one of these runs.
/// `budget`: the training whose GPU-hours and price are asked. `waterfall`: of the outcome, with
/// --why. `ways`: what would fit, where it does not. `from_peak`: its parts, with --why=peak.
std::string outcome_json(const Setting& setting, const Case& asked, const Outcome& outcome,
                         bool timeline, const MeasuredRuns* measured = nullptr,
                         const TrainingBudget& budget = {}, const Waterfall* waterfall = nullptr,
                         const WaysToFit* ways = nullptr,
                         const std::vector<answers::StepPart>& from_peak = {});

/// The same of a row with an outcome.
std::string row_json(const Setting& setting, const Row& row, bool timeline);

/// The object of a case without an answer: `schedule`, `devices` and the reason as `error`.
std::string unanswered_json(const Case& asked, const std::string& reason);

/// What --jitter and --why add to the rows of a comparison, each by row; empty where it is not
/// asked for. `ways`: of one row.
struct RowsBeside {
  std::vector<Uncertainty> uncertain{};
  std::vector<NamedWaterfall> waterfalls{};  // two
  const WaysToFit* ways = nullptr;
  std::vector<std::size_t> tied{};  // rows that tie with the fastest; empty: no row has a range
};

/// An array of the same objects; a row without an outcome has "schedule", "devices" and "error".
std::string rows_json(const Setting& setting, const std::vector<Row>& rows,
                      const RowsBeside& beside = {});

/// {"scenarios": …, "partial": …, "rows": […], "notes": […]}; keys in
/// tools/report/json/README.md.
std::string uncertainty_json(const Setting& setting, const std::vector<UncertainRow>& rows,
                             const std::vector<std::size_t>& order,
                             const std::vector<std::string>& said, const Failures* failures,
                             const LongRun* run, bool partial);

}  // namespace stageline::report
