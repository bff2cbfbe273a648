// Do the reports of published rows say what was judged, in every format?
#include "tools/published/report.hpp"

#include <doctest/doctest.h>

#include <optional>

#include "sim/base/errors.hpp"
#include "tests/evidence/published/sample_points.hpp"
#include "traces/json/tree.hpp"

namespace stageline::report_tests {

using test::pipeline_row;
using test::points_csv;
using test::with;

namespace {

std::vector<JudgedPoint> judged_rows(std::optional<bool> fits = {}) {
  JudgeRequest request;
  request.ask = [](const Point& point, const RunPace&) {
    Question question;
    question.assumptions = {"a made-up assumption"};
    if (point.note == "refused") question.why_not = "a made-up reason";
    return question;
  };
  request.predict = [fits](const Question&) {
    PointPrediction prediction;
    prediction.step = 3;
    prediction.memory = 30.0 * 1024 * 1024 * 1024;
    prediction.fits = fits;
    return prediction;
  };
  return judge_points(
      read_points(
          points_csv({with(pipeline_row(), {{"source", "A | B"}}),
                      with(pipeline_row(), {{"id", "2"}, {"source", "C"}, {"split", "calibrate"}}),
                      with(pipeline_row(), {{"id", "3"}, {"source", "C"}, {"note", "refused"}})}),
          "points.csv"),
      request);
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("the text has time and memory apart, a line for each source and role") {
  const std::string text = published_text(judged_rows());
  CHECK(contains(text, "Step time"));
  CHECK(contains(text, "Memory of the fullest device"));
  CHECK(contains(text, "A | B"));
  CHECK(contains(text, "calibrate"));
  CHECK(contains(text, "20.0 %"));
  CHECK(contains(text, "-25.0 %"));
  CHECK(contains(text, "row 3: a made-up reason"));
  CHECK_FALSE(contains(text, "all sources"));  // one source for each role
}

TEST_CASE("rows that ran and do not fit by the prediction are named") {
  const std::string said = "2 of 2 rows do not fit into memory by the prediction: 1, 2.";
  CHECK(contains(published_text(judged_rows(false)), said));
  CHECK(contains(published_markdown(judged_rows(false), "points.csv"), said));
  CHECK(contains(published_rows_text(judged_rows(false)), "does not fit into memory"));
  CHECK(contains(published_json(judged_rows(false)), "\"fits\": false"));
  CHECK(contains(published_json(judged_rows()), "\"fits\": null"));
  for (const std::optional<bool>& fits : {std::optional<bool>{}, std::optional{true}}) {
    CHECK_FALSE(contains(published_text(judged_rows(fits)), "not fit into memory"));
    CHECK_FALSE(contains(published_rows_text(judged_rows(fits)), "not fit into memory"));
  }
}

TEST_CASE("every row has a line with its degrees and deviations") {
  const std::string text = published_rows_text(judged_rows());
  CHECK(contains(text, "p8 b3 m24"));
  CHECK(contains(text, "2.5 s"));
  CHECK(contains(text, "+20.0 %"));
  CHECK(contains(text, "a made-up reason"));
}

TEST_CASE("Markdown escapes bars, and lists sources and assumptions") {
  const std::string text = published_markdown(judged_rows(), "points.csv");
  CHECK(contains(text, "3 rows of points.csv"));
  CHECK(contains(text, "| A \\| B | judged | 1 |"));
  CHECK(contains(text, "- a made-up assumption (3 rows: 1, 2, 3)"));
}

TEST_CASE("JSON has every row with its deviation") {
  const std::string text = published_json(judged_rows());
  const JsonValue all = parse_json(text, "json");
  CHECK(contains(text, "\"measured_step_s\": 2.5"));
  CHECK(contains(text, "\"predicted_step_s\": 3"));
  CHECK(contains(text, "\"memory_deviation\": -0.25"));
  CHECK(contains(text, "\"why_not\": \"a made-up reason\""));
  CHECK(all.kind == JsonKind::object);
}

TEST_CASE("rows that are left out are counted, each with its line and reason") {
  const std::vector<UnreadRow> unread{{7, "seq is \"long\""}, {9, "the row has 3 cells"}};
  CHECK(unread_text(unread, 535) ==
        "2 of 537 rows cannot be read and are left out:\n  line 7: seq is \"long\"\n"
        "  line 9: the row has 3 cells\n");
  CHECK(unread_text({}, 537).empty());
  CHECK(contains(unread_text({unread[0]}, 3), "1 of 4 rows cannot be read and is left out"));
  CHECK(contains(published_markdown(judged_rows(), "p.csv", unread),
                 "## Unread\n\n2 of 5 rows cannot be read and are left out:\n\n- line 7: seq"));
  CHECK(contains(published_json(judged_rows(), unread), "\"why\": \"the row has 3 cells\""));
}

TEST_CASE("the picture has the diagonal and the lines of 10 %") {
  const std::string svg = published_svg(judged_rows());
  CHECK(contains(svg, "predicted = measured"));
  CHECK(contains(svg, "+10 %"));
  CHECK(contains(svg, "2 rows of 2 published sources"));
  CHECK_THROWS_AS(published_svg({}), UsageError);
}

}  // namespace stageline::report_tests
