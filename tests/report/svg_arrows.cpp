// Do arrows join the right ops, and do their ends lie on the edges of those ops' boxes?
#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <regex>
#include <set>

#include "sim/base/errors.hpp"
#include "tests/report/example.hpp"
#include "tests/text.hpp"
#include "tools/report/timeline/arrows.hpp"
#include "tools/report/timeline/svg.hpp"

namespace stageline::svg_arrows_tests {

using examples::drawing_of;
using examples::millisecond;
using examples::one_f_one_b;
using test::contains;

namespace {

struct DrawnBox {
  double left = 0;
  double right = 0;
  double top = 0;
  double bottom = 0;
};

// By the op and device of their tooltips: "0F1 on gpu0".
std::map<std::string, DrawnBox> boxes_in(const std::string& document) {
  static const std::regex pattern(
      "<rect class=\"[^\"]*\" x=\"([^\"]*)\" y=\"([^\"]*)\" width=\"([^\"]*)\" "
      "height=\"([^\"]*)\"><title>([^:<]*):");
  std::map<std::string, DrawnBox> found;
  for (std::sregex_iterator at(document.begin(), document.end(), pattern), end; at != end; ++at) {
    const double left = std::stod((*at)[1]);
    const double top = std::stod((*at)[2]);
    found[(*at)[5]] = {left, left + std::stod((*at)[3]), top, top + std::stod((*at)[4])};
  }
  return found;
}

struct DrawnArrow {
  std::string kind;  // CSS class
  std::string from;
  std::string to;
  double x1 = 0;
  double y1 = 0;
  double x2 = 0;
  double y2 = 0;
};

std::vector<DrawnArrow> arrows_of(const std::string& document) {
  static const std::regex pattern(
      "<g class=\"arrow (a.)\"><title>([^<]*) to ([^<,]*), [^<]*</title>"
      "<path class=\"halo\" d=\"[^\"]*\"/><path class=\"line\" "
      "d=\"M(\\S+) (\\S+?)(?:L|C\\S+ \\S+ \\S+ \\S+ )(\\S+) (\\S+)\"/>");
  std::vector<DrawnArrow> found;
  for (std::sregex_iterator at(document.begin(), document.end(), pattern), end; at != end; ++at) {
    found.push_back({(*at)[1], (*at)[2], (*at)[3], std::stod((*at)[4]), std::stod((*at)[5]),
                     std::stod((*at)[6]), std::stod((*at)[7])});
  }
  return found;
}

std::string document_of(const report::Drawing& drawing, const std::vector<std::string>& words,
                        int width = 1000) {
  report::DrawingView view;
  view.arrows = report::arrow_choice(words);
  return report::svg(drawing, {report::Theme::light, width}, view);
}

std::set<std::string> ops_joined(const std::vector<DrawnArrow>& arrows) {
  std::set<std::string> joined;
  for (const DrawnArrow& arrow : arrows) joined.insert(arrow.from + " > " + arrow.to);
  return joined;
}

}  // namespace

TEST_CASE(
    "a message's arrow goes from the right edge of its maker's box to the left of its taker's") {
  const Time free{};
  for (const Time transfer : {free, millisecond / 2}) {
    const report::Drawing drawing = drawing_of(one_f_one_b(3, 4), millisecond, transfer);
    for (const int width : {640, 1000, 1600}) {
      const std::string document = document_of(drawing, {"messages"}, width);
      const std::map<std::string, DrawnBox> boxes = boxes_in(document);
      const std::vector<DrawnArrow> arrows = arrows_of(document);
      CHECK(arrows.size() == 2 * 2 * 4);  // edges of the pipeline × directions × micro-batches
      for (const DrawnArrow& arrow : arrows) {
        CAPTURE(arrow.from);
        CAPTURE(arrow.to);
        const DrawnBox& from = boxes.at(arrow.from);
        const DrawnBox& to = boxes.at(arrow.to);
        CHECK(std::abs(arrow.x1 - from.right) < 0.02);
        CHECK(std::abs(arrow.x2 - to.left) < 0.02);
        CHECK((arrow.y1 > from.top && arrow.y1 < from.bottom));
        CHECK((arrow.y2 > to.top && arrow.y2 < to.bottom));
      }
    }
  }
  const report::Drawing drawing = drawing_of(one_f_one_b(3, 4), millisecond, millisecond / 2);
  const std::vector<DrawnArrow> one = arrows_of(document_of(drawing, {"messages:2"}));
  CHECK(ops_joined(one) ==
        std::set<std::string>{"0F2 on gpu0 > 1F2 on gpu1", "1F2 on gpu1 > 2F2 on gpu2",
                              "2B2 on gpu2 > 1B2 on gpu1", "1B2 on gpu1 > 0B2 on gpu0"});
  for (const DrawnArrow& arrow : one) {
    CHECK(arrow.kind == (contains(arrow.from, "F") ? "aa" : "ag"));
  }
}

TEST_CASE("an arrow of weights goes from the update that made a version to its first reader") {
  const report::Drawing drawing = drawing_of(one_f_one_b(2, 4, "stash"), millisecond);
  const std::vector<report::Arrow> arrows =
      report::version_arrows(drawing.program, drawing.timeline);
  REQUIRE(!arrows.empty());
  for (const report::Arrow& arrow : arrows) {
    CAPTURE(print(arrow.to.op));
    CHECK(arrow.from.op.kind == OpKind::update);
    CHECK(arrow.from.op.stage == arrow.to.op.stage);
    CHECK(arrow.from.at <= arrow.to.at);
    // No forward of the stage starts between the update and the reader.
    for (const Span& span : drawing.timeline.lane(arrow.to.device, LaneKind::compute)) {
      if (span.op.kind != OpKind::forward || span.op.stage != arrow.to.op.stage) continue;
      CHECK(!(span.start >= arrow.from.at && span.start < arrow.to.at));
    }
  }
  const std::string document = document_of(drawing, {"weights"});
  const std::map<std::string, DrawnBox> boxes = boxes_in(document);
  const std::vector<DrawnArrow> drawn = arrows_of(document);
  CHECK(drawn.size() == arrows.size());
  for (const DrawnArrow& arrow : drawn) {
    const DrawnBox& to = boxes.at(arrow.to);
    CHECK(std::abs(arrow.x2 - to.left) < 0.02);
    CHECK(std::abs(arrow.y2 - to.top) < 0.02);  // arcs lie above their row
  }
}

TEST_CASE("a picture without arrows has nothing of theirs") {
  const report::Drawing drawing = drawing_of(one_f_one_b(3, 4), millisecond);
  const std::string document = report::svg(drawing);
  CHECK(!contains(document, "arrow"));
  CHECK(contains(document_of(drawing, {"weights"}), "No arrows of weights"));
}

TEST_CASE("arrows that cannot be told apart are refused, and so are unknown ones") {
  const report::Drawing many = drawing_of(one_f_one_b(8, 20), millisecond);  // 2 × 7 × 20
  CHECK_THROWS_WITH_AS(document_of(many, {"messages"}), doctest::Contains("has 280 in the part"),
                       UsageError);
  CHECK(arrows_of(document_of(many, {"messages:19"})).size() == 14);
  CHECK_THROWS_AS(document_of(many, {"messages:20"}), UsageError);
  CHECK_THROWS_AS(report::arrow_choice({"messages:-1"}), UsageError);
  CHECK_THROWS_AS(report::arrow_choice({"messages", "messages:1"}), UsageError);
  CHECK_THROWS_AS(report::arrow_choice({"message"}), UsageError);
}

}  // namespace stageline::svg_arrows_tests
