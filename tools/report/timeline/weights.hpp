// Weight versions over time, shared by all pictures and reports.
#pragma once

#include <string>
#include <vector>

#include "sim/analysis/versions.hpp"
#include "sim/program.hpp"
#include "sim/text/figure.hpp"
#include "sim/timeline.hpp"

namespace stageline::report {

/// From time `at` on, `versions` are held, including the newest.
struct HeldPoint {
  Time at{};
  int versions = 1;

  friend bool operator==(const HeldPoint&, const HeldPoint&) = default;
};

/// One stage on one device: a step curve that begins with 1 at time 0. No two points have the same
/// time, and no two neighbours the same number.
struct HeldCurve {
  int stage = 0;
  int device = 0;
  std::vector<HeldPoint> points;

  int peak() const;
};

/// One curve per device of each stage, by stage and then device. `versions` by stage.
std::vector<HeldCurve> versions_held(const Program& program,
                                     const std::vector<StageVersions>& versions);

/// The maximum over the devices of a stage, at every time.
HeldCurve most_held(const std::vector<HeldCurve>& curves);

/// Whether every forward and backward reads the newest weights, and no older ones are held.
bool is_fresh(const StageVersions& stage);
bool all_fresh(const std::vector<StageVersions>& versions);

/// "0:1 1:1 2:6": one micro-batch without staleness, one stale by one update, six by two.
std::string staleness_counts(const StageVersions& stage);

/// "2", "0–3": from the least to the greatest staleness of a micro-batch.
std::string staleness_range(const StageVersions& stage);

/// Digits below a figure() with the same options, a row per stage: the maximum of versions held in
/// the column over the stage's devices; '+' for ten or more. Lines " s0 |1122\n"; "" where every
/// stage holds one version throughout.
std::string held_figure(const Program& program, const Timeline& timeline,
                        const std::vector<StageVersions>& versions, FigureOptions options = {});

/// The key of the digits, and the staleness of each stage's micro-batches, in two lines; "" where
/// all is fresh.
std::string held_legend(const std::vector<StageVersions>& versions);

}  // namespace stageline::report
