// The simulated time to reach an accuracy: compares training logs.
//
//   accuracy
//     │            ╭──── A     A reaches the target after fewer seconds than B, though each of its
//   ──┼─────╭─────╱─ target    steps may bring it less far
//     │   ╭─╯ ╭──╯ B
//     └──────────────────
//          simulated seconds
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/lab/training/log.hpp"

namespace stageline::lab {

struct NamedLog {
  std::string file;
  TrainingLog log;
};

/// The test set after `step` updates, over the seeds of a curve. The mean is empty if the value of
/// a seed is NaN; the other fields are then meaningless.
struct AccuracyPoint {
  std::int64_t step = 0;
  Time end{};                  // simulated; the mean over the seeds, which rarely differ
  std::optional<double> mean;  // shares from 0 to 1
  double least = 0;            // of the seeds
  double most = 0;             // of the seeds
};

/// The moment at which the target is reached: the first evaluation that is not below it, for each
/// seed separately. `time` and `steps` are means over the seeds that reach it.
struct TargetReached {
  int seeds = 0;               // number of seeds that reach it
  Time time{};                 // simulated
  double steps = 0;            // mean number of steps
  std::int64_t latest = 0;     // step of the seed that took the most steps
  bool before_switch = false;  // every such seed reaches it while all is still pipelined
};

/// Logs that differ only in their seed.
struct AccuracyCurve {
  TrainingSettings settings;
  std::string name;                   // distinguishes it from the other curves
  std::vector<NamedLog> runs;         // by seed
  std::vector<AccuracyPoint> points;  // at steps that every seed evaluated
  double stale_share = 0;             // of the weights
  double staleness = 0;               // updates; the maximum over the stages
  std::int64_t steps = 0;             // trained: of the seed with the fewest
  Time total{};                       // of these steps
  std::optional<double> best;         // the highest of any seed at any time
  TargetReached reached;
  std::optional<std::size_t> base;  // the non-pipelined curve of the same task
  std::optional<double> speedup;    // in time to target over `base`, if all seeds of both reach
                                    // it

  bool pipelined() const { return settings.pipelined > 0 && settings.devices > 1; }
  Time step_time() const { return steps > 0 ? total / steps : Time{}; }  // the mean
  bool all_reach() const { return reached.seeds == static_cast<int>(runs.size()); }
};

struct AccuracyStudy {
  std::vector<AccuracyCurve> curves;  // in order of their first log
  double target = 0;
  bool target_given = false;
  std::vector<std::string> notes;  // remarks needed to read the numbers, one sentence each
};

/// Groups, averages and compares. Without a target: the highest accuracy that the mean of every
/// curve reaches. Throws UsageError where there is no log, for a log without evaluations, for two
/// logs of one run (settings and seed), for seeds without an evaluation after the same
/// step, and for a target that is not in (0, 1].
AccuracyStudy accuracy_study(std::vector<NamedLog> logs, std::optional<double> target);

/// A short name per curve: the settings that distinguish it. Curves that are not pipelined are
/// called so, and are distinguished only by settings that matter to them. All names differ.
std::vector<std::string> curve_names(const std::vector<TrainingSettings>& settings);

/// The settings without those that are irrelevant where nothing is pipelined: schedule, cut, rule,
/// correction and devices are empty then.
TrainingSettings without_pipeline(TrainingSettings settings);

}  // namespace stageline::lab
