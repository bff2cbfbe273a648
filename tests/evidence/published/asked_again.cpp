// Does the question that the report has of a row, asked again, give the row's number?
#include "tools/published/asked_again.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string_view>

#include "tests/evidence/published/sample_points.hpp"
#include "tools/published/report.hpp"
#include "tools/sweep/words.hpp"
#include "traces/json/tree.hpp"

namespace stageline::asked_again_tests {

using test::pipeline_row;
using test::points_csv;
using test::with;

namespace {

// Rows whose questions differ in every setting that one can have.
std::vector<std::map<std::string, std::string>> rows() {
  const auto row = pipeline_row();
  return {
      row,
      with(row, {{"schedule", "zb_1p"}, {"recompute", "full"}}),
      with(row, {{"schedule", "1f1b"},
                 {"vp", "2"},
                 {"pp", "4"},
                 {"tp", "2"},
                 {"sp", "1"},
                 {"recompute", "selective"}}),
      with(row, {{"gpus", "16"},
                 {"dp", "2"},
                 {"global_batch", "144"},
                 {"zero", "1"},
                 {"network", "4x Omni-Path 100 Gb/s per node"}}),
      with(row, {{"framework", "torchtitan"},
                 {"pp", "1"},
                 {"dp", "8"},
                 {"zero", "3"},
                 {"precision", "compile bf16"},
                 {"micro_batch", "1"},
                 {"layers", "8"}}),
      with(row, {{"experts", "8"},
                 {"topk", "2"},
                 {"pp", "2"},
                 {"dp", "4"},
                 {"ep", "4"},
                 {"framework", "Megatron-Bridge"},
                 {"layers", "8"}}),
  };
}

const JsonValue& member(const JsonValue& object, std::string_view key) {
  const auto found = std::find(object.keys.begin(), object.keys.end(), key);
  REQUIRE(found != object.keys.end());
  return object.items[static_cast<std::size_t>(found - object.keys.begin())];
}

double step_again(const std::vector<QuestionWord>& asked) {
  std::vector<SettingWord> words;
  for (const QuestionWord& word : asked) words.push_back({word.key, word.text});
  const answers::Result result = answer(question_of(words).request);
  REQUIRE(result.rows.front().outcome);
  return to_seconds(result.rows.front().outcome->step_time);
}

}  // namespace

TEST_CASE("a question of a row, asked again, has the same step") {
  for (const auto& row : rows()) {
    const Point point = test::point_of(row);
    for (const RunPace& pace : {RunPace{}, RunPace{20e-6, 1}, RunPace{0, 1.25}}) {
      const Question question = question_of(point, {}, pace);
      CAPTURE(question.why_not);
      REQUIRE(question.why_not.empty());
      CAPTURE(command_of(question));
      CHECK(step_again(words_of(question)) == predicted(question).step);
    }
  }
}

TEST_CASE("the calibration is a part of the question") {
  Calibration calibration;
  calibration.kind = "a100";
  calibration.rates = find_chip_rates("a100")->rates;
  calibration.rates.gemm = 0.5;
  const Point point = test::point_of(pipeline_row());
  const Question question = question_of(point, calibration);
  const double step = predicted(question).step;
  CHECK(step_again(words_of(question)) == step);
  CHECK(step != predicted(question_of(point)).step);
}

TEST_CASE("the report's request and command are of the row's number") {
  const std::vector<JudgedPoint> judged =
      judge_points(read_points(points_csv(rows()), "points.csv"));
  const JsonValue all = parse_json(published_json(judged), "json");
  const JsonValue& listed = member(all, "rows");
  REQUIRE(listed.items.size() == judged.size());
  for (std::size_t i = 0; i < judged.size(); ++i) {
    REQUIRE(judged[i].prediction);
    const answers::Result result =
        answer(answers::parse_request(member(listed.items[i], "question")));
    REQUIRE(result.rows.front().outcome);
    CHECK(to_seconds(result.rows.front().outcome->step_time) == judged[i].prediction->step);
    CHECK(member(listed.items[i], "command").text == command_of(judged[i].question));
  }
}

}  // namespace stageline::asked_again_tests
