// Does a calibration on few runs of a software say what it rests on, and refuse what cannot be?
#include "tools/published/few_runs.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cost_models/transformers/priced_language.hpp"
#include "sim/base/errors.hpp"
#include "tools/answers/simulated.hpp"
#include "tools/base/files.hpp"
#include "tools/published/calibrate.hpp"
#include "tools/published/logged_steps.hpp"
#include "traces/logs/training_log.hpp"

namespace stageline::few_runs_tests {
namespace {

// Small GPTs of Megatron-Core on one machine of A100, as measured with these rates.
std::vector<Point> small_runs(const KernelRates& rates) {
  std::string csv =
      "id,source,model,layers,hidden,heads,vocab,seq,hardware,gpus,framework,precision,tp,pp,dp,"
      "micro_batch,global_batch,schedule,recompute,step_time_s,tokens_per_s_per_gpu,log\n";
  int id = 0;
  for (const int hidden : {2048, 4096, 8192}) {
    for (const int tensor : {1, 4}) {
      csv += fmt::format(
          "p{0},mine,{1} wide,4,{1},32,51200,2048,A100-80GB SXM,{2},Megatron-Core,bf16,{3},2,1,1,16,"
          "1f1b,none,1,,\n",
          ++id, hidden, 2 * tensor, tensor);
    }
  }
  std::vector<Point> points = read_points(csv, "mine.csv");
  const Calibration truth{"a100", rates, {}, {}, "", ""};
  for (Point& point : points) point.step_time = predicted(question_of(point, truth)).step;
  return points;
}

KernelRates slower() {
  KernelRates rates = find_chip_rates("a100")->rates;
  rates.gemm *= 0.88;
  rates.memory *= 0.9;
  return rates;
}

CalibrateRequest request() {
  CalibrateRequest asked;
  asked.file = "mine.csv";
  asked.date = "2026-11-30";
  return asked;
}

std::vector<Point> first(std::vector<Point> points, std::size_t count) {
  points.resize(count);
  return points;
}

std::optional<Interval> range_of_step(const std::string& trace, const std::string& calibration) {
  answers::SimulationQuestion question;
  question.setting.trace = trace;
  question.setting.cluster.cluster = "a100x8";
  question.setting.calibration = calibration;
  question.setting.microbatches = 8;
  question.setting.degrees.pipeline = 8;
  const answers::Simulation found = answer(question);
  return intervals_of(found.asked.model, found.asked.ranked.get()).step;
}

std::string refusal(const std::vector<Point>& points) {
  try {
    calibrate_points(points, request());
  } catch (const UsageError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("few runs: three runs give every constant a posterior, which predicts the others") {
  const std::vector<Point> points = small_runs(slower());
  const PointsCalibration found = calibrate_points(first(points, 3), request());
  CHECK(found.few);
  CHECK(found.calibration.fitted.size() > 3);
  const KernelRates& prior = find_chip_rates("a100")->rates;
  CHECK(found.calibration.rates.gemm < prior.gemm);
  for (const Calibration::Fitted& one : found.calibration.fitted) {
    CHECK(one.standard_error > 0);  // no constant is known from three rows alone
  }
  for (std::size_t i = 3; i < points.size(); ++i) {
    CAPTURE(i);
    const double before = predicted(question_of(points[i])).step / *points[i].step_time - 1;
    const double after =
        predicted(question_of(points[i], found.calibration)).step / *points[i].step_time - 1;
    CHECK(std::abs(after) < 0.03);
    CHECK(std::abs(after) < std::abs(before) / 2);
  }
}

TEST_CASE("few runs: more rows draw the constants nearer") {
  const std::vector<Point> points = small_runs(slower());
  double last = find_chip_rates("a100")->rates.gemm;
  for (const std::size_t count : {1, 3, 6}) {
    const double now = calibrate_points(first(points, count), request()).calibration.rates.gemm;
    CAPTURE(count);
    CHECK(now < last);
    last = now;
  }
  CHECK(last > slower().gemm * 0.98);
}

TEST_CASE("few runs: the file says what it rests on, and answers of that class carry the range") {
  const PointsCalibration found = calibrate_points(first(small_runs(slower()), 3), request());
  REQUIRE(found.calibration.rests_on.size() == 1);
  const CalibratedRuns& runs = found.calibration.rests_on.front();
  CHECK(runs.software == "megatron-core-2024");
  CHECK(runs.kind == "dense");
  CHECK(runs.products == "16");
  CHECK(runs.rows == 3);
  const std::string text = print_calibration(found.calibration);
  CHECK(read_calibration(text, "mine.json") == found.calibration);
  CHECK(
      calibration_text(found, "mine.csv", 0)
          .find("It rests on 3 runs of dense models with 16-bit products by megatron-core-2024: 80 "
                "% of others lie within") != std::string::npos);

  const std::string dense = "model:llama3-8b@a100,software=megatron-core-2024";
  const std::optional<Interval> before = range_of_step(dense, "");
  const std::optional<Interval> after = range_of_step(dense, text);
  REQUIRE(before);
  REQUIRE(after);
  CHECK(before->calibrated == 0);
  CHECK(after->calibrated == 3);
  CHECK(after->low == doctest::Approx(runs.low));
  CHECK(after->high == doctest::Approx(runs.high));
  CHECK(after->high - after->low < before->high - before->low);
  CHECK(provenance_of(*after).find("a calibration rests on 3 of them") != std::string::npos);
  // Of other software, experts, and rates by hand nothing is claimed.
  for (const char* const other : {"model:llama3-8b@a100", "model:llama3-8b@a100,software=fsdp-2023",
                                  "model:mixtral-8x7b@a100,software=megatron-core-2024",
                                  "model:llama3-8b@a100,software=megatron-core-2024,gemm=0.7"}) {
    CAPTURE(other);
    REQUIRE(range_of_step(other, text));
    CHECK(range_of_step(other, text)->calibrated == 0);
    CHECK(range_of_step(other, text)->high == range_of_step(other, "")->high);
  }
}

TEST_CASE("few runs: a file that rests on what cannot be is refused by place") {
  const std::string good =
      R"({"software": "fsdp-2023", "kind": "dense", "products": "16", "rows": 3, "low": 0.9, "high": 1.1})";
  const auto refused = [&](const std::string& old, const std::string& by) {
    std::string item = good;
    item.replace(item.find(old), old.size(), by);
    return R"({"format": "stageline-calibration 1", "kind": "a100", "rates": {}, "rests_on": [)" +
           item + "]}";
  };
  CHECK(read_calibration(refused(": 3,", ": 4,"), "f.json").rests_on.front().rows == 4);
  const std::pair<const char*, std::pair<const char*, const char*>> wrong[] = {
      {"/rests_on/0/software: must be one of megatron-2021,", {"fsdp-2023", "mine"}},
      {"/rests_on/0/kind: must be one of dense, experts, not plain", {"dense", "plain"}},
      {"/rests_on/0/rows: must be a whole number from 1 on, not 0.5", {": 3,", ": 0.5,"}},
      {"/rests_on/0: the prediction must be within its range", {"0.9,", "1.05,"}},
  };
  for (const auto& one : wrong) {
    const std::string words = one.first;
    const auto& change = one.second;
    CAPTURE(words);
    try {
      read_calibration(refused(change.first, change.second), "f.json");
      FAIL("nothing was thrown");
    } catch (const TraceError& error) {
      const std::string said = error.what();
      CAPTURE(said);
      const std::string pointer = words.substr(0, words.find(':'));
      const std::string rest = words.substr(pointer.size() + 2);
      CHECK(said.find(pointer) != std::string::npos);
      CHECK(said.find(rest) != std::string::npos);
    }
  }
}

TEST_CASE("few runs: rows that disagree leave a range that holds them") {
  std::vector<Point> points = first(small_runs(find_chip_rates("a100")->rates), 1);
  points.push_back(points[0]);
  points[1].step_time = *points[1].step_time * 1.6;
  const Calibration calibration = calibrate_points(points, request()).calibration;
  REQUIRE(calibration.rests_on.size() == 1);
  const auto left = [&](std::size_t row) {
    return calibration.residuals[row].measured / calibration.residuals[row].predicted;
  };
  CHECK(calibration.rests_on.front().low <= left(0));
  CHECK(calibration.rests_on.front().high >= left(1));
  CHECK(left(1) / left(0) == doctest::Approx(1.6));
}

TEST_CASE("few runs: a kind without enough sources, or never held, keeps its range") {
  const RunClass dense{"known", "dense", "a100", "16", "whole", "short"};
  const EvidenceTable& table = bundled_evidence();
  const std::optional<Interval> one = remaining_interval(dense, table, 1);
  const std::optional<Interval> nine = remaining_interval(dense, table, 9);
  REQUIRE(one);
  REQUIRE(nine);
  CHECK(nine->high - nine->low < one->high - one->low);
  RunClass other = dense;
  other[1] = "experts";
  CHECK_FALSE(remaining_interval(other, table, 3));
  other = dense;
  other[chip_trait] = other_chip;
  CHECK_FALSE(remaining_interval(other, table, 3));
  const CalibratedRuns runs{"fsdp-2023", "experts", "16", 1};
  CHECK(calibrated_note(runs) ==
        "calibrated on 1 run (fsdp-2023, experts, products 16): the range of their class stays");
}

TEST_CASE("few runs: what cannot be is refused in a sentence") {
  const std::vector<Point> good = first(small_runs(slower()), 3);
  std::vector<Point> points = good;
  points[1].step_time = *points[1].step_time / 50;
  CHECK(refusal(points).find("mine.csv, line 3: a step of ") == 0);
  CHECK(refusal(points).find(" % of the devices' peak, more than there is") != std::string::npos);
  points = good;
  points[2].step_time = *points[2].step_time * 1000;
  CHECK(refusal(points).find("mine.csv, line 4: a step of ") == 0);
  CHECK(refusal(points).find("farther than any published run") != std::string::npos);
  points = good;
  points[0].tokens_per_gpu_second = 1000;
  CHECK(refusal(points).find("mine.csv, line 2: step_time_s is ") == 0);
  CHECK(refusal(points).find("they contradict each other") != std::string::npos);
  points = good;
  points[1].framework = "Megatron-DeepSpeed";
  CHECK(refusal(points) ==
        "mine.csv has runs of megatron-core-2024 (line 2) and of deepspeed-2021 (line 3), and a "
        "calibration on few rows is of one software; give the rows of one");
}

TEST_CASE("few runs: a row may name the log of its training") {
  const char* const root = std::getenv("STAGELINE_SOURCE");
  REQUIRE(root != nullptr);
  const std::string file = std::string(root) + "/tests/traces/logs/mine.csv";
  const auto named = [](const std::string& log, std::int64_t batch) {
    Point point;
    point.line = 2;
    point.log = log;
    point.global_batch = batch;
    return std::vector<Point>{point};
  };
  std::vector<Point> points = named("megatron.txt", 0);
  CHECK(take_logged_steps(points, file).size() == 1);  // on an update that was skipped
  REQUIRE(points[0].step_time);
  CHECK(points[0].global_batch > 0);
  const double step = *points[0].step_time;
  const LogSummary summary =
      summary_of(read_printed_log(read_text(std::string(root) + "/tests/traces/logs/megatron.txt"),
                                  "megatron.txt"),
                 "megatron.txt");
  CHECK(step == summary.seconds);
  points = named("torchtitan.txt", 8);
  take_logged_steps(points, file);
  CHECK(points[0].tokens_per_gpu_second);
  points = named("trainer_state.json", 0);
  CHECK(take_logged_steps(points, file).size() == 1);

  points = named("megatron.txt", 3);
  CHECK_THROWS_WITH_AS(
      take_logged_steps(points, file),
      doctest::Contains("line 2: global_batch is 3, and the log megatron.txt says"), UsageError);
  points = named("deepspeed.txt", 0);
  CHECK_THROWS_WITH_AS(take_logged_steps(points, file), doctest::Contains("fill in global_batch"),
                       UsageError);
  points = named("megatron.txt", 0);
  points[0].step_time = 1;
  CHECK_THROWS_WITH_AS(take_logged_steps(points, file),
                       doctest::Contains("a log and a measured step"), UsageError);
}

}  // namespace stageline::few_runs_tests
