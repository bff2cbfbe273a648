// Groups logs into curves, averages them, and finds the target.
#include "tools/lab/training/time_to_accuracy.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "sim/base/errors.hpp"

namespace stageline::lab {
namespace {

constexpr double rounding = 1e-12;  // tolerance of a mean; far below one sample of any test set

std::vector<std::int64_t> common_steps(const AccuracyCurve& curve) {
  std::vector<std::int64_t> common;
  for (const Evaluation& one : curve.runs.front().log.evaluations) {
    const bool everywhere =
        std::all_of(curve.runs.begin(), curve.runs.end(), [&](const NamedLog& run) {
          const auto& list = run.log.evaluations;
          return std::any_of(list.begin(), list.end(),
                             [&](const Evaluation& other) { return other.step == one.step; });
        });
    if (everywhere) common.push_back(one.step);
  }
  return common;
}

AccuracyPoint point_of(const AccuracyCurve& curve, std::int64_t step) {
  AccuracyPoint point;
  point.step = step;
  point.least = 1;
  double sum = 0;
  Time later{};  // sum of the ends' differences from the first run's
  Time first{};
  for (std::size_t i = 0; i < curve.runs.size(); ++i) {
    const auto& list = curve.runs[i].log.evaluations;
    const auto found = std::find_if(list.begin(), list.end(),
                                    [&](const Evaluation& one) { return one.step == step; });
    if (i == 0) first = found->end;
    later += found->end - first;
    sum += found->accuracy;  // NaN propagates
    if (std::isnan(found->accuracy)) continue;
    point.least = std::min(point.least, found->accuracy);
    point.most = std::max(point.most, found->accuracy);
  }
  const auto runs = static_cast<std::int64_t>(curve.runs.size());
  point.end = first + later / runs;
  if (!std::isnan(sum)) point.mean = sum / static_cast<double>(runs);
  return point;
}

void add_points(AccuracyCurve& curve) {
  for (const std::int64_t step : common_steps(curve)) {
    curve.points.push_back(point_of(curve, step));
  }
  if (curve.points.empty()) {
    throw UsageError(fmt::format(
        "{} and {} are seeds of one training, but have no evaluation after the same step; "
        "evaluate them equally often",
        curve.runs.front().file, curve.runs.back().file));
  }
  for (const NamedLog& run : curve.runs) {
    for (const Evaluation& one : run.log.evaluations) {
      if (std::isnan(one.accuracy)) continue;
      curve.best = std::max(curve.best.value_or(0), one.accuracy);
    }
  }
}

void add_lengths(AccuracyCurve& curve) {
  const auto shortest = std::min_element(
      curve.runs.begin(), curve.runs.end(),
      [](const auto& a, const auto& b) { return a.log.steps.size() < b.log.steps.size(); });
  const std::vector<LoggedStep>& steps = shortest->log.steps;
  curve.steps = static_cast<std::int64_t>(steps.size());
  curve.total = steps.empty() ? Time{} : steps.back().end;
  const TrainingLog& log = curve.runs.front().log;
  curve.stale_share = curve.pipelined() ? log.stale_share() : 0;
  for (const LoggedStage& stage : log.stages) {
    if (curve.pipelined()) curve.staleness = std::max(curve.staleness, stage.staleness_max);
  }
}

std::optional<double> highest_mean(const AccuracyCurve& curve) {
  std::optional<double> highest;
  for (const AccuracyPoint& point : curve.points) {
    if (point.mean) highest = std::max(highest.value_or(0), *point.mean);
  }
  return highest;
}

void reach(AccuracyCurve& curve, double target) {
  TargetReached& reached = curve.reached;
  Time later{};
  Time first{};
  double steps = 0;
  reached.before_switch = curve.settings.pipelined < curve.settings.steps;
  for (const NamedLog& run : curve.runs) {
    const auto& list = run.log.evaluations;
    const auto found = std::find_if(list.begin(), list.end(), [&](const Evaluation& one) {
      return one.accuracy >= target - rounding;
    });
    if (found == list.end()) continue;
    if (++reached.seeds == 1) first = found->end;
    later += found->end - first;
    steps += static_cast<double>(found->step);
    reached.latest = std::max(reached.latest, found->step);
  }
  if (reached.seeds > 0) {
    reached.time = first + later / reached.seeds;
    reached.steps = steps / reached.seeds;
  }
  reached.before_switch =
      reached.before_switch && reached.seeds > 0 && reached.latest <= curve.settings.pipelined;
}

// How much two trainings of one task have in common besides the pipeline.
int likeness(const TrainingSettings& a, const TrainingSettings& b) {
  return int{a.recipe == b.recipe} + int{a.optimizer == b.optimizer} +
         int{a.number_format == b.number_format} + int{a.trace == b.trace} +
         int{a.steps == b.steps} +
         int{std::int64_t{a.batch} * a.microbatches == std::int64_t{b.batch} * b.microbatches};
}

// The non-pipelined curve of the same model and data that is most similar; of equals the first.
std::optional<std::size_t> base_of(const std::vector<AccuracyCurve>& curves, std::size_t of) {
  if (!curves[of].pipelined()) return of;
  std::optional<std::size_t> found;
  const TrainingSettings& mine = curves[of].settings;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const TrainingSettings& other = curves[i].settings;
    if (curves[i].pipelined() || other.model != mine.model || other.data != mine.data) continue;
    if (!found || likeness(mine, other) > likeness(mine, curves[*found].settings)) found = i;
  }
  return found;
}

void add_notes(AccuracyStudy& study, const AccuracyCurve& curve) {
  for (const NamedLog& run : curve.runs) {
    const TrainingLog& log = run.log;
    const auto trained = static_cast<std::int64_t>(log.steps.size());
    if (trained < log.settings.steps) {
      study.notes.push_back(fmt::format("{} was interrupted after {} of {} steps", run.file,
                                        trained, log.settings.steps));
    }
    const auto lost = std::find_if(log.steps.begin(), log.steps.end(),
                                   [](const LoggedStep& step) { return std::isnan(step.loss); });
    const auto blind = std::find_if(log.evaluations.begin(), log.evaluations.end(),
                                    [](const Evaluation& one) { return std::isnan(one.accuracy); });
    if (lost != log.steps.end()) {
      study.notes.push_back(fmt::format("{} diverged: its loss is not a number from step {} on",
                                        run.file, lost - log.steps.begin() + 1));
    } else if (blind != log.evaluations.end()) {
      study.notes.push_back(fmt::format("{} diverged: its accuracy is not a number after step {}",
                                        run.file, blind->step));
    }
  }
  const auto& points = curve.points;
  if (points.size() < 2 || !points.front().mean) return;
  const bool better = std::any_of(points.begin(), points.end(), [&](const AccuracyPoint& point) {
    return point.mean && *point.mean > *points.front().mean;
  });
  if (!better) {
    study.notes.push_back(
        fmt::format("{}: its mean accuracy is never above that of its first evaluation, {:.2f} %",
                    curve.name, 100 * *points.front().mean));
  }
}

void check_log(const NamedLog& log) {
  if (log.log.evaluations.empty()) {
    throw UsageError(fmt::format(
        "{} holds no evaluation, and without one there is no accuracy; train it with some",
        log.file));
  }
}

void add_log(std::vector<AccuracyCurve>& curves, NamedLog log) {
  check_log(log);
  const auto found = std::find_if(curves.begin(), curves.end(), [&](const AccuracyCurve& curve) {
    return curve.settings == log.log.settings;
  });
  if (found == curves.end()) {
    curves.push_back({});
    curves.back().settings = log.log.settings;
    curves.back().runs.push_back(std::move(log));
    return;
  }
  for (const NamedLog& run : found->runs) {
    if (run.log.seed != log.log.seed) continue;
    throw UsageError(
        fmt::format("{} and {} are the same run, of equal settings and seed {}; name it once",
                    run.file, log.file, run.log.seed));
  }
  found->runs.push_back(std::move(log));
}

double default_target(AccuracyStudy& study) {
  std::optional<double> target;
  for (const AccuracyCurve& curve : study.curves) {
    const std::optional<double> highest = highest_mean(curve);
    if (!highest) {
      study.notes.push_back(fmt::format(
          "{} has no accuracy that is a number, and is left out of the target", curve.name));
    } else {
      target = std::min(target.value_or(1), *highest);
    }
  }
  if (!target) throw UsageError("no log has an accuracy that is a number");
  return *target;
}

}  // namespace

AccuracyStudy accuracy_study(std::vector<NamedLog> logs, std::optional<double> target) {
  if (logs.empty()) throw UsageError("there is no training log");
  if (target && !(*target > 0 && *target <= 1)) {
    throw UsageError(fmt::format(
        "the target is an accuracy above 0 and at most 100 % (it is {:g} %)", 100 * *target));
  }
  AccuracyStudy study;
  for (NamedLog& log : logs) add_log(study.curves, std::move(log));
  std::vector<TrainingSettings> settings;
  for (AccuracyCurve& curve : study.curves) {
    std::sort(curve.runs.begin(), curve.runs.end(),
              [](const NamedLog& a, const NamedLog& b) { return a.log.seed < b.log.seed; });
    settings.push_back(curve.settings);
    add_points(curve);
    add_lengths(curve);
  }
  const std::vector<std::string> names = curve_names(settings);
  for (std::size_t i = 0; i < names.size(); ++i) study.curves[i].name = names[i];
  study.target_given = target.has_value();
  study.target = target ? *target : default_target(study);
  for (AccuracyCurve& curve : study.curves) {
    reach(curve, study.target);
    add_notes(study, curve);
  }
  for (std::size_t i = 0; i < study.curves.size(); ++i) {
    AccuracyCurve& curve = study.curves[i];
    curve.base = base_of(study.curves, i);
    if (!curve.base) continue;
    const AccuracyCurve& base = study.curves[*curve.base];
    if (!curve.all_reach() || !base.all_reach() || curve.reached.time == Time{}) continue;
    curve.speedup = to_seconds(base.reached.time) / to_seconds(curve.reached.time);
  }
  return study;
}

}  // namespace stageline::lab
