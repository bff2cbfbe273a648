// Are the stacks of memory by category those of the account?
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "sim/analysis/memory_categories.hpp"
#include "sim/base/index.hpp"
#include "tests/report/example.hpp"
#include "tools/report/svg/categories.hpp"
#include "tools/report/svg/text.hpp"
#include "tools/report/timeline/svg.hpp"

namespace stageline::svg_categories_tests {

using examples::drawing_of;
using examples::millisecond;
using examples::one_f_one_b;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

report::DrawingView categories_alone() { return {{false, false, false, true}, {}, {}}; }

std::string drawn(const report::Drawing& drawing, report::Theme theme = report::Theme::light) {
  return report::svg(drawing, {theme, 1000}, categories_alone());
}

// The corners of a path "M x y H x V y …" as x, y.
using Corners = std::vector<std::pair<double, double>>;

Corners corners_of(const std::string& data) {
  static const std::regex move("([MHV])(-?[0-9.]+)(?: (-?[0-9.]+))?");
  Corners corners;
  for (std::sregex_iterator at(data.begin(), data.end(), move), end; at != end; ++at) {
    const double value = std::stod((*at)[2]);
    if ((*at)[1] == "M") {
      corners.emplace_back(value, std::stod((*at)[3]));
    } else if ((*at)[1] == "H") {
      corners.emplace_back(value, corners.back().second);
    } else {
      corners.emplace_back(corners.back().first, value);
    }
  }
  return corners;
}

// The height of a step function at x: the last value at or before it.
double height_at(const Corners& corners, double x) {
  double y = corners.front().second;
  for (const auto& [at, value] : corners) {
    if (at <= x + 0.005) y = value;
  }
  return y;
}

// The data of the first path of that class in each panel.
std::vector<Corners> paths_of(const std::string& document, std::string_view classes) {
  const std::regex pattern(fmt::format("<path class=\"{}\" d=\"([^\"]*)\"", classes));
  std::vector<Corners> found;
  for (std::sregex_iterator at(document.begin(), document.end(), pattern), end; at != end; ++at) {
    found.push_back(corners_of((*at)[1]));
  }
  return found;
}

Corners without_foot(Corners corners) {  // V bottom, H left
  corners.resize(corners.size() - 2);
  return corners;
}

}  // namespace

TEST_CASE("at the peak each band is as high as its category, and the mark is upon them") {
  report::Drawing drawing = drawing_of(one_f_one_b(1, 3), millisecond);
  DeviceMemory& memory = drawing.memory.device[0];
  memory.reserve = Bytes{2};
  const std::string document = drawn(drawing);
  const auto totals = paths_of(document, "total");
  REQUIRE(totals.size() == 1);
  static const std::regex mark("<circle class=\"dot\" cx=\"([^\"]*)\" cy=\"([^\"]*)\"");
  std::smatch dot;
  REQUIRE(std::regex_search(document, dot, mark));
  const double x = std::stod(dot[1]);
  CHECK(height_at(totals[0], x) == doctest::Approx(std::stod(dot[2])));

  const CategoryUse use = peak_by_category(memory);
  Bytes below{};
  double bottom = 0;
  double pixels = 0;  // a byte
  for (int i = 0; i < memory_categories; ++i) {
    const auto category = static_cast<MemoryCategory>(i);
    const auto bands = paths_of(document, report::css_class(category));
    CHECK(bands.size() == (nth(use, category) > Bytes{} ? 1 : 0));
    if (bands.empty()) continue;
    CHECK(contains(document, fmt::format(">{}</text>", report::words(category))));
    const double y = height_at(without_foot(bands[0]), x);
    below += nth(use, category);
    if (category == MemoryCategory::reserve) {
      bottom = bands[0].back().second;
      pixels = (bottom - y) / static_cast<double>(below.count);
      CHECK(pixels > 0);
    }
    CHECK(std::abs(y - (bottom - pixels * static_cast<double>(below.count))) < 0.05);
  }
  CHECK(below == memory.peak + memory.reserve);
}

TEST_CASE("the peak has its op and moment, and its limit") {
  report::Drawing drawing = drawing_of(one_f_one_b(2, 4), millisecond);
  REQUIRE(drawing.memory.device[0].peak_op);
  const std::string op = print(drawing.memory.device[0].peak_op->op);
  std::string document = drawn(drawing);
  CHECK(contains(document, fmt::format(">{}</text>", op)));       // at the mark
  CHECK(contains(document, fmt::format(">{} runs</text>", op)));  // in the column
  CHECK(contains(document, ">at 1 ms</text>"));
  const Bytes peak = drawing.memory.device[0].peak;
  drawing.memory_limit = {Bytes{peak.count + 1}, std::nullopt};
  document = drawn(drawing);
  CHECK(contains(document, "class=\"limit\""));
  CHECK(contains(document, fmt::format(">of {}</text>", report::brief(Bytes{peak.count + 1}))));
}

// A limit is that of training: the device's memory without its reserve.
TEST_CASE(
    "what fits beside a reserve is below the limit of the stack, and what does not is above") {
  report::Drawing drawing = drawing_of(one_f_one_b(2, 4), millisecond);
  DeviceMemory& memory = drawing.memory.device[0];
  memory.reserve = Bytes{2};
  const auto y_of = [](const std::string& document, const std::regex& pattern) {
    std::smatch found;
    REQUIRE(std::regex_search(document, found, pattern));
    return std::stod(found[1]);
  };
  static const std::regex line("<path class=\"limit\" d=\"M[^ ]* ([0-9.]+)");
  static const std::regex dot("<circle class=\"dot\" cx=\"[^\"]*\" cy=\"([^\"]*)\"");
  REQUIRE(memory.peak > Bytes{1});
  for (const std::int64_t room : {std::int64_t{1}, std::int64_t{-1}}) {
    drawing.memory_limit = {Bytes{memory.peak.count + room}, std::nullopt};
    const std::string document = drawn(drawing);
    CHECK(contains(document, ">+ 2 B reserve</text>"));
    CHECK(contains(document, fmt::format(">{} {}</text>", room > 0 ? "of" : "over",
                                         report::brief(Bytes{memory.peak.count + room + 2}))));
    // Downwards.
    CHECK((y_of(document, line) < y_of(document, dot)) == (room > 0));
  }
}

TEST_CASE("in a window the peak and its op are those of the window") {
  const report::Drawing drawing = drawing_of(one_f_one_b(2, 4), millisecond);
  report::DrawingView view = categories_alone();
  view.to = millisecond / 2;
  const std::string document = report::svg(drawing, {report::Theme::light, 1000}, view);
  CHECK(contains(document, ">0F0</text>"));
  CHECK(!contains(document, ">at 1 ms</text>"));
}

TEST_CASE("pictures without the panel are as they were") {
  const report::Drawing drawing = drawing_of(one_f_one_b(3, 4), millisecond);
  CHECK(!contains(report::svg(drawing), ".qw{"));
  CHECK(!contains(report::svg(drawing), "Memory by category"));
  const std::string document = drawn(drawing);
  CHECK(contains(document, ">Memory by category</text>"));
  CHECK(contains(document, "memory by category below"));
  CHECK(contains(document, ">time, ms</text>"));
  CHECK(!contains(document, ">Memory</text>"));
}

TEST_CASE("each theme has its colours of the categories") {
  const report::Drawing drawing = drawing_of(one_f_one_b(2, 2), millisecond);
  const std::string light = drawn(drawing, report::Theme::light);
  const std::string dark = drawn(drawing, report::Theme::dark);
  const auto rule = [](const std::string& document) {
    const std::size_t at = document.find(".qw{");
    return document.substr(at, document.find('}', at) - at);
  };
  CHECK(rule(light) != rule(dark));
  CHECK(!contains(light, "prefers-color-scheme"));
  CHECK(count_of(drawn(drawing, report::Theme::automatic), "prefers-color-scheme") == 3);
}

TEST_CASE("of many devices those that peak highest have a panel") {
  const report::Drawing drawing = drawing_of(one_f_one_b(12, 12), millisecond);
  const std::string document = drawn(drawing);
  CHECK(count_of(document, "class=\"dot\"") == 8);
  CHECK(contains(document, "drawn of 8 devices, those that peak highest; the other 4 stay below"));
  CHECK(contains(document, ">gpu0</text>"));
  CHECK(!contains(document, ">gpu11</text>"));
}

}  // namespace stageline::svg_categories_tests
