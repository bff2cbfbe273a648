// Can the simulator tell two runs of one model apart, and does advice say where it cannot?
#include "tools/study/evidence/ties.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/base/index.hpp"
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

// Two runs that differ in how they are parallelized alone: how much longer the one takes that is
// predicted to take longer, as logarithms.
struct Pair {
  std::string source;
  double predicted = 0;
  double measured = 0;
};

std::vector<Pair> pairs_of(const std::vector<JudgedPoint>& judged) {
  std::map<std::string, std::vector<const JudgedPoint*>> groups;
  for (const JudgedPoint& row : judged) {
    const bool dense = row.prediction && row.prediction->of && (*row.prediction->of)[1] == "dense";
    if (dense && row.step_deviation) groups[model_and_machine(row.point)].push_back(&row);
  }
  std::vector<Pair> pairs;
  for (const auto& [name, rows] : groups) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (way_of(rows[i]->point) == way_of(rows[j]->point)) continue;
        const double measured = std::log(*rows[i]->measured_step / *rows[j]->measured_step);
        const double predicted =
            measured + std::log((1 + *rows[i]->step_deviation) / (1 + *rows[j]->step_deviation));
        const double sign = predicted < 0 ? -1 : 1;
        pairs.push_back({rows[i]->point.source, sign * predicted, sign * measured});
      }
    }
  }
  return pairs;
}

// What came of the pairs that are predicted to differ by so much.
struct Told {
  int pairs = 0;
  double in_order = 0;  // the share that came out as predicted
  double lead = 0;      // the mean of what was measured
};

Told told(const std::vector<Pair>& pairs, double least, double most) {
  Told found;
  int in_order = 0;
  for (const Pair& pair : pairs) {
    if (pair.predicted < least || pair.predicted >= most) continue;
    ++found.pairs;
    in_order += pair.measured > 0 ? 1 : 0;
    found.lead += pair.measured;
  }
  found.in_order = static_cast<double>(in_order) / found.pairs;
  found.lead /= found.pairs;
  return found;
}

std::vector<std::string> notes_on(const std::vector<AdvisedRow>& rows, const char* advised) {
  return notes_on_advice(rows, advised);
}

answers::Comparison compared(const std::string& trace, const std::string& schedules) {
  answers::ComparisonQuestion question;
  question.setting.trace = trace;
  question.setting.cluster.cluster = "h100x8";
  question.setting.microbatches = 16;
  question.setting.degrees.pipeline = 8;
  question.setting.schedules = parse_schedules(schedules);
  return answer(question);
}

}  // namespace

TEST_CASE("ties: a predicted lead below the width of a tie is worth nothing, one above it is") {
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
  const std::vector<Pair> pairs = pairs_of(judge_points(points));
  const Told below = told(pairs, 0, std::log1p(tie_width));
  const Told above = told(pairs, std::log1p(tie_width), std::log1p(2 * tie_width));
  MESSAGE(pairs.size() << " pairs; below: " << below.pairs << ", " << below.in_order << ", "
                       << below.lead << "; above: " << above.pairs << ", " << above.in_order << ", "
                       << above.lead);
  CHECK(below.pairs > 200);
  CHECK(below.in_order == doctest::Approx(in_order_of_ties).epsilon(0.03));
  CHECK(below.lead < 0.002);
  CHECK(above.pairs > 200);
  CHECK(above.in_order > 0.7);
  CHECK(above.lead > 0.015);
}

TEST_CASE("ties: rows that differ by less than can be told tie, and the best is named") {
  const std::vector<AdvisedRow> rows{{"zb_v", "zb_v", 1, Bytes{4'000'000'000}},
                                     {"1f1b", "1f1b", 1.01, Bytes{2'000'000'000}},
                                     {"gpipe", "gpipe", 1.025, Bytes{3'000'000'000}},
                                     {"naive", "naive", 2, Bytes{1'000'000'000}}};
  const std::vector<std::string> notes = notes_on(rows, "zb_v");
  REQUIRE(notes.size() == 2);
  CHECK(notes[0].find("ties: 1f1b, gpipe take at most 2.5 % more time than zb_v") == 0);
  CHECK(notes[0].find("the least time × memory of them has 1f1b (recommended without --within)") !=
        std::string::npos);
  CHECK(notes[0].find("nearest to what was held against runs is 1f1b") != std::string::npos);
  CHECK(notes[1].find("no published run was held against the simulator under zb_v, gpipe, naive") ==
        0);
  CHECK(notes_on(rows, "1f1b")[0].find("memory of them has 1f1b, which is recommended") !=
        std::string::npos);
}

TEST_CASE("ties: rows that tie are found, and the schedules that were held are known") {
  const std::vector<AdvisedRow> rows{{"a", "zb_v", 1, Bytes{}},
                                     {"b", "1f1b", 1 + tie_width / 2, Bytes{}},
                                     {"c", "gpipe", 1 + 2 * tie_width, Bytes{}}};
  CHECK(rows_that_tie(rows) == std::vector<std::size_t>{0, 1});
  CHECK(rows_that_tie({}).empty());
  CHECK(was_held("interleaved_1f1b:chunks=2"));
  CHECK_FALSE(was_held("zb_v"));
}

TEST_CASE("ties: the same run with more work is told from the fastest, another schedule is not") {
  const std::vector<AdvisedRow> rows{{"1f1b (none)", "1f1b", 1, Bytes{40}, "1f1b"},
                                     {"zb_h1 (none)", "zb_h1", 1.02, Bytes{50}, "zb_h1"},
                                     {"1f1b (full)", "1f1b", 1.02, Bytes{20}, "1f1b"}};
  CHECK(rows_that_tie(rows) == std::vector<std::size_t>{0, 1});
}

TEST_CASE("ties: the best saves more memory than time, and of equal ones was held against runs") {
  const std::vector<std::size_t> all{0, 1, 2};
  std::vector<AdvisedRow> rows{{"a", "zb_v", 1, Bytes{1000}},
                               {"b", "gpipe", 1.02, Bytes{990}},
                               {"c", "zb_h1", 1.03, Bytes{980}}};
  CHECK(best_of_ties(rows, all) == 0);
  rows[2].peak = Bytes{900};
  CHECK(best_of_ties(rows, all) == 2);
  rows[2] = {"c", "1f1b", 1, Bytes{1000}};
  CHECK(best_of_ties(rows, all) == 2);
  rows[1].peak = Bytes{};
  CHECK(best_of_ties(rows, all) == 0);
}

TEST_CASE("ties: the rows of a comparison that tie are named by their place") {
  const answers::Comparison found = compared("model:llama3-8b@h100,seq=2048", "1f1b,zb_h1,gpipe");
  REQUIRE_FALSE(found.tied.empty());
  CHECK(found.tied.front() == *found.orders.front().fastest);
  const Time fastest = found.rows[found.tied.front()].outcome->step_time;
  for (const std::size_t row : found.tied) {
    CHECK(to_seconds(found.rows[row].outcome->step_time) <= (1 + tie_width) * to_seconds(fastest));
  }
  CHECK(compared("uniform:layers=8", "1f1b,gpipe").tied.empty());
}

TEST_CASE("ties: the best of the rows that tie is recommended, unless --within is given") {
  const auto recommended = [](const std::optional<double>& within) {
    answers::ComparisonQuestion question;
    question.setting.trace = "model:llama3-8b@h100,seq=2048";
    question.setting.cluster.cluster = "h100x8";
    question.setting.microbatches = 64;
    question.setting.degrees.pipeline = 8;
    question.setting.schedules = parse_schedules("zb_h2,1f1b,zb_h1");
    question.within = within;
    return answer(question);
  };
  const answers::Comparison usual = recommended(std::nullopt);
  const RankedRows& order = usual.orders.front();
  REQUIRE(usual.tied.size() > 1);
  REQUIRE(order.recommended != order.fastest);
  const auto time_by_memory = [&](std::size_t row) {
    const Outcome& outcome = *usual.rows[row].outcome;
    return to_seconds(outcome.step_time) *
           static_cast<double>(nth(outcome.memory.device, outcome.peak_device()).peak.count);
  };
  for (const std::size_t row : usual.tied) {
    CHECK(time_by_memory(*order.recommended) <= time_by_memory(row));
  }
  CAPTURE(order.sentence);
  CHECK(order.sentence.find("the least time × memory of") != std::string::npos);
  CHECK(order.sentence.find(" s), less than can be told, with ") != std::string::npos);
  const answers::Comparison exact = recommended(0.0);
  CHECK(exact.orders.front().recommended == exact.orders.front().fastest);
}

TEST_CASE("ties: nothing is said where the fastest is alone and every schedule was held") {
  const std::vector<AdvisedRow> rows{{"1f1b", "1f1b", 1, Bytes{1}},
                                     {"zb_auto", "zb_auto:limit=2p", 1.07, Bytes{1}}};
  CHECK(notes_on(rows, "1f1b").empty());
  CHECK(notes_on({}, "").empty());
}

TEST_CASE("ties: a comparison of a language model says them, one of given times does not") {
  const answers::Comparison found = compared("model:llama3-8b@h100,seq=2048", "zb_h2,zb_v,gpipe");
  REQUIRE(!found.ties.empty());
  CHECK(found.ties.front().find("ties: ") == 0);
  CHECK(found.ties.back().find("gpipe") != std::string::npos);
  CHECK(compared("uniform:layers=8,forward=1ms", "1f1b,eager_1f1b").ties.empty());
}

}  // namespace stageline::ties_tests
