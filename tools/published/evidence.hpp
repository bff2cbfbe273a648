// The errors of judged rows by class: the table that intervals are read off, and its test.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/published/judged_points.hpp"
#include "tools/study/evidence/evidence.hpp"

namespace stageline {

/// A run held against its prediction.
struct HeldRun {
  HeldFigure figure = HeldFigure::step;
  RunClass of;
  std::string source;
  double ratio = 1;  // measured / predicted
};

/// The question without the software of its row: no generation, no recipe's options, no rates of
/// kernels. Sizes, number format, degrees and schedule stay.
Question without_software(Question question);

/// The runs of all rows, asked as they ran and without their software. Rows that a constant was
/// fitted to, and closed forms, are no runs to judge by.
std::vector<HeldRun> held_runs(const std::vector<Point>& points, const JudgeRequest& request = {});

/// A row for each class that has runs, the narrowest and those around it.
///
/// Pooled quantiles of two-layer conformal prediction (Dunn, Wasserman and Ramdas 2023, Journal of
/// the American Statistical Association 118:544, arXiv 1809.07441, section 3.1): each source has
/// the same weight, however many runs it has, since the runs of one table share what is wrong with
/// them; beyond the largest residual is the weight of one mean run more, as ⌈(n + 1)·0.9⌉ of n has
/// it. A range always has the prediction in it, and reaches no further than `furthest` times the
/// mean error of its runs: of few runs the outermost alone would set it. Left out are classes below
/// the chip that are too small, or the same runs as the class around them.
inline constexpr double furthest = 3;
EvidenceTable evidence_of(const std::vector<HeldRun>& runs, const std::string& date);

/// The runs of each source against the ranges that all other sources give.
struct Coverage {
  HeldFigure figure = HeldFigure::step;
  std::string source;    // left out; empty: all together
  std::string software;  // RunClass's word; empty: both
  int rows = 0;
  int within = 0;
  double share() const { return rows > 0 ? static_cast<double>(within) / rows : 0; }
};
/// By figure: all together, then by source; of each both, with and without software.
std::vector<Coverage> coverage_of(const std::vector<HeldRun>& runs);

/// The page tools/guide/validation.md: coverage, and error and range by class.
std::string validation_page(const EvidenceTable& table, const std::vector<Coverage>& coverage,
                            const std::vector<std::string>& files);

}  // namespace stageline
