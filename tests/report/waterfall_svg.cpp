// Has a waterfall a bar for each piece, and is what cannot be drawn refused?
#include "tools/report/charts/waterfall.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <map>
#include <regex>
#include <string>
#include <utility>

#include "sim/base/errors.hpp"
#include "tests/report/small_waterfall.hpp"
#include "tests/text.hpp"

namespace stageline::waterfall_svg_tests {

using test::contains;
using test::small_waterfall;

namespace {

std::size_t count_of(const std::string& text, const std::string& word) {
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    ++count;
  }
  return count;
}

}  // namespace

TEST_CASE("a waterfall has a bar for each piece, solid for the first and hatched for the second") {
  const std::string svg = report::waterfall_svg(small_waterfall());
  CHECK(count_of(svg, "<rect class=\"f0\"") == 3 + 1);  // and the key
  CHECK(count_of(svg, "url(#stageline-hatch-band)") == 3 + 1);
  CHECK(contains(svg, "-5 ms"));
  report::WaterfallChart one = small_waterfall();
  one.waterfalls = {"a"};
  for (report::WaterfallRow& row : one.rows) row.bars.resize(1);
  CHECK(count_of(report::waterfall_svg(one), "<rect class=\"f0\"") == 3);
  CHECK(!contains(report::waterfall_svg(one), "url(#stageline-hatch-band)"));
}

TEST_CASE("the devices of a waterfall have a bar each, of parts that add up") {
  report::WaterfallChart chart = small_waterfall();
  const std::string without = report::waterfall_svg(chart);
  CHECK(!contains(without, "By device"));
  chart.stack_parts = {"work", "wait"};
  chart.stacks = {{"gpu0", {40, 20}}, {"gpu1", {65, -5}}};
  const std::string svg = report::waterfall_svg(chart);
  CHECK(contains(svg, "By device"));
  CHECK(contains(svg, "<title>gpu0, wait: 20 ms</title>"));
  CHECK(contains(svg, "<title>gpu1, wait: -5 ms</title>"));
  static const std::regex part(
      "<title>gpu(\\d), (\\w+): [^<]*</title>\n<rect class=\"\\w+ e\" x=\"([^\"]*)\" y=\"[^\"]*\" "
      "width=\"([^\"]*)\"");
  std::map<std::string, std::pair<double, double>> bars;
  for (std::sregex_iterator at(svg.begin(), svg.end(), part), end; at != end; ++at) {
    bars[(*at)[1].str() + (*at)[2].str()] = {std::stod((*at)[3]), std::stod((*at)[4])};
  }
  REQUIRE(bars.size() == 4);
  const auto [work_at, work] = bars.at("0work");
  const auto [wait_at, wait] = bars.at("0wait");
  CHECK(work == doctest::Approx(2 * wait).epsilon(0.01));
  CHECK(wait_at == doctest::Approx(work_at + work).epsilon(0.001));
  CHECK(bars.at("1wait").first < work_at);  // left of 0
}

TEST_CASE("a waterfall of nothing, of three, and of no number is refused") {
  report::WaterfallChart chart = small_waterfall();
  chart.rows.clear();
  CHECK_THROWS_AS(report::waterfall_svg(chart), UsageError);
  chart = small_waterfall();
  chart.waterfalls.emplace_back("d");
  CHECK_THROWS_WITH_AS(report::waterfall_svg(chart), doctest::Contains("not 3"), UsageError);
  chart = small_waterfall();
  chart.rows[0].bars[0].to = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_WITH_AS(report::waterfall_svg(chart), doctest::Contains("finite"), UsageError);
  CHECK_THROWS_AS(report::waterfall_svg(small_waterfall(), {report::Theme::light, 10}), UsageError);
}

}  // namespace stageline::waterfall_svg_tests
