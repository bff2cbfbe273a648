// The deviations of predictions from published measurements, by source and role.
#pragma once

#include <string>
#include <vector>

#include "tools/published/judged_points.hpp"

namespace stageline {

/// Figures of |predicted / measured − 1|, as shares, but the bias: the mean with its sign.
struct DeviationFigures {
  int rows = 0;
  double mean = 0;
  double median = 0;
  double p95 = 0;             // by linear interpolation, as NumPy's percentile
  double worst = 0;           // with its sign
  std::size_t worst_row = 0;  // index in the judged points
  double bias = 0;
};

/// Figures are of the rows (indices) for which `deviation` has a value.
enum class Deviation : std::uint8_t { step, memory };
DeviationFigures deviation_figures(const std::vector<JudgedPoint>& judged,
                                   const std::vector<std::size_t>& rows, Deviation deviation);

/// The rows of one source in one role.
struct PointGroup {
  std::string source;
  PointRole role = PointRole::judged;
  std::vector<std::size_t> rows;  // indices in the judged points
  int unanswered = 0;
  DeviationFigures step;
  DeviationFigures memory;
};

/// Pairs of rows that differ in their schedule alone, and whose measured steps differ by more than
/// 2 %: whether the predicted ones have the same order.
struct ScheduleOrder {
  int pairs = 0;
  int right = 0;
};

struct PublishedSummary {
  std::vector<PointGroup>
      groups;  // sources in the order of the rows; roles in that of all_point_roles
  ScheduleOrder order;
};
PublishedSummary summary_of(const std::vector<JudgedPoint>& judged);

/// A reason why rows have no prediction, with how many of them.
struct Unanswered {
  std::string why;
  std::vector<std::string> ids;
};
std::vector<Unanswered> unanswered_of(const std::vector<JudgedPoint>& judged);

}  // namespace stageline
