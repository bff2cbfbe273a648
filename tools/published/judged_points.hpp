// Rows of published measurements with their predictions, and which of them a calibration has seen.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/published/points.hpp"

namespace stageline {

/// Whether a constant of the prediction was taken from the row. Rows of different roles are never
/// in one figure.
enum class PointRole : std::uint8_t {
  fitted,     // a constant was fitted to this row
  calibrate,  // its file offers the row for calibration (split is "calibrate"): built-in constants
              // may have been chosen with it in view
  judged,     // no constant was taken from it
};
inline constexpr std::array all_point_roles{PointRole::fitted, PointRole::calibrate,
                                            PointRole::judged};
/// "fitted".
std::string_view name(PointRole role);

struct JudgedPoint {
  Point point;
  PointRole role = PointRole::judged;
  Question question;
  std::string why_not;  // why it has no prediction; empty: it has one
  std::optional<PointPrediction> prediction;
  std::optional<double> measured_step;     // seconds
  std::optional<double> step_deviation;    // predicted / measured − 1
  std::optional<double> memory_deviation;  // likewise
  RunPace pace;                            // fitted to another row, or to this one
};

/// What rows are predicted with; the functions of points.hpp, or others in tests.
using AskPoint = std::function<Question(const Point&, const RunPace& pace)>;
using PredictQuestion = std::function<PointPrediction(const Question&)>;

struct JudgeRequest {
  std::optional<Calibration> calibration{};  // its residuals' rows are fitted
  AskPoint ask;                              // default: question_of() with the calibration
  PredictQuestion predict;                   // default: predicted()
  std::function<void(std::size_t done)> progress{};
};

/// In the order of the rows. A row that cannot be asked, or that the simulator refuses, says why.
///
/// Zero Bubble's rows: theory without a cost for each op is 6 to 13 % optimistic (Qi et al. 2023,
/// arXiv 2401.10241, tables 3 to 6). Where rows differ in the number of micro-batches alone, that
/// with the fewest gives the pace by which its step is met; it is fitted, and the others are judged
/// with that pace. Where there is one number of micro-batches, nothing is fitted.
std::vector<JudgedPoint> judge_points(const std::vector<Point>& points,
                                      const JudgeRequest& request = {});

/// One number with which the row's step is as measured to 1e-4: the cost of an op, where the step
/// is too short without one, else the rate of the devices.
RunPace fitted_pace(const Point& point, const JudgeRequest& request);

}  // namespace stageline
