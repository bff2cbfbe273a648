// Are vTrain's files read, and does 1F1B compose its layers as vTrain's simulator does?
#include "tools/published/vtrain.hpp"

#include <doctest/doctest.h>

#include "sim/base/errors.hpp"
#include "tests/evidence/published/sample_points.hpp"
#include "tests/text.hpp"

namespace stageline::vtrain_tests {
namespace {

constexpr const char* simulated_title =
    "# GPUs,global batch,micro batch,hidden size,attention heads,# layers,sequence length,tensor "
    "parallelism,data parallelism,pipeline parallelism,iteration time (ms)\n";

}  // namespace

TEST_CASE("vTrain's composition of profiled layers is exact") {
  // Printed in the file's description: 12 layers, two stages, two micro-batches.
  const auto rows = compose_vtrain(
      std::string(simulated_title) + "2,2,1,1024,16,12,1024,1,1,2,69.957095\n", "x.csv");
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].composed == doctest::Approx(69.957095e-3).epsilon(1e-8));
}

TEST_CASE("other hidden sizes are passed over, as their layer times are not known") {
  CHECK(compose_vtrain(std::string(simulated_title) + "2,2,1,2048,16,12,1024,1,1,2,69.9\n", "x.csv")
            .empty());
}

TEST_CASE("vTrain's single-node rows are composed to their last digit") {
  const auto csv = test::shared_file("vtrain/single_node_calibration.csv");
  if (!csv) {
    MESSAGE("skipped: STAGELINE_DATA holds no vtrain/single_node_calibration.csv");
    return;
  }
  CHECK(is_vtrain_simulated(*csv));
  const std::vector<ComposedRow> rows = compose_vtrain(*csv, "single.csv");
  CHECK(rows.size() == 48);
  for (const ComposedRow& row : rows) {
    CAPTURE(row.line);
    if (row.data == 1) CHECK(row.composed == doctest::Approx(row.printed).epsilon(1e-7));
  }
  const Composition composition = composition_of(rows);
  CHECK(composition.rows == 48);
  CHECK(composition.with_replicas == 40);
  CHECK(composition.worst < 1e-7);
  CHECK(composition_text(rows).find("is the output of vTrain's own simulator, not a measurement") !=
        std::string::npos);
}

TEST_CASE("vTrain's multi-node rows are runs of 64 to 512 A100") {
  const auto csv = test::shared_file("vtrain/multi_node_calibration.csv");
  if (!csv) {
    MESSAGE("skipped: STAGELINE_DATA holds no vtrain/multi_node_calibration.csv");
    return;
  }
  CHECK(is_vtrain(*csv));
  CHECK_FALSE(is_vtrain_simulated(*csv));
  const std::vector<Point> points = read_vtrain_runs(*csv, "multi.csv");
  CHECK(points.size() == 73);
  for (const Point& point : points) {
    CAPTURE(point.id);
    const Question question = question_of(point);
    CHECK(question.why_not.empty());
    CHECK(question.request.setting.buckets == "none");
    CHECK((question.request.setting.trace.find("step=0.3") != std::string::npos) ==
          (point.data > 1));  // of their software
    CHECK(point.step_time);
  }
  CHECK(points.front().config.layers == 30);
  CHECK(*points.front().step_time == doctest::Approx(3.5665));
}

TEST_CASE("a file of vTrain with a wrong cell is refused by line") {
  CHECK_THROWS_WITH_AS(
      compose_vtrain(std::string(simulated_title) + "2,2,1,wide,16,12,1024,1,1,2,69.9\n", "x.csv"),
      "x.csv at line 2: hidden size is \"wide\", and must be a number above 0", TraceError);
  const auto refused = [](const std::string& row) {
    return test::complaint<TraceError>(
        [&] { compose_vtrain(std::string(simulated_title) + row + "\n", "x.csv"); });
  };
  CHECK(refused("4,2,1,1024,16,2,1024,1,1,4,69.9") ==
        "x.csv at line 2: 2 layers on 4 stages: there are as many on each, and at most 10000");
  CHECK(refused("2,2,1,1024,16,13,1024,1,1,2,69.9").find("13 layers on 2 stages") !=
        std::string::npos);
  CHECK(refused("2,2,1,1024,16,900000000,1024,1,1,2,69.9").find("900000000 layers on 2 stages") !=
        std::string::npos);
  CHECK(refused("6,2,1,1024,16,12,1024,1,3,2,69.9") ==
        "x.csv at line 2: a global batch of 2 is less than a sequence for each of 3 replicas");
}

}  // namespace stageline::vtrain_tests
