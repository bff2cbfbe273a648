// Do curves and maps stand where their values say, and is what is drawn an SVG?
#include "tools/report/charts/chart.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <regex>

#include "sim/base/errors.hpp"
#include "tests/report/small_waterfall.hpp"
#include "tests/text.hpp"
#include "tools/report/charts/axis.hpp"
#include "tools/report/charts/canvas.hpp"
#include "tools/report/svg/text.hpp"

namespace stageline::chart_tests {

using test::contains;

namespace {

report::Series series(const std::string& name,
                      const std::vector<std::pair<double, double>>& points) {
  report::Series result{name, report::SeriesStyle::line, {}};
  for (const auto& point : points) result.points.push_back({point.first, point.second, false});
  return result;
}

report::Chart two_series() {
  report::Chart chart;
  chart.title = "T";
  chart.x.label = "devices";
  chart.x.whole = true;
  chart.y.label = "speed-up";
  chart.y.unit = "×";
  chart.series = {series("up", {{2, 1}, {3, 2}, {4, 3}}), series("flat", {{2, 1}, {3, 1}, {4, 1}})};
  return chart;
}

report::Region small_region() {
  report::Region region;
  region.x.label = "nodes";
  region.y.label = "D/F";
  region.value_label = "speed-up";
  region.xs = {2, 3, 4};
  region.ys = {0.5, 1};
  region.values = {{1.0, 2.0, std::nullopt}, {2.0, 3.0, 4.0}};
  region.band = report::RegionBand{1.5, 3, "published"};
  return region;
}

// The markers that have a tooltip, by it.
struct Point {
  double x = 0, y = 0;
  std::string classes;
};
std::map<std::string, Point> markers_in(const std::string& document) {
  static const std::regex pattern(
      "<path class=\"([^\"]*)\" transform=\"translate\\(([^ ]*) ([^)]*)\\)[^\"]*\" "
      "d=\"[^\"]*\"><title>([^<]*)</title>");
  std::map<std::string, Point> found;
  for (std::sregex_iterator at(document.begin(), document.end(), pattern), end; at != end; ++at) {
    found[(*at)[4]] = {std::stod((*at)[2]), std::stod((*at)[3]), (*at)[1]};
  }
  return found;
}

struct Text {
  double x = 0, y = 0, width = 0;
  std::string words;
};
std::vector<Text> texts_in(const std::string& document) {
  static const std::regex pattern(
      "<text class=\"([^\"]*)\" x=\"([^\"]*)\" y=\"([^\"]*)\" font-size=\"([^\"]*)\">([^<]*)<");
  std::vector<Text> found;
  for (std::sregex_iterator at(document.begin(), document.end(), pattern), end; at != end; ++at) {
    const double width = report::text_width((*at)[5].str(), std::stod((*at)[4]));
    const std::string classes = " " + (*at)[1].str() + " ";
    const double shift = contains(classes, " n ")   ? width / 2
                         : contains(classes, " r ") ? width
                                                    : 0;
    found.push_back({std::stod((*at)[2]) - shift, std::stod((*at)[3]), width, (*at)[5]});
  }
  return found;
}

// Two texts that touch each other, or "".
std::string overlap_in(const std::string& document) {
  const std::vector<Text> texts = texts_in(document);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    for (std::size_t k = i + 1; k < texts.size(); ++k) {
      const Text& a = texts[i];
      const Text& b = texts[k];
      if (std::abs(a.y - b.y) < 10 && a.x < b.x + b.width && b.x < a.x + a.width) {
        return a.words + " / " + b.words;
      }
    }
  }
  return "";
}

// `count` curves that end close together, over 2 to 16 devices.
report::Chart crowded(int count) {
  report::Chart chart;
  chart.title = "Many";
  chart.x.label = "devices";
  chart.x.whole = true;
  chart.y.label = "speed-up";
  for (int i = 0; i < count; ++i) {
    report::Series one{fmt::format("schedule:knob={}", i), report::SeriesStyle::line, {}};
    for (int d = 2; d <= 16; ++d) one.points.push_back({1.0 * d, 4 + 0.01 * i * d, false});
    chart.series.push_back(one);
  }
  chart.horizontal = {{1, "one device"}, {4.1, "another line"}};
  chart.vertical = {{3, "a long label of a line"}, {4, "and the next"}, {16, "at the very end"}};
  return chart;
}

}  // namespace

TEST_CASE("points stand in proportion to their values") {
  const auto points = markers_in(report::chart_svg(two_series()));
  REQUIRE(points.size() == 6);
  const Point a = points.at("up: 1× at 2 devices");
  const Point b = points.at("up: 2× at 3 devices");
  const Point c = points.at("up: 3× at 4 devices");
  CHECK(b.x - a.x == doctest::Approx(c.x - b.x).epsilon(0.001));
  CHECK(a.y - b.y == doctest::Approx(b.y - c.y).epsilon(0.001));
  CHECK(b.x > a.x + 100);
  CHECK(a.y > b.y + 50);
  CHECK(points.at("flat: 1× at 3 devices").y == doctest::Approx(a.y));
}

TEST_CASE("whiskers reach as far as the axes, which hold them") {
  report::Chart chart;
  chart.x.label = "place";
  chart.y.label = "step";
  report::ChartPoint point{1, 10.0};
  report::Series series{"step", report::SeriesStyle::points, {point, report::ChartPoint{2, 11.0}}};
  chart.series = {series};
  const auto lines = [](const std::string& svg) {
    std::size_t count = 0;
    for (std::size_t at = svg.find("class=\"axis\""); at != std::string::npos;
         at = svg.find("class=\"axis\"", at + 1)) {
      ++count;
    }
    return count;
  };
  const std::size_t before = lines(report::chart_svg(chart));
  chart.series[0].points[0].y_range = report::ChartRange{9, 10.5};
  CHECK(lines(report::chart_svg(chart)) == before + 3);
  chart.series[0].points[0].x_range = report::ChartRange{0.5, 1.5};
  CHECK(lines(report::chart_svg(chart)) >= before + 6);
  chart.series[0].points[0].y_range = report::ChartRange{9, 40};
  CHECK(report::chart_svg(chart).find(">40<") != std::string::npos);
  chart.series[0].points[0].y_range = report::ChartRange{9, INFINITY};
  CHECK_THROWS_AS(report::chart_svg(chart), UsageError);
}

TEST_CASE("a logarithmic axis makes equal ratios equal distances") {
  report::Chart chart = two_series();
  chart.y.log = true;
  chart.series = {series("t", {{2, 1}, {3, 10}, {4, 1000}})};
  const auto points = markers_in(report::chart_svg(chart));
  const double one = points.at("t: 1× at 2 devices").y;
  const double ten = points.at("t: 10× at 3 devices").y;
  const double thousand = points.at("t: 1000× at 4 devices").y;
  CHECK(one - thousand == doctest::Approx(3 * (one - ten)).epsilon(0.001));
}

TEST_CASE("what is not possible is a gap in the line, and open points are hollow") {
  report::Chart chart = two_series();
  chart.series = {series("a", {{2, 1}, {3, 1}, {4, 2}, {5, 2}, {6, 3}})};
  const auto lines = [&] {
    const std::string document = report::chart_svg(chart);
    std::smatch found;
    REQUIRE(std::regex_search(document, found, std::regex("<path class=\"ln s0\" d=\"([^\"]*)\"")));
    return found[1].str();
  };
  const std::string whole = lines();
  CHECK(std::count(whole.begin(), whole.end(), 'M') == 1);
  CHECK(std::count(whole.begin(), whole.end(), 'L') == 4);
  chart.series[0].points[2].y.reset();
  chart.series[0].points[3].open = true;
  const std::string broken = lines();
  CHECK(std::count(broken.begin(), broken.end(), 'M') == 2);
  CHECK(std::count(broken.begin(), broken.end(), 'L') == 2);
  const auto points = markers_in(report::chart_svg(chart));
  CHECK(points.size() == 4);
  CHECK(contains(points.at("a: 2× at 5 devices").classes, "open"));
  CHECK(!contains(points.at("a: 3× at 6 devices").classes, "open"));
}

TEST_CASE("no label touches another, beside the curves or above them") {
  for (const int count : {2, 5, 8, 20, 36}) {
    for (const int width : {400, 640, 1000}) {
      CAPTURE(count);
      CAPTURE(width);
      const std::string document = report::chart_svg(crowded(count), {report::Theme::light, width});
      CHECK(overlap_in(document) == "");
      CHECK(contains(document, fmt::format("schedule:knob={}</text>", count - 1)));
      for (const Text& text : texts_in(document)) {
        INFO(text.words);
        CHECK(text.x >= 0);
        CHECK(text.x + text.width <= width + 0.01);
      }
    }
  }
}

TEST_CASE(
    "every labelled point has its label, none touches another, and the marked one has a ring") {
  report::Chart chart = two_series();
  chart.x.whole = false;
  chart.series = {series("front", {})};
  for (int i = 0; i < 15; ++i) {  // pairs of points close together
    const int pair = i / 2;
    chart.series[0].points.push_back(
        {16 + 0.5 * pair + 0.03 * (i % 2), 30.0 - i, false, fmt::format("{}", i + 1), i == 3});
  }
  for (const int width : {640, 1000}) {
    CAPTURE(width);
    const std::string document = report::chart_svg(chart, {report::Theme::light, width});
    CHECK(overlap_in(document) == "");
    for (int i = 0; i < 15; ++i) {
      CAPTURE(i);
      CHECK(std::regex_search(document, std::regex(fmt::format("class=\"t( r)?{}\"[^>]*>{}</text>",
                                                               i == 3 ? " h" : "", i + 1))));
    }
    CHECK(contains(document, "<circle class=\"ln s0\""));
  }
}

TEST_CASE("a series of few markers has them at labelled points, and a key may be above any chart") {
  report::Chart chart = two_series();
  chart.series[0].few_markers = true;
  chart.series[0].points[1].label = "p50";
  CHECK(markers_in(report::chart_svg(chart)).size() == 1 + 3);
  const auto left_of_name = [&] {
    for (const Text& text : texts_in(report::chart_svg(chart))) {
      if (text.words == "flat") return text.x;
    }
    return -1.0;
  };
  CHECK(left_of_name() > 800);
  chart.key_above = true;
  CHECK(left_of_name() < 300);
}

TEST_CASE("labels are spread no farther than they must be") {
  CHECK(report::spread({10, 50}, 15, 0, 100) == std::vector<double>{10, 50});
  CHECK(report::spread({50, 50}, 10, 0, 100) == std::vector<double>{45, 55});
  CHECK(report::spread({60, 50, 52}, 10, 0, 100) == std::vector<double>{64, 44, 54});
  CHECK(report::spread({99, 99, 99}, 10, 0, 100) == std::vector<double>{80, 90, 100});
  CHECK(report::spread({-5, 0}, 10, 0, 100) == std::vector<double>{0, 10});
}

TEST_CASE("ticks are 1-2-5 and whole where only whole numbers have a meaning") {
  const auto labels = [](const report::ValueScale& scale, int intervals, bool whole) {
    std::string out;
    for (const report::Tick& tick : report::ticks(scale, intervals, whole)) out += tick.label + " ";
    return out;
  };
  CHECK(labels({0, 1, false}, 5, false) == "0.0 0.2 0.4 0.6 0.8 1.0 ");
  CHECK(labels({2, 4, false}, 10, true) == "2 3 4 ");
  CHECK(labels({2, 16, false}, 10, true) == "2 4 6 8 10 12 14 16 ");
  CHECK(labels({-30, 30, false}, 3, false) == "-20 0 20 ");
  CHECK(labels({1, 100, true}, 10, false) == "1 2 5 10 20 50 100 ");
  CHECK(labels({1, 1e6, true}, 4, false) == "1 100 1e+04 1e+06 ");
  CHECK(labels({2, 16, true}, 10, true) == "2 4 8 16 ");
}

TEST_CASE("of a crowd, the best are coloured and named, the others grey") {
  report::Chart chart = crowded(25);
  chart.series[3].points.back().y.reset();  // no value at the last x: behind all others
  report::highlight_best(chart, 6);
  std::size_t faint = 0;
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    CHECK(chart.series[i].faint == (i < 19));  // later ones are higher
    faint += chart.series[i].faint ? 1 : 0;
  }
  CHECK(faint == 19);
  CHECK(chart.series[24].ink == 0);
  CHECK(chart.series[19].ink == 5);
  const std::string& note = chart.footnotes.back();
  CHECK(note.rfind("Coloured: the 6 highest at 16 devices. Grey, from the highest: "
                   "schedule:knob=18, schedule:knob=17",
                   0) == 0);
  CHECK(note.find("schedule:knob=0, schedule:knob=3.") != std::string::npos);
  const std::string document = report::chart_svg(chart);
  CHECK(contains(document, ">schedule:knob=24<"));
  CHECK(!contains(document, ">schedule:knob=1<"));
  CHECK(contains(document, "<title>schedule:knob=1: "));  // its points have tooltips
  CHECK(contains(document, "class=\"ln sf faint\""));
  CHECK(overlap_in(document) == "");
}

TEST_CASE("a few curves more than are coloured stay as they are") {
  report::Chart chart = crowded(8);
  const std::size_t notes = chart.footnotes.size();
  report::highlight_best(chart, 6);
  CHECK(chart.footnotes.size() == notes);
  for (const report::Series& series : chart.series) CHECK(!series.faint);
}

TEST_CASE("series of one ink have one colour and one marker") {
  report::Chart chart = two_series();
  chart.series[1].ink = 0;
  const auto markers = markers_in(report::chart_svg(chart));
  CHECK(markers.at("up: 2× at 3 devices").classes == markers.at("flat: 1× at 3 devices").classes);
}

TEST_CASE("as text, 36 series have letters of their own") {
  std::vector<std::string> seen;
  for (std::size_t i = 0; i < 36; ++i) {
    for (const bool small : {false, true}) {
      CHECK(std::find(seen.begin(), seen.end(), report::letter(i, small)) == seen.end());
      CHECK(columns_of(report::letter(i, small)) == 1);
      seen.push_back(report::letter(i, small));
    }
  }
  CHECK(contains(report::chart_text(crowded(36), 80, 16), "Ω schedule:knob=35"));
}

TEST_CASE("a chart as text, to the letter") {
  CHECK("\n" + report::chart_text(two_series(), 30, 7) == R"(
T
speed-up, ×
3 ┤                      ···A
  │                ······
2 ┤          ···A··
  │    ······
1 ┤ AB··········B···········B
  │
0 ┤
  └─┬───────────┬───────────┬─
    2           3           4
                       devices
A up   B flat
)");
}

TEST_CASE("points of several series in one place stand side by side, or share a star") {
  report::Chart chart = two_series();
  chart.series = {series("a", {{0, 1}, {1, 1}}), series("b", {{0, 1}, {1, 1}})};
  CHECK(contains(report::chart_text(chart, 40, 5), "AB"));
  CHECK(!contains(report::chart_text(chart, 40, 5), "* several"));
  chart.series.clear();
  for (const char* const name : {"a", "b"}) {
    report::Series dense{name, report::SeriesStyle::line, {}};
    for (int i = 0; i < 40; ++i) dense.points.push_back({1.0 * i, 1.0, false});
    chart.series.push_back(dense);
  }
  CHECK(contains(report::chart_text(chart, 40, 5), "****"));
  CHECK(contains(report::chart_text(chart, 40, 5), "* several"));
}

TEST_CASE("each of 36 series has a letter of its own") {
  const std::string text = report::chart_text(crowded(36), 80, 9);
  CHECK(contains(text, "Z schedule:knob=25"));
  CHECK(contains(text, "Γ schedule:knob=26"));
  CHECK(contains(text, "Ω schedule:knob=35"));
}

TEST_CASE("text keeps within its columns") {
  for (const int columns : {30, 47, 80}) {
    std::string out = report::chart_text(crowded(36), columns, 9) +
                      report::region_text(small_region(), columns, 9);
    std::size_t at = 0;
    while (at < out.size()) {
      const std::size_t end = out.find('\n', at);
      const std::string line = out.substr(at, end - at);
      CAPTURE(line);
      CHECK(std::count_if(line.begin(), line.end(), [](char c) {
              return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
            }) <= columns);
      at = end + 1;
    }
  }
}

TEST_CASE("a region as text, to the letter") {
  report::Region region = small_region();
  region.marks = {{3, 1, "here"}};
  CHECK("\n" + report::region_text(region, 30, 5) == R"(
speed-up; rows: D/F
  1 ┤######A#++++
0.5 ┤....####
    └──┬───┬───┬─
       2   3   4
            nodes
# published   . below 1.5
+ above 3
blank: not possible   A here
)");
  region.band.reset();
  region.marks.clear();
  CHECK(contains(report::region_text(region, 30, 5), "1 ┤333366669999\n"));
}

TEST_CASE("a band's outline goes around its cells") {
  const std::string document = report::region_svg(small_region());
  std::smatch found;
  REQUIRE(
      std::regex_search(document, found, std::regex("class=\"band edge\"[^>]* d=\"([^\"]*)\"")));
  // Cells in the band: (1, 0), (0, 1), (1, 1): six edges along x, of which runs join, and so on.
  const std::string path = found[1];
  CHECK(std::count(path.begin(), path.end(), 'H') == 3);
  CHECK(std::count(path.begin(), path.end(), 'V') == 3);
  CHECK(contains(document, "not possible"));
  report::Region outside = small_region();
  outside.band = report::RegionBand{10, 11, "far away"};
  CHECK(contains(report::region_svg(outside), "No cell lies in far away."));
  CHECK(!contains(report::region_svg(outside), "band edge"));
}

TEST_CASE("what cannot be drawn is refused with its numbers") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto refused = [](const report::Chart& chart) {
    CHECK_THROWS_AS(report::chart_svg(chart), UsageError);
    return test::complaint<UsageError>([&] { report::chart_text(chart, 80, 16); });
  };
  report::Chart chart = two_series();
  chart.series.clear();
  CHECK(contains(refused(chart), "nothing to draw"));
  chart.series = {report::Series{"a", report::SeriesStyle::line, {{1, std::nullopt, false}}}};
  CHECK(contains(refused(chart), "1 series with 1 points"));
  chart.series = {series("a", {{1, 1}, {2, nan}})};
  CHECK(contains(refused(chart), "y of point 1 of a must be a finite number, but is nan"));
  chart.series = {series("a", {{0, 1}})};
  chart.x.log = true;
  CHECK(contains(refused(chart), "above 0 on a logarithmic axis"));
  CHECK(contains(refused(crowded(37)), "at most 36 series"));
  CHECK_THROWS_AS(report::chart_text(two_series(), 29, 16), UsageError);
  CHECK_THROWS_AS(report::chart_svg(two_series(), {report::Theme::light, 100}), UsageError);

  const auto refused_region = [](const report::Region& region) {
    CHECK_THROWS_AS(report::region_svg(region), UsageError);
    return test::complaint<UsageError>([&] { report::region_text(region, 80, 16); });
  };
  CHECK(contains(refused_region({}), "nothing to draw"));
  report::Region region = small_region();
  region.values[1].pop_back();
  CHECK(contains(refused_region(region), "row 1 has 2 for 3 x"));
  region = small_region();
  region.values[0][0] = nan;
  CHECK(contains(refused_region(region), "value 0 of row 0 must be a finite number"));
  region = small_region();
  region.xs = {2, 2, 3};
  CHECK(contains(refused_region(region), "must ascend, but 2 follows 2"));
  region = small_region();
  region.band = report::RegionBand{3, 1, ""};
  CHECK(contains(refused_region(region), "3 to 1"));
  region = small_region();
  region.marks = {{9, 1, "m"}};
  CHECK(contains(refused_region(region), "a mark at 9 is outside of its axis, 2 to 4"));
}

TEST_CASE("every XML parser reads a chart, whatever its names") {
  report::Chart odd = crowded(8);
  odd.title = "a <b> & 'c' \x02 \xff";
  odd.series[1].name = "<&\">";
  report::Region region = small_region();
  region.marks = {{2, 0.5, "<mark>"}};
  const std::vector<std::string> documents{
      report::chart_svg(odd),
      report::chart_svg(odd, {report::Theme::dark, 400}),
      report::region_svg(region),
      report::chart_svg(crowded(36)),
      report::waterfall_svg(test::small_waterfall()),
      report::waterfall_svg(test::small_waterfall(), {report::Theme::dark, 400})};
  CHECK(contains(documents[0], "&lt;&amp;&quot;&gt;</text>"));
  CHECK(report::chart_svg(odd) == documents[0]);
  const char* checker = std::getenv("STAGELINE_WELLFORMED");
  if (!checker) {
    MESSAGE("skipped: STAGELINE_WELLFORMED does not name wellformed.py");
    return;
  }
  std::string command = fmt::format("python3 '{}'", checker);
  const auto folder = std::filesystem::temp_directory_path() /
                      fmt::format("stageline-chart-{}", static_cast<const void*>(&odd));
  std::filesystem::create_directories(folder);
  for (std::size_t i = 0; i < documents.size(); ++i) {
    const auto path = folder / fmt::format("{}.svg", i);
    std::ofstream(path) << documents[i];
    command += fmt::format(" '{}'", path.string());
  }
  CHECK(std::system(command.c_str()) == 0);
  std::filesystem::remove_all(folder);
}

}  // namespace stageline::chart_tests
