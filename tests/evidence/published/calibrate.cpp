// Does a calibration find the rates that steps were made with, and refuse what it cannot use?
#include "tools/published/calibrate.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include "sim/base/errors.hpp"
#include "tools/base/files.hpp"

namespace stageline::calibrate_tests {
namespace {

// Small GPTs of Megatron-LM on one machine.
std::string small_points() {
  std::string csv =
      "id,source,model,layers,hidden,heads,vocab,seq,hardware,gpus,precision,tp,pp,dp,micro_batch,"
      "global_batch,schedule,recompute,step_time_s,split\n";
  int id = 0;
  for (const int hidden : {2048, 4096}) {
    for (const int tensor : {1, 2, 4}) {
      for (const int batch : {8, 16, 32}) {
        csv += "p" + std::to_string(++id) + ",small runs," + std::to_string(hidden) + " wide,4," +
               std::to_string(hidden) + ",32,51200,1024,A100-80GB SXM," +
               std::to_string(2 * tensor) + ",," + std::to_string(tensor) + ",2,1,1," +
               std::to_string(batch) + ",1f1b,none,1,calibrate\n";
      }
    }
  }
  return csv;
}

KernelRates a100() { return find_chip_rates("a100")->rates; }

// As measured on a chip of these rates, with deviations of 1 % and one run that is 40 % slow.
std::vector<Point> measured_with(const KernelRates& rates) {
  std::vector<Point> points = read_points(small_points(), "small.csv");
  const Calibration truth{"a100", rates, {}, {}, "", ""};
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double deviation = (i % 3 == 0 ? 1.01 : i % 3 == 1 ? 0.99 : 1.0) * (i == 7 ? 1.4 : 1.0);
    points[i].step_time = deviation * predicted(question_of(points[i], truth)).step;
  }
  return points;
}

CalibrateRequest request() {
  CalibrateRequest asked;
  asked.file = "small.csv";
  asked.date = "2026-11-23";
  asked.threads = 2;
  return asked;
}

}  // namespace

TEST_CASE("a calibration finds the rates of the chip that steps were measured on") {
  KernelRates truth = a100();
  truth.gemm = 0.7;
  const std::vector<Point> points = measured_with(truth);
  const PointsCalibration found = calibrate_points(points, request());
  CHECK(found.refused.empty());
  CHECK(found.other_devices == 0);
  CHECK(found.points.size() == points.size());
  CHECK(found.fit.groups == 6);
  CHECK(found.fit.before.mean > found.fit.after.mean);
  const Calibration& calibration = found.calibration;
  CHECK(calibration.kind == "a100");
  CHECK(calibration.rates.gemm == doctest::Approx(0.7).epsilon(0.03));
  CHECK(calibration.rates.memory == a100().memory);
  REQUIRE(!calibration.fitted.empty());
  CHECK(calibration.fitted[0].name == "gemm");
  CHECK(calibration.fitted[0].value == calibration.rates.gemm);
  CHECK(calibration.fitted[0].standard_error > 0);
  CHECK(calibration.fitted[0].standard_error < 0.1);
  REQUIRE(calibration.residuals.size() == points.size());
  CHECK(calibration.residuals[7].point == "p8");
  CHECK(calibration.residuals[7].measured == *points[7].step_time);
  CHECK(found.fit.after.worst_step == 7);
  CHECK(calibration.source == "small.csv, 18 rows: small runs (18)");
  CHECK(calibration.date == "2026-11-23");

  // What is written is what a simulation reads, and predicts the same.
  const Calibration read = read_calibration(print_calibration(calibration), "a100.json");
  CHECK(read == calibration);
  CHECK(predicted(question_of(points[3], read)).step == calibration.residuals[3].predicted);

  const std::string text = calibration_text(found, "small.csv", 0);
  CHECK(text.find("Rates of a100 from 18 rows of small.csv, in 6 groups") == 0);
  CHECK(text.find("gemm (e_g)") != std::string::npos);
  CHECK(text.find("(line 9, id p8)") != std::string::npos);
}

TEST_CASE("threads do not change a calibration") {
  KernelRates truth = a100();
  truth.step = 0.2;
  const std::vector<Point> points = measured_with(truth);
  CalibrateRequest asked = request();
  asked.free = {"gemm", "step"};
  asked.threads = 1;
  const PointsCalibration alone = calibrate_points(points, asked);
  asked.threads = 3;
  CHECK(calibrate_points(points, asked).calibration == alone.calibration);
  CHECK(alone.calibration.fitted.size() == 2);
  CHECK(alone.calibration.rates.step == doctest::Approx(0.2).epsilon(0.1));
}

TEST_CASE("rows that cannot be used are refused by line") {
  std::vector<Point> points = measured_with(a100());
  points.resize(8);
  points[1].split = "oracle";
  points[2].step_time.reset();
  points[3].gpus = 3;
  points[4].hardware = "a machine of nobody's";
  const PointsCalibration found = calibrate_points(points, request());
  CHECK(found.points.size() == 4);
  REQUIRE(found.refused.size() == 4);
  CHECK(found.refused[0].line == 3);
  CHECK(found.refused[0].id == "p2");
  CHECK(found.refused[0].reason == "its split is \"oracle\": it is kept to judge the model by");
  CHECK(found.refused[1].reason == "it states no step time, nor tokens/s");
  CHECK(found.refused[2].reason == question_of(points[3]).why_not);
  CHECK(found.refused[3].reason == question_of(points[4]).why_not);
  const std::string text = calibration_text(found, "small.csv", 0);
  CHECK(text.find("4 rows refused:\n  line 3: its split is") != std::string::npos);

  for (Point& point : points) point.split = "oracle";
  CHECK_THROWS_WITH_AS(calibrate_points(points, request()),
                       "small.csv: none of 8 rows can be calibrated on; line 2: its split is "
                       "\"oracle\": it is kept to judge the model by",
                       UsageError);
  CHECK_THROWS_WITH_AS(calibrate_points({}, request()), "small.csv has no rows", UsageError);
}

TEST_CASE("a calibration is of one kind of device") {
  std::vector<Point> points = measured_with(a100());
  for (std::size_t i = 0; i < 6; ++i) points[i].hardware = "DGX-H100";
  CHECK_THROWS_WITH_AS(calibrate_points(points, request()),
                       "small.csv has rows of a100 (12 rows), h100 (6), and a calibration is of "
                       "one kind of device; choose it by --kind a100",
                       UsageError);
  CalibrateRequest asked = request();
  asked.free = {"gemm"};
  asked.device = "h100";
  const PointsCalibration found = calibrate_points(points, asked);
  CHECK(found.calibration.kind == "h100");
  CHECK(found.points.size() == 6);
  CHECK(found.other_devices == 12);
  asked.device = "v100";
  CHECK_THROWS_WITH_AS(
      calibrate_points(points, asked),
      "small.csv has no row of v100 (did you mean \"h100\"?), but of a100 (12 rows), "
      "h100 (6)",
      UsageError);
}

// "–" where a chip has no such peak.
TEST_CASE("the page states the constants that are built in") {
  const char* const source = std::getenv("STAGELINE_SOURCE");
  REQUIRE(source != nullptr);
  const std::string page = read_text(std::string(source) + "/cost_models/README.md");
  for (const KernelConstant& constant : kernel_constants()) {
    std::string line =
        "\n| `" + std::string(constant.name) + "` | " + std::string(constant.symbol) + " |";
    for (const ChipRates& chip : chip_rates()) {
      const bool without =
          (constant.name == "gemm_8bit" && chip.kind == "a100") ||
          (constant.name == "gemm_4bit" && !chip.kind.ends_with("b200") && chip.kind != "gb300");
      line += " " + (without ? "–" : constant_text(constant, chip.rates.*constant.member)) + " |";
    }
    CAPTURE(line);
    CHECK(page.find(line) != std::string::npos);
  }
}

}  // namespace stageline::calibrate_tests
