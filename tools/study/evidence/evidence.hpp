// How far published runs were from their predictions, by class: the ranges that answers carry.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/study/evidence/run_class.hpp"

namespace stageline {

enum class HeldFigure : std::uint8_t { step, memory };
/// "step", "memory".
std::string_view name(HeldFigure figure);

/// A row of the table: measured over predicted in the runs of a class.
struct ClassEvidence {
  HeldFigure figure = HeldFigure::step;
  RunClass of;
  int rows = 0;
  int sources = 0;
  double low = 0;         // the quantiles of 10 and 90 %, or 1 where that is outside; 0: too few
  double high = 0;        // runs, or of one source alone
  double mean_error = 0;  // of |measured / predicted − 1|, each source with the same weight
  std::string date;       // of the predictions, ISO 8601

  bool is_enough() const { return high > 0; }
};
using EvidenceTable = std::vector<ClassEvidence>;

/// A class has a range of its own from so many runs, of so many sources: the runs of one source
/// share its software, machine and way to measure, and say little of another's.
inline constexpr int fewest_runs = 10;
inline constexpr int fewest_sources = 2;

/// The range in which 80 % of the judged runs of a class lie, as factors of the prediction.
struct Interval {
  double low = 1;   // at most 1
  double high = 1;  // at least 1
  RunClass of;      // the class whose runs they are; as wide as it had to be
  int rows = 0;
  int sources = 0;
  bool is_held = true;  // false: no run of its kind on its chip, and the range is the widest of all
  int calibrated = 0;   // on so many runs of its software and class, whose range it is; 0: on none
};

/// That of the narrowest class around `of` with enough runs. Empty: the table has none.
std::optional<Interval> find_interval(const EvidenceTable& table, const RunClass& of,
                                      HeldFigure figure);

/// Both ranges of a run; empty where nothing is claimed.
struct Intervals {
  std::optional<Interval> step;
  std::optional<Interval> memory;
};
/// By the table that is bundled; the step's by the calibration, where that rests on few runs of the
/// same software and class. Empty where run_class() is.
Intervals intervals_of(const Model& model, const RankedCluster* ranked);

/// "80 % of 33 published runs of models with experts on H100 (2 sources, software stated) lie
/// within".
std::string provenance_of(const Interval& interval);

/// tools/study/evidence/evidence.csv.
const EvidenceTable& bundled_evidence();
/// Throws TraceError, which begins with `file` and the line.
EvidenceTable read_class_evidence(const std::string& csv, const std::string& file);
std::string print_class_evidence(const EvidenceTable& table);

}  // namespace stageline
