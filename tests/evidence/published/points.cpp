// Are rows of published measurements read as they are printed?
#include "tools/published/points.hpp"

#include <doctest/doctest.h>

#include "sim/base/errors.hpp"
#include "tests/evidence/published/sample_points.hpp"
#include "tools/published/csv.hpp"

namespace stageline::points_tests {

using test::pipeline_row;
using test::point_of;
using test::points_csv;
using test::with;

TEST_CASE("cells of a CSV file may be quoted, hold commas, quotes and line ends") {
  const CsvTable table = read_csv("a,\"b,c\"\r\n1,\"two \"\"2\"\"\nlines\"\n\n3,4", "x.csv");
  CHECK(table.columns == std::vector<std::string>{"a", "b,c"});
  REQUIRE(table.rows.size() == 2);
  CHECK(table.rows[0].cells == std::vector<std::string>{"1", "two \"2\"\nlines"});
  CHECK(table.rows[0].line == 2);
  CHECK(table.rows[1].cells == std::vector<std::string>{"3", "4"});
  CHECK(table.rows[1].line == 5);
  CHECK(table.find("b,c") == 1);
  CHECK_FALSE(table.find("b"));
}

TEST_CASE("faults of a CSV file are named with their line") {
  CHECK_THROWS_WITH_AS(read_csv("", "x.csv"), "x.csv at line 1: there is no title row", TraceError);
  const auto refused = [](const char* text) {
    refuse_unread(read_csv(text, "x.csv").unread, "x.csv");
  };
  CHECK_THROWS_WITH_AS(refused("a,b\n1\n"),
                       "x.csv at line 2: the row has 1 cells, and the title row has 2 columns",
                       TraceError);
  CHECK_THROWS_WITH_AS(read_csv("a\n\"1", "x.csv"), "x.csv at line 2: a quoted cell does not end",
                       TraceError);
  CHECK_THROWS_WITH_AS(
      refused("a\n\"1\"2\n"),
      "x.csv at line 2: a comma or the end of the line must follow a closing quote", TraceError);
}

TEST_CASE("a row is read in the units of its columns") {
  const Point point = point_of(with(pipeline_row(), {{"vp", "n/a"}, {"zero", "ddp/dist-opt"}}));
  CHECK(point.id == "1");
  CHECK(point.line == 2);
  CHECK(point.seq == 1024);
  CHECK(point.pipeline == 8);
  CHECK(point.chunks == 1);
  CHECK(point.zero == 1);
  CHECK(point.gpus_per_node == 8);
  CHECK(point.memory == 40.0 * 1024 * 1024 * 1024);
  CHECK(point.config.layers == 30);
  CHECK(point.config.ffn == 4 * 4096);
  CHECK(point.config.kv_heads == 32);
  CHECK(point.config.norm == NormKind::layer);
  CHECK(microbatches_of(point) == 24);
  CHECK(measured_step(point) == 2.5);
}

TEST_CASE("replicas that are not printed follow from the devices") {
  const Point point =
      point_of(with(pipeline_row(), {{"dp", ""}, {"gpus", "64"}, {"tp", "2"}, {"zero", "fsdp"}}));
  CHECK(point.data == 4);
  CHECK(point.zero == 3);
}

TEST_CASE("a step follows from tokens per second") {
  const Point point =
      point_of(with(pipeline_row(), {{"step_time_s", ""}, {"tokens_per_s_per_gpu", "4608"}}));
  REQUIRE(measured_step(point));
  CHECK(*measured_step(point) == doctest::Approx(72 * 1024 / (4608.0 * 8)));
  CHECK_FALSE(measured_step(point_of(with(pipeline_row(), {{"step_time_s", ""}}))));
}

TEST_CASE("rows that cannot be read are left out, with their lines and reasons") {
  const std::string csv =
      points_csv({pipeline_row(), with(pipeline_row(), {{"seq", "long"}}),
                  with(pipeline_row(), {{"id", "3"}}), with(pipeline_row(), {{"pp", "0"}})}) +
      "5,few,cells\n\"6\"x,\n" +
      points_csv({with(pipeline_row(), {{"id", "7"}})}).substr(points_csv({}).size());
  const PointsFile read = read_points_file(csv, "p.csv");
  REQUIRE(read.points.size() == 3);
  CHECK(read.points[1].id == "3");
  CHECK(read.points[2].id == "7");
  CHECK(read.points[2].line == 8);
  REQUIRE(read.unread.size() == 4);
  CHECK(read.unread[0].line == 3);
  CHECK(read.unread[0].why == "seq is \"long\", and must be a number from 0 on, or empty");
  CHECK(read.unread[1].line == 5);
  CHECK(read.unread[2].line == 6);
  CHECK(read.unread[2].why.starts_with("the row has 3 cells"));
  CHECK(read.unread[3].line == 7);
  CHECK(read.unread[3].why == "a comma or the end of the line must follow a closing quote");
  // Strictly, and where there is no other row, it is an error.
  CHECK_THROWS_AS(read_points(csv, "p.csv"), TraceError);
  CHECK_THROWS_WITH_AS(
      read_points_file(points_csv({with(pipeline_row(), {{"seq", "long"}})}), "p.csv"),
      "p.csv at line 2: seq is \"long\", and must be a number from 0 on, or empty", TraceError);
}

TEST_CASE("a file that is none of published measurements is refused in a sentence") {
  CHECK_THROWS_WITH_AS(read_points("id,model\n1,x\n", "p.csv"),
                       "p.csv at line 1: there is no column \"seq\"; a file of published "
                       "measurements has the columns id, model, seq, hardware, gpus, global_batch "
                       "and those of what was measured, such as step_time_s",
                       TraceError);
  CHECK_THROWS_WITH_AS(point_of(with(pipeline_row(), {{"seq", "long"}})),
                       "points.csv at line 2: seq is \"long\", and must be a number from 0 on, or "
                       "empty",
                       TraceError);
  CHECK_THROWS_WITH_AS(point_of(with(pipeline_row(), {{"tp", "1.5"}})),
                       "points.csv at line 2: tp is 1.5, and must be a whole number below 2^31",
                       TraceError);
  for (const char* const degree : {"gpus", "gpus_per_node", "tp", "pp", "vp", "cp", "ep", "dp"}) {
    for (const char* const number : {"0", "1000001", "2147483647"}) {
      CHECK_THROWS_WITH_AS(point_of(with(pipeline_row(), {{degree, number}})),
                           ("points.csv at line 2: gpus, gpus_per_node, tp, pp, vp, cp, ep and dp "
                            "are 1 to 1000000, not " +
                            std::string(number))
                               .c_str(),
                           TraceError);
    }
  }
}

TEST_CASE("the shared data have 289 rows of seven sources") {
  const auto csv = test::shared_file("published/points.csv");
  if (!csv) {
    MESSAGE("skipped: STAGELINE_DATA holds no published/points.csv");
    return;
  }
  const std::vector<Point> points = read_points(*csv, "points.csv");
  CHECK(points.size() == 289);
  int timed = 0;
  int with_memory = 0;
  for (const Point& point : points) {
    CAPTURE(point.id);
    if (measured_step(point)) ++timed;
    if (point.memory) ++with_memory;
    CHECK(point.url.starts_with("https://"));
  }
  CHECK(timed == 281);  // all but the closed forms of memory
  CHECK(with_memory == 90);
}

}  // namespace stageline::points_tests
