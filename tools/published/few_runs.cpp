// Checks few runs, and says what a calibration on them leaves.
#include "tools/published/few_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <utility>

#include "sim/base/errors.hpp"

namespace stageline {
namespace {

constexpr double most_apart = 1.05;  // of two figures of one step
constexpr double farthest = 4;       // no published run is farther from its prediction than 2.5

// Published runs left out of fits to 1, 2, 3, 6 and 9 others of their source, software and chip:
// the quantiles of 10 and 90 % of log(measured/predicted) over the half width of the class, each
// source with the same weight. Made by tests/evidence/published/runs_left_out.cpp, 2026-11-30.
constexpr std::array narrowings{
    Narrowing{1, -0.79, 0.79}, Narrowing{2, -0.67, 0.76}, Narrowing{3, -0.64, 0.74},
    Narrowing{6, -0.58, 0.68}, Narrowing{9, -0.51, 0.69},
};

// The traits that a calibration's runs share: software, kind, chip, products.
constexpr std::size_t shared_traits = chip_trait + 2;

std::string place_of(const Point& point, const std::string& file) {
  return fmt::format("{}, line {}", file, point.line);
}

void check_software(const std::vector<FewRun>& runs, const std::string& file) {
  const FewRun& first = runs.front();
  for (const FewRun& run : runs) {
    if (run.prediction.software == first.prediction.software) continue;
    throw UsageError(fmt::format(
        "{} has runs of {} (line {}) and of {} (line {}), and a calibration on few rows is of one "
        "software; give the rows of one",
        file, first.prediction.software, first.point->line, run.prediction.software,
        run.point->line));
  }
}

// A step and a rate of the same row.
void check_columns(const FewRun& run, const std::string& file) {
  const Point& point = *run.point;
  if (!point.step_time || !point.tokens_per_gpu_second) return;
  Point by_rate = point;
  by_rate.step_time.reset();
  const std::optional<double> other = measured_step(by_rate);
  if (!other) return;
  const double apart = *other / run.seconds;
  if (apart <= most_apart && apart >= 1 / most_apart) return;
  throw UsageError(fmt::format(
      "{}: step_time_s is {:.4g} s, and tokens_per_s_per_gpu with {} sequences of {} tokens on {} "
      "GPUs is a step of {:.4g} s: they contradict each other; check the batch, or give one of them",
      place_of(point, file), run.seconds, point.global_batch, point.seq, point.gpus, *other));
}

void check_size(const FewRun& run, const std::string& file) {
  const double ratio = run.seconds / run.prediction.step;
  const double mfu = run.prediction.mfu / ratio;
  if (mfu > 1) {
    throw UsageError(fmt::format(
        "{}: a step of {:.4g} s is {:.0f} % of the devices' peak, more than there is; check the "
        "unit, the number of GPUs and the batch",
        place_of(*run.point, file), run.seconds, 100 * mfu));
  }
  if (ratio <= farthest && ratio >= 1 / farthest) return;
  throw UsageError(fmt::format(
      "{}: a step of {:.4g} s is {:.2g} times the {:.4g} s predicted, farther than any published "
      "run; check the unit, the batch and the degrees (stageline explain names causes)",
      place_of(*run.point, file), run.seconds, ratio, run.prediction.step));
}

}  // namespace

void check_few_runs(const std::vector<FewRun>& runs, const std::string& file) {
  check_software(runs, file);
  for (const FewRun& run : runs) {
    check_columns(run, file);
    check_size(run, file);
  }
}

const Narrowing& narrowing_of(int rows) {
  const auto* found = narrowings.begin();
  for (const Narrowing& one : narrowings) {
    if (one.rows <= rows) found = &one;
  }
  return *found;
}

std::optional<Interval> remaining_interval(const RunClass& of, const EvidenceTable& table,
                                           int rows) {
  if (of[1] != "dense") return std::nullopt;
  std::optional<Interval> interval =
      find_interval(table, widened(of, shared_traits), HeldFigure::step);
  if (!interval || !interval->is_held) return std::nullopt;
  const double half = std::log(interval->high / interval->low) / 2;
  const Narrowing& narrowing = narrowing_of(rows);
  interval->low = std::exp(narrowing.low * half);
  interval->high = std::exp(narrowing.high * half);
  return interval;
}

std::vector<CalibratedRuns> rested_on_by(const std::vector<FewRun>& runs,
                                         const std::vector<double>& fitted) {
  std::map<RunClass, std::vector<double>> ratios;  // measured over fitted
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!runs[i].prediction.of) continue;
    ratios[widened(*runs[i].prediction.of, shared_traits)].push_back(runs[i].seconds / fitted[i]);
  }
  std::vector<CalibratedRuns> all;
  for (const auto& [of, of_class] : ratios) {
    const auto rows = static_cast<int>(of_class.size());
    CalibratedRuns one{runs.front().prediction.software, of[1], of[chip_trait + 1], rows};
    if (const auto interval = remaining_interval(of, bundled_evidence(), rows)) {
      const auto [least, most] = std::minmax_element(of_class.begin(), of_class.end());
      one.low = std::floor(1000 * std::min(interval->low, *least)) / 1000;
      one.high = std::ceil(1000 * std::max(interval->high, *most)) / 1000;
    }
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace stageline
