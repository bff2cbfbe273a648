// A calibration on few runs of one software: what they must be, and what spread remains.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cost_models/transformers/kernel_rates.hpp"
#include "tools/published/points.hpp"
#include "tools/study/evidence/evidence.hpp"

namespace stageline {

/// Up to so many rows are few: a class has a range of its own from ten runs on.
inline constexpr int most_few_runs = 9;

/// Scale of the loss for few runs, in log(measured/predicted): the scatter of runs of one software
/// and chip about their common deviation. The median of 1.48 median absolute deviations of the
/// published dense runs, by source, software and chip, computed 2026-11-30: 0.051.
inline constexpr double few_runs_scale = 0.05;

struct FewRun {
  const Point* point = nullptr;
  double seconds = 0;          // measured
  PointPrediction prediction;  // by the built-in constants
};

/// Throws UsageError for runs of two softwares or batches and rates that contradict each other, for
/// one above the devices' peak, and for one that is so far from its prediction that a unit or a
/// batch must be wrong.
void check_few_runs(const std::vector<FewRun>& runs, const std::string& file);

/// How far, of its half width in logarithms, the range of a class reaches below and above the
/// prediction once a calibration rests on so many runs.
struct Narrowing {
  int rows = 0;    // at least
  double low = 0;  // below 0
  double high = 0;
};
/// That of so many runs, at least one.
const Narrowing& narrowing_of(int rows);

/// The range that remains of a class; empty where nothing narrower is known: of models with
/// experts, of whose runs few sources are published, and of kinds that no run was held on.
std::optional<Interval> remaining_interval(const RunClass& of, const EvidenceTable& table,
                                           int rows);

/// By class; a range holds the deviations that its own runs have left. `fitted`: seconds by run.
std::vector<CalibratedRuns> rested_on_by(const std::vector<FewRun>& runs,
                                         const std::vector<double>& fitted);

}  // namespace stageline
