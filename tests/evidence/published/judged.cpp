// Are deviations, roles and the fitted cost of an op what one works out by hand?
#include <doctest/doctest.h>

#include "sim/base/errors.hpp"
#include "tests/evidence/published/sample_points.hpp"
#include "tools/published/summary.hpp"

namespace stageline::judged_tests {

using test::pipeline_row;
using test::points_csv;
using test::with;

namespace {

// A simulator whose step is 1 s and 0.1 s a micro-batch at rate 1, and for each of them 100 times
// the cost of an op; memory 30 GiB.
JudgeRequest made_up(std::optional<Calibration> calibration = {}) {
  JudgeRequest request;
  request.calibration = std::move(calibration);
  request.ask = [](const Point& point, const RunPace& pace) {
    Question question;
    question.request.setting.microbatches = static_cast<int>(microbatches_of(point));
    question.request.setting.degrees.precision.weights = pace.op_cost;
    question.request.setting.degrees.precision.gradients = pace.rate;
    if (point.note == "refused") question.why_not = "a made-up reason";
    return question;
  };
  request.predict = [](const Question& question) {
    const SettingRequest& setting = question.request.setting;
    PointPrediction prediction;
    prediction.step = (1 + 0.1 * setting.microbatches) / setting.degrees.precision.gradients +
                      100 * setting.degrees.precision.weights * setting.microbatches;
    prediction.memory = 30.0 * 1024 * 1024 * 1024;
    return prediction;
  };
  return request;
}

std::vector<Point> points_of(const std::vector<std::map<std::string, std::string>>& rows) {
  return read_points(points_csv(rows), "points.csv");
}

}  // namespace

TEST_CASE("a row's deviations are predicted over measured, less one") {
  const auto judged =
      judge_points(points_of({with(pipeline_row(), {{"step_time_s", "4"}})}), made_up());
  REQUIRE(judged.size() == 1);
  CHECK(judged[0].role == PointRole::judged);
  CHECK(*judged[0].step_deviation == doctest::Approx(3.4 / 4 - 1));
  CHECK(*judged[0].memory_deviation == doctest::Approx(-0.25));
  CHECK(judged[0].pace == RunPace{});
}

TEST_CASE("a row that prints a rate alone is judged by it") {
  JudgeRequest request = made_up();
  request.predict = [](const Question&) {
    PointPrediction prediction;
    prediction.step = 2;
    prediction.flops_per_gpu = 300e12;
    prediction.mfu = 0.3;
    prediction.tokens_per_gpu_second = 500;
    return prediction;
  };
  const auto judged = [&](const std::map<std::string, std::string>& cells) {
    const auto row = with(with(pipeline_row(), {{"step_time_s", ""}, {"source", "mine"}}), cells);
    return judge_points(points_of({row}), request).front();
  };
  // 2 s at 300 TFLOP/s are 1.5 s at 400.
  const JudgedPoint tflops = judged({{"tflops_per_gpu", "400"}});
  CHECK(*tflops.measured_step == doctest::Approx(1.5));
  CHECK(*tflops.step_deviation == doctest::Approx(2 / 1.5 - 1));
  REQUIRE(tflops.question.assumptions.size() == 1);
  CHECK(tflops.question.assumptions[0].find("printed TFLOP/s") != std::string::npos);
  CHECK(*judged({{"mfu_pct", "40"}}).measured_step == doctest::Approx(1.5));
  // The batch is not printed, the rate of tokens is.
  const JudgedPoint tokens = judged({{"tokens_per_s_per_gpu", "1000"}, {"global_batch", ""}});
  CHECK(*tokens.measured_step == doctest::Approx(1));
  // What the hardware does is not what the model needs where something is recomputed.
  const JudgedPoint again =
      judged({{"tflops_per_gpu", "400"}, {"tflops_kind", "hardware"}, {"recompute", "full"}});
  CHECK_FALSE(again.measured_step);
  CHECK(judged({{"tflops_per_gpu", "400"}, {"tflops_kind", "hardware"}}).measured_step);
}

TEST_CASE("roles: rows of a calibration, rows offered for one, and the rest") {
  Calibration calibration;
  calibration.residuals = {{"1", 2.5, 2.4}};
  const auto judged = judge_points(
      points_of({with(pipeline_row(), {{"source", "A"}, {"split", "calibrate"}}),
                 with(pipeline_row(), {{"id", "2"}, {"source", "A"}, {"split", "calibrate"}}),
                 with(pipeline_row(), {{"id", "3"}, {"source", "A"}, {"split", "oracle"}})}),
      made_up(calibration));
  CHECK(judged[0].role == PointRole::fitted);
  CHECK(judged[1].role == PointRole::calibrate);
  CHECK(judged[2].role == PointRole::judged);
  const PublishedSummary summary = summary_of(judged);
  REQUIRE(summary.groups.size() == 3);
  for (const PointGroup& group : summary.groups) CHECK(group.step.rows == 1);
}

TEST_CASE("the fewest micro-batches give the cost of an op, and the others are judged with it") {
  // 24 micro-batches: 3.4 s without a cost. With 1 ms an op 5.8 s.
  const auto judged = judge_points(
      points_of(
          {with(pipeline_row(), {{"step_time_s", "5.8"}}),
           with(pipeline_row(), {{"id", "2"}, {"global_batch", "144"}, {"step_time_s", "10"}}),
           with(pipeline_row(), {{"id", "3"}, {"schedule", "zb_1p"}})}),
      made_up());
  CHECK(judged[0].role == PointRole::fitted);
  CHECK(judged[0].pace.op_cost == doctest::Approx(1e-3).epsilon(1e-3));
  CHECK(std::abs(*judged[0].step_deviation) <= 1e-4);
  CHECK(judged[1].role == PointRole::judged);
  CHECK(judged[1].pace == judged[0].pace);
  CHECK(*judged[1].step_deviation == doctest::Approx(0.06).epsilon(1e-2));
  CHECK(judged[2].pace == RunPace{});  // one number of micro-batches alone
  CHECK(judged[2].role == PointRole::judged);
}

TEST_CASE("a step that is too long without a cost gives the rate of the devices") {
  const RunPace pace = fitted_pace(points_of({pipeline_row()}).front(), made_up());
  CHECK(pace.op_cost == 0);
  CHECK(pace.rate == doctest::Approx(3.4 / 2.5).epsilon(1e-3));
}

TEST_CASE("figures are means, percentiles, the worst and the bias") {
  std::vector<std::map<std::string, std::string>> rows;
  // Predicted 3.4 s: deviations 0.1, -0.2, 0.3, and one that is refused.
  int id = 0;
  for (const double deviation : {0.1, -0.2, 0.3}) {
    rows.push_back(with(pipeline_row(), {{"id", std::to_string(++id)},
                                         {"source", "A"},
                                         {"schedule", "s" + std::to_string(id)},
                                         {"step_time_s", std::to_string(3.4 / (1 + deviation))}}));
  }
  rows.push_back(with(pipeline_row(), {{"id", "4"}, {"source", "A"}, {"note", "refused"}}));
  const auto judged = judge_points(points_of(rows), made_up());
  const PublishedSummary summary = summary_of(judged);
  REQUIRE(summary.groups.size() == 1);
  const DeviationFigures& step = summary.groups.front().step;
  CHECK(step.rows == 3);
  CHECK(step.mean == doctest::Approx(0.2).epsilon(1e-4));
  CHECK(step.median == doctest::Approx(0.2).epsilon(1e-4));
  CHECK(step.p95 == doctest::Approx(0.29).epsilon(1e-4));
  CHECK(step.worst == doctest::Approx(0.3).epsilon(1e-4));
  CHECK(step.worst_row == 2);
  CHECK(step.bias == doctest::Approx(0.2 / 3).epsilon(1e-4));
  CHECK(summary.groups.front().memory.mean == doctest::Approx(0.25));
  CHECK(summary.groups.front().unanswered == 1);
  CHECK(unanswered_of(judged).front().why == "a made-up reason");
  CHECK(unanswered_of(judged).front().ids == std::vector<std::string>{"4"});
}

TEST_CASE("the order of schedules counts pairs of the same work that differ by more than 2 %") {
  JudgeRequest request = made_up();
  request.predict = [](const Question& question) {
    PointPrediction prediction;
    prediction.step = question.request.setting.degrees.precision.gradients;
    return prediction;
  };
  request.ask = [](const Point& point, const RunPace&) {
    Question question;
    question.request.setting.degrees.precision.gradients = point.schedule == "1f1b"    ? 3
                                                           : point.schedule == "zb_1p" ? 2
                                                                                       : 2.5;
    return question;
  };
  const auto judged = judge_points(
      points_of({with(pipeline_row(), {{"step_time_s", "3"}}),
                 with(pipeline_row(), {{"id", "2"}, {"schedule", "zb_1p"}, {"step_time_s", "2.5"}}),
                 with(pipeline_row(), {{"id", "3"}, {"schedule", "zb_2p"}, {"step_time_s", "2"}}),
                 with(pipeline_row(), {{"id", "4"}, {"schedule", "zb_v"}, {"step_time_s", "2.51"}}),
                 with(pipeline_row(), {{"id", "5"}, {"gpus", "8"}, {"model", "other"}})}),
      request);
  const ScheduleOrder order = summary_of(judged).order;
  CHECK(order.pairs == 5);  // all six but 1p against V
  CHECK(order.right == 3);  // 2p is not faster than 1p by the prediction, nor than V
}

}  // namespace stageline::judged_tests
