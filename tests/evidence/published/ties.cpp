// Can the simulator tell two runs of one model apart, and does advice say where it cannot?
#include "tools/study/evidence/ties.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/evidence/published/sample_points.hpp"
#include "tools/answers/compared.hpp"
#include "tools/published/judged_points.hpp"
#include "tools/published/vtrain.hpp"

namespace stageline::ties_tests {
namespace {

// How a run is parallelized, beside its model and machine.
auto way_of(const Point& point) {
  return std::tie(point.tensor, point.pipeline, point.chunks, point.context, point.expert,
                  point.data, point.zero, point.sequence_parallel, point.micro_batch,
                  point.schedule, point.recompute);
}

std::string model_and_machine(const Point& point) {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", point.source, point.model,
                     point.config.layers, point.config.hidden, point.seq, point.hardware,
                     point.gpus, point.framework, point.precision, point.global_batch);
}

// log(measured / predicted) of one run less that of the other, by source.
std::map<std::string, std::vector<double>> pair_errors(const std::vector<JudgedPoint>& judged) {
  std::map<std::string, std::vector<const JudgedPoint*>> groups;
  for (const JudgedPoint& row : judged) {
    const bool dense = row.prediction && row.prediction->of && (*row.prediction->of)[1] == "dense";
    if (dense && row.step_deviation) groups[model_and_machine(row.point)].push_back(&row);
  }
  std::map<std::string, std::vector<double>> errors;
  for (const auto& [name, rows] : groups) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (way_of(rows[i]->point) == way_of(rows[j]->point)) continue;
        errors[rows[i]->point.source].push_back(
            std::abs(std::log((1 + *rows[i]->step_deviation) / (1 + *rows[j]->step_deviation))));
      }
    }
  }
  return errors;
}

// The median, each source with the same weight.
double median_of(const std::map<std::string, std::vector<double>>& errors) {
  std::vector<std::pair<double, double>> weighted;
  for (const auto& [source, all] : errors) {
    for (const double error : all) {
      weighted.emplace_back(error, 1 / static_cast<double>(all.size()));
    }
  }
  std::sort(weighted.begin(), weighted.end());
  double sum = 0;
  for (const auto& [error, weight] : weighted) {
    sum += weight;
    if (sum >= static_cast<double>(errors.size()) / 2) return error;
  }
  return 0;
}

std::vector<std::string> notes_on(const std::vector<AdvisedRow>& rows, const char* advised) {
  return notes_on_advice(rows, advised);
}

Comparison compared(const std::string& trace, const std::string& schedules) {
  ComparisonQuestion question;
  question.setting.trace = trace;
  question.setting.cluster.cluster = "h100x8";
  question.setting.microbatches = 16;
  question.setting.degrees.pipeline = 8;
  question.setting.schedules = parse_schedules(schedules);
  return answer(question);
}

}  // namespace

TEST_CASE("ties: half of the pairs of published runs are within what is called a tie") {
  std::vector<Point> points;
  for (const char* const name :
       {"published/points.csv", "published/points_2026.csv", "vtrain/multi_node_calibration.csv"}) {
    const auto csv = test::shared_file(name);
    if (!csv) {
      MESSAGE("skipped: STAGELINE_DATA holds no published rows");
      return;
    }
    const PointsFile read =
        is_vtrain(*csv) ? read_vtrain_file(*csv, name) : read_points_file(*csv, name);
    points.insert(points.end(), read.points.begin(), read.points.end());
  }
  const auto errors = pair_errors(judge_points(points));
  std::size_t pairs = 0;
  for (const auto& one : errors) {
    pairs += one.second.size();
    MESSAGE(one.first << ": " << one.second.size() << " pairs");
  }
  MESSAGE(pairs << " pairs, median " << median_of(errors));
  CHECK(errors.size() > 4);
  CHECK(median_of(errors) == doctest::Approx(pair_spread).epsilon(0.05));
}

TEST_CASE("ties: rows that differ by less than can be told tie, and the smallest is named") {
  const std::vector<AdvisedRow> rows{{"zb_v", "zb_v", 1, Bytes{4'000'000'000}},
                                     {"1f1b", "1f1b", 1.02, Bytes{2'000'000'000}},
                                     {"gpipe", "gpipe", 1.05, Bytes{3'000'000'000}},
                                     {"naive", "naive", 2, Bytes{1'000'000'000}}};
  const std::vector<std::string> notes = notes_on(rows, "zb_v");
  REQUIRE(notes.size() == 2);
  CHECK(notes[0].find("ties: 1f1b, gpipe take at most 5.0 % more time than zb_v") == 0);
  CHECK(
      notes[0].find("the least memory of them has 1f1b, 2.000 GB (--within 6.2% recommends it)") !=
      std::string::npos);
  CHECK(notes[0].find("nearest to what was held against runs is 1f1b") != std::string::npos);
  CHECK(notes[1].find("no published run was held against the simulator under zb_v, gpipe, naive") ==
        0);
  CHECK(notes_on(rows, "1f1b")[0].find("1f1b, 2.000 GB, which is recommended") !=
        std::string::npos);
}

TEST_CASE("ties: rows that tie are counted, and the schedules that were held are known") {
  const std::vector<AdvisedRow> rows{{"a", "zb_v", 1, Bytes{}},
                                     {"b", "1f1b", 1 + pair_spread / 2, Bytes{}},
                                     {"c", "gpipe", 1 + 2 * pair_spread, Bytes{}}};
  CHECK(rows_that_tie(rows) == 2);
  CHECK(rows_that_tie({}) == 0);
  CHECK(was_held("interleaved_1f1b:chunks=2"));
  CHECK_FALSE(was_held("zb_v"));
}

TEST_CASE("ties: the rows of a comparison that tie are named by their place") {
  const Comparison found = compared("model:llama3-8b@h100,seq=2048", "1f1b,zb_h1,gpipe");
  REQUIRE_FALSE(found.tied.empty());
  CHECK(found.tied.front() == *found.orders.front().fastest);
  const Time fastest = found.rows[found.tied.front()].outcome->step_time;
  for (const std::size_t row : found.tied) {
    CHECK(to_seconds(found.rows[row].outcome->step_time) <=
          (1 + pair_spread) * to_seconds(fastest));
  }
  CHECK(compared("uniform:layers=8", "1f1b,gpipe").tied.empty());
}

TEST_CASE("ties: nothing is said where the fastest is alone and every schedule was held") {
  const std::vector<AdvisedRow> rows{{"1f1b", "1f1b", 1, Bytes{1}},
                                     {"zb_auto", "zb_auto:limit=2p", 1.07, Bytes{1}}};
  CHECK(notes_on(rows, "1f1b").empty());
  CHECK(notes_on({}, "").empty());
}

TEST_CASE("ties: a comparison of a language model says them, one of given times does not") {
  const Comparison found = compared("model:llama3-8b@h100,seq=2048", "1f1b,eager_1f1b,gpipe");
  REQUIRE(!found.ties.empty());
  CHECK(found.ties.front().find("ties: ") == 0);
  CHECK(found.ties.back().find("gpipe") != std::string::npos);
  CHECK(compared("uniform:layers=8,forward=1ms", "1f1b,eager_1f1b").ties.empty());
}

}  // namespace stageline::ties_tests
