// Predicts rows and compares them with what was measured.
#include "tools/published/judged_points.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>

#include "sim/base/errors.hpp"

namespace stageline {
namespace {

constexpr std::string_view with_pace = "Zero Bubble";  // sources that begin so
constexpr double pace_tolerance = 1e-4;                // of the measured step
constexpr int most_guesses = 12;

bool takes_pace(const Point& point) { return point.source.starts_with(with_pace); }

// Rows with equal keys differ in the number of micro-batches.
auto configuration_of(const Point& point) {
  return std::make_tuple(point.source, point.model, point.hardware, point.gpus, point.tensor,
                         point.pipeline, point.chunks, point.data, point.micro_batch,
                         point.schedule, point.seq);
}

// For the rows whose pace is fitted: the row with the fewest micro-batches of the same
// configuration, if there are several numbers of them.
std::vector<std::optional<std::size_t>> smallest_of(const std::vector<Point>& points) {
  using Key = decltype(configuration_of(points.front()));
  std::map<Key, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (takes_pace(points[i])) groups[configuration_of(points[i])].push_back(i);
  }
  std::vector<std::optional<std::size_t>> smallest(points.size());
  for (const auto& [key, rows] : groups) {
    const auto fewer = [&points](std::size_t a, std::size_t b) {
      return points[a].global_batch < points[b].global_batch;
    };
    const auto [least, most] = std::minmax_element(rows.begin(), rows.end(), fewer);
    if (points[*least].global_batch == points[*most].global_batch) continue;
    for (const std::size_t row : rows) smallest[row] = *least;
  }
  return smallest;
}

class PointJudge {
 public:
  PointJudge(const std::vector<Point>& points, const JudgeRequest& request)
      : points_(points), request_(request), smallest_(smallest_of(points)) {}

  std::vector<JudgedPoint> judge() {
    std::vector<JudgedPoint> judged;
    for (std::size_t i = 0; i < points_.size(); ++i) {
      judged.push_back(judge(i));
      if (request_.progress) request_.progress(i + 1);
    }
    return judged;
  }

 private:
  JudgedPoint judge(std::size_t row) {
    JudgedPoint judged;
    judged.point = points_[row];
    judged.role = role_of(row);
    judged.measured_step = measured_step(judged.point);
    try {
      if (smallest_[row]) judged.pace = pace_of(*smallest_[row]);
      judged.question = request_.ask(judged.point, judged.pace);
      judged.why_not = judged.question.why_not;
      if (judged.why_not.empty()) judged.prediction = request_.predict(judged.question);
    } catch (const UsageError& error) {
      judged.why_not = error.what();
    } catch (const TraceError& error) {
      judged.why_not = error.what();
    } catch (const ProgramError& error) {
      judged.why_not = error.what();
    }
    if (!judged.prediction) return judged;
    if (!judged.measured_step) {
      if (std::optional<StepOfRate> rate = step_of_rate(judged.point, *judged.prediction)) {
        judged.measured_step = rate->seconds;
        if (!rate->how.empty()) judged.question.assumptions.push_back(std::move(rate->how));
      }
    }
    if (judged.measured_step) {
      judged.step_deviation = judged.prediction->step / *judged.measured_step - 1;
    }
    const std::optional<double>& memory = judged.point.memory;
    if (memory && *memory > 0 && judged.prediction->memory > 0) {
      judged.memory_deviation = judged.prediction->memory / *memory - 1;
    }
    return judged;
  }

  PointRole role_of(std::size_t row) const {
    const Point& point = points_[row];
    if (smallest_[row] == row) return PointRole::fitted;
    if (request_.calibration) {
      for (const Calibration::Residual& residual : request_.calibration->residuals) {
        if (residual.point == point.id) return PointRole::fitted;
      }
    }
    return point.split == "calibrate" ? PointRole::calibrate : PointRole::judged;
  }

  RunPace pace_of(std::size_t row) {
    const auto known = paces_.find(row);
    if (known != paces_.end()) return known->second;
    const RunPace pace = fitted_pace(points_[row], request_);
    paces_.emplace(row, pace);
    return pace;
  }

  const std::vector<Point>& points_;
  const JudgeRequest& request_;
  std::vector<std::optional<std::size_t>> smallest_;
  std::map<std::size_t, RunPace> paces_;
};

}  // namespace

std::string_view name(PointRole role) {
  switch (role) {
    case PointRole::fitted:
      return "fitted";
    case PointRole::calibrate:
      return "calibrate";
    case PointRole::judged:
      return "judged";
  }
  return "";  // unreachable; g++ wants it
}

RunPace fitted_pace(const Point& point, const JudgeRequest& request) {
  const std::optional<double> measured = measured_step(point);
  if (!measured) return {};
  const double alone = request.predict(request.ask(point, {})).step;
  const double ops = 3.0 * point.chunks * static_cast<double>(microbatches_of(point));
  const bool too_short = alone < *measured;
  // A step is nearly linear in the cost of an op, and in the time of compute.
  const auto pace_at = [too_short](double x) {
    return too_short ? RunPace{x, 1} : RunPace{0, 1 / (1 - x)};
  };
  const auto excess = [&](double x) {
    return request.predict(request.ask(point, pace_at(x))).step - *measured;
  };
  double before = 0;
  double before_excess = alone - *measured;
  double now = too_short ? -before_excess / ops : before_excess / alone;
  for (int i = 0; i < most_guesses; ++i) {
    const double now_excess = excess(now);
    if (std::abs(now_excess) <= pace_tolerance * *measured) break;
    const double slope = (now_excess - before_excess) / (now - before);
    before = std::exchange(now, now - now_excess / slope);
    before_excess = now_excess;
    now = too_short ? std::max(now, 0.0) : std::clamp(now, 0.0, 0.9);
    if (now == before) break;
  }
  return pace_at(now);
}

std::vector<JudgedPoint> judge_points(const std::vector<Point>& points,
                                      const JudgeRequest& request) {
  JudgeRequest complete = request;
  if (!complete.ask) {
    complete.ask = [&request](const Point& point, const RunPace& pace) {
      return question_of(point, request.calibration, pace);
    };
  }
  if (!complete.predict) complete.predict = predicted;
  return PointJudge(points, complete).judge();
}

}  // namespace stageline
