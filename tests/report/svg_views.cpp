// What part of which runs does a picture show, and is every box labelled that has room?
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <regex>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tests/report/example.hpp"
#include "tests/text.hpp"
#include "tools/report/timeline/svg.hpp"
#include "tools/report/timeline/svg_page.hpp"
#include "tools/report/timeline/svg_window.hpp"

namespace stageline::svg_views_tests {

using examples::drawing_of;
using examples::millisecond;
using examples::one_f_one_b;
using test::contains;

namespace {

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) {
    ++count;
  }
  return count;
}

// Left and right edges of the boxes, by the op and device of their tooltips.
std::map<std::string, std::pair<double, double>> boxes_in(const std::string& document) {
  static const std::regex pattern(
      "<rect class=\"[^\"]*\" x=\"([^\"]*)\" y=\"[^\"]*\" width=\"([^\"]*)\" height=\"[^\"]*\">"
      "<title>([^:<]*):");
  std::map<std::string, std::pair<double, double>> found;
  for (std::sregex_iterator at(document.begin(), document.end(), pattern), end; at != end; ++at) {
    const double left = std::stod((*at)[1]);
    found[(*at)[3]] = {left, left + std::stod((*at)[2])};
  }
  return found;
}

// A device with forwards of these lengths, one after the other.
report::Drawing forwards(const std::vector<int>& lengths, std::uint32_t first = 0) {
  report::Drawing drawing;
  drawing.timeline.devices = {"gpu0"};
  drawing.timeline.lanes.resize(lane_kinds);
  Time at{};
  for (const int length : lengths) {
    const auto number = first + static_cast<std::uint32_t>(drawing.timeline.lanes[0].size());
    drawing.timeline.lanes[0].push_back(
        {op_of(OpKind::forward, 0, number), at, at + millisecond * length});
    at += millisecond * length;
  }
  return drawing;
}

std::size_t label_count(const std::string& document) {
  return count_of(document, "<text class=\"k n\"") + count_of(document, "<text class=\"w n\"");
}

report::DrawingView window(Time from, std::optional<Time> to) { return {{}, from, to}; }

}  // namespace

TEST_CASE("every box with room has its number, though most of its kind have none") {
  // 39 boxes too narrow for a number, and one with room.
  std::vector<int> lengths(39, 1);
  lengths.push_back(60);
  CHECK(label_count(report::svg(forwards(lengths), {report::Theme::light, 400})) == 1);
  // Numbers of three digits are smaller than those of one, and none is bare.
  CHECK(label_count(report::svg(forwards(std::vector<int>(40, 1), 90),
                                {report::Theme::light, 1000})) == 40);
}

TEST_CASE("the stage's number stays within half of a row") {
  report::Drawing drawing;
  drawing.timeline.devices = {"gpu0"};
  drawing.timeline.lanes.resize(lane_kinds);
  Op forward = op_of(OpKind::forward, 0, 3);
  forward.overlapped = 1;
  const Op backward = op_of(OpKind::backward, 1, 2);
  drawing.timeline.lanes[0] = {{forward, Time{}, millisecond}, {backward, Time{}, millisecond}};
  const std::string document = report::svg(drawing);
  static const std::regex box(
      "<rect class=\"(?:f|pb)[^\"]*\" x=\"[^\"]*\" y=\"([^\"]*)\" "
      "width=\"[^\"]*\" height=\"([^\"]*)\">");
  static const std::regex label("y=\"([^\"]*)\" font-size=\"[^\"]*\">\\d<tspan dy=\"([^\"]*)\"");
  std::vector<std::pair<double, double>> halves;
  for (std::sregex_iterator at(document.begin(), document.end(), box), end; at != end; ++at) {
    halves.emplace_back(std::stod((*at)[1]), std::stod((*at)[2]));
  }
  std::size_t number = 0;
  for (std::sregex_iterator at(document.begin(), document.end(), label), end; at != end; ++at) {
    REQUIRE(number < halves.size());
    const auto [top, height] = halves[number++];
    const double base = std::stod((*at)[1]) + std::stod((*at)[2]);
    CHECK(base > top);
    CHECK(base <= top + height - 0.9);  // clear of the edge
  }
  CHECK(number == 2);
}

TEST_CASE("lanes in which nothing takes time have no strip") {
  const std::string free = report::svg(drawing_of(one_f_one_b(3, 4), millisecond));
  CHECK(!contains(free, ">send</text>"));
  CHECK(!contains(free, ">receive</text>"));
  const std::string busy = report::svg(drawing_of(one_f_one_b(3, 4), millisecond, millisecond / 4));
  CHECK(count_of(busy, ">send</text>") == 3);
  CHECK(count_of(busy, ">receive</text>") == 3);
}

TEST_CASE("filling and draining differ in more than their grey") {
  const std::string document = report::svg(drawing_of(one_f_one_b(3, 4), millisecond));
  CHECK(contains(document, ".dd{fill:url(#stageline-hatch-d)}"));
  CHECK(contains(document, ".di{fill:#"));
}

TEST_CASE("at 400 px every word is on the page, and the legend above the curves") {
  report::Drawing drawing = drawing_of(one_f_one_b(3, 4), millisecond);
  const std::string document = report::svg(drawing, {report::Theme::light, 400});
  static const std::regex text(
      "<text class=\"([^\"]*)\" x=\"([^\"]*)\" y=\"([^\"]*)\" font-size=\"([^\"]*)\">([^<]*)<");
  for (std::sregex_iterator at(document.begin(), document.end(), text), end; at != end; ++at) {
    const std::string classes = (*at)[1];
    if (contains(classes, " n") || contains(classes, " r")) continue;
    INFO((*at)[5].str());
    // text_width is an upper bound.
    CHECK(std::stod((*at)[2]) + report::text_width((*at)[5].str(), std::stod((*at)[4])) <= 406);
  }
}

TEST_CASE("a window shows what is within it, at the same times") {
  const report::Drawing drawing = drawing_of(one_f_one_b(3, 4), millisecond, millisecond / 4);
  const Time from = 3 * millisecond;
  const Time to = 7 * millisecond;
  const std::string document = report::svg(drawing, {}, window(from, to));
  CHECK(contains(document, "3 ms to 7 ms shown"));
  const auto boxes = boxes_in(document);
  double left = 1e9;
  double right = 0;
  for (const auto& [name, edges] : boxes) {
    left = std::min(left, edges.first);
    right = std::max(right, edges.second);
  }
  std::size_t expected = 0;
  for (int device = 0; device < 3; ++device) {
    for (const Span& span : drawing.timeline.lane(device, LaneKind::compute)) {
      const std::string name = fmt::format("{} on gpu{}", print(span.op), device);
      const bool inside = span.start < to && span.end > from && span.end > span.start;
      CHECK((boxes.count(name) == 1) == inside);
      if (!inside) continue;
      ++expected;
      const auto x = [&](Time time) {
        const Time within = std::clamp(time, from, to);
        return left + (right - left) * to_seconds(within - from) / to_seconds(to - from);
      };
      CHECK(std::abs(boxes.at(name).first - x(span.start)) <= 0.011);
      CHECK(std::abs(boxes.at(name).second - x(span.end)) <= 0.021);
    }
  }
  CHECK(expected > 0);
}

TEST_CASE("idle shares and peaks are those of the window") {
  report::Drawing drawing = drawing_of(one_f_one_b(2, 4), millisecond);
  // gpu1 waits for the first forward of gpu0, a millisecond.
  CHECK(contains(report::svg(drawing, {}, window(Time{}, millisecond)), ">100.0 %</text>"));
  const std::string busy = report::svg(drawing, {}, window(millisecond, 2 * millisecond));
  CHECK(!contains(busy, ">100.0 %</text>"));
  Bytes most{};
  for (const MemoryPoint& point :
       report::clipped(drawing.memory.device[0].curve, Time{}, millisecond / 2)) {
    most = std::max(most, total(point.use));
  }
  CHECK(most < drawing.memory.device[0].peak);
  CHECK(contains(report::svg(drawing, {}, window(Time{}, millisecond / 2)),
                 fmt::format(">{}</text>", report::brief(most))));
}

TEST_CASE("an axis may end after the run, but not before it begins") {
  const report::Drawing drawing = drawing_of(one_f_one_b(2, 2), millisecond);
  const Time end = makespan(drawing.timeline);
  const auto boxes = boxes_in(report::svg(drawing));
  const auto longer = boxes_in(report::svg(drawing, {}, window(Time{}, 2 * end)));
  CHECK(longer.at("0F0 on gpu0").second < boxes.at("0F0 on gpu0").second);
  CHECK_THROWS_WITH_AS(report::svg(drawing, {}, window(end, std::nullopt)),
                       doctest::Contains("the run ends at"), UsageError);
  CHECK_THROWS_WITH_AS(report::svg(drawing, {}, window(millisecond, millisecond)),
                       doctest::Contains("must end after its beginning"), UsageError);
}

TEST_CASE("the whole run as a window changes nothing but the words") {
  const report::Drawing drawing =
      drawing_of(one_f_one_b(3, 6, "stash"), millisecond, millisecond / 4);
  CHECK(boxes_in(report::svg(drawing)) ==
        boxes_in(report::svg(drawing, {}, window(Time{}, makespan(drawing.timeline)))));
  CHECK(report::svg(drawing) == report::svg(drawing, {}, window(Time{}, std::nullopt)));
}

TEST_CASE("panels are those asked for") {
  const report::Drawing drawing = drawing_of(one_f_one_b(3, 6, "stash"), millisecond);
  const std::string timeline = report::svg(drawing, {}, {{true, false, false}, {}, {}});
  CHECK(contains(timeline, ">idle</text>"));
  CHECK(!contains(timeline, ">Memory</text>"));
  CHECK(!contains(timeline, ">Weights</text>"));
  const std::string memory = report::svg(drawing, {}, {{false, true, false}, {}, {}});
  CHECK(boxes_in(memory).empty());
  CHECK(contains(memory, ">Memory</text>"));
  CHECK(contains(memory, "time, ms"));
  const std::string weights = report::svg(drawing, {}, {{false, false, true}, {}, {}});
  CHECK(contains(weights, ">Weights</text>"));
  CHECK(!contains(weights, ">Memory</text>"));
}

TEST_CASE("several runs share axis, legend and scale of memory") {
  report::Drawings both;
  both.title = "Both";
  both.runs = {drawing_of(one_f_one_b(3, 4), millisecond),
               drawing_of(one_f_one_b(3, 8), millisecond)};
  both.runs[0].title = "short";
  both.runs[1].title = "long";
  for (report::Drawing& run : both.runs) run.footnotes = {"Costs are assumed."};
  both.runs[1].footnotes.emplace_back("It is long.");
  const std::string document = report::svg(both, {}, {{true, false, false}, {}, {}});
  CHECK(contains(document, ">short</text>"));
  CHECK(contains(document, ">long</text>"));
  CHECK(count_of(document, ">time, ms</text>") == 1);
  CHECK(count_of(document, ">idle: filling</text>") == 1);
  CHECK(count_of(document, ">Costs are assumed.</text>") == 1);
  CHECK(contains(document, ">long: It is long.</text>"));
  // The first op of both is at the same place.
  CHECK(count_of(document, "<title>0F0 on gpu0: ") == 2);
  const std::string with_memory = report::svg(both);
  CHECK(count_of(with_memory, ">Memory</text>") == 2);
  CHECK(count_of(with_memory, ">time, ms</text>") == 2);
  CHECK_THROWS_WITH_AS(report::svg(report::Drawings{}), doctest::Contains("nothing to draw"),
                       UsageError);
}

TEST_CASE("a step function is cut to a window, and its last value before it holds") {
  struct Point {
    Time at{};
    int value = 0;
    bool operator==(const Point&) const = default;
  };
  const std::vector<Point> points{{Time{0}, 1}, {Time{3}, 2}, {Time{5}, 3}, {Time{9}, 4}};
  CHECK((report::clipped(points, Time{0}, Time{9}) == points));
  CHECK((report::clipped(points, Time{4}, Time{6}) ==
         std::vector<Point>{{Time{4}, 2}, {Time{5}, 3}}));
  CHECK((report::clipped(points, Time{5}, Time{6}) == std::vector<Point>{{Time{5}, 3}}));
  CHECK((report::clipped(points, Time{20}, Time{30}) == std::vector<Point>{{Time{20}, 4}}));
  CHECK(report::clipped(std::vector<Point>{{Time{7}, 1}}, Time{1}, Time{2}).empty());
}

}  // namespace stageline::svg_views_tests
