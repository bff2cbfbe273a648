// Can a picture of several schedules, a small one and one for a paper be read?
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/report/example.hpp"
#include "tests/text.hpp"
#include "tools/report/svg/theme.hpp"
#include "tools/report/timeline/svg.hpp"
#include "tools/report/timeline/svg_numbers.hpp"

namespace stageline::svg_figures_tests {

using examples::drawing_of;
using examples::millisecond;
using examples::one_f_one_b;
using test::contains;

namespace {

// Two directions on two devices: micro-batches 0 and 2 begin on gpu0, 1 and 3 on gpu1.
report::Drawing two_directions() {
  report::Drawing drawing = drawing_of(
      "stageline-program 1\nmicrobatches: 4\n"
      "stage 0: gpu0+gpu1\nstage 1: gpu1+gpu0\n"
      "gpu0: 0F0 1F1 1B1 0F2 1F3 0B0 1B3 0B2\n"
      "gpu1: 0F1 1F0 1B0 0F3 1F2 0B1 1B2 0B3\n",
      millisecond);
  return drawing;
}

// The numbers on boxes, in the order of the document.
std::vector<std::string> numbers_in(const std::string& document) {
  static const std::regex pattern("<text class=\"[kw] n\"[^>]*>([^<]*)<");
  std::vector<std::string> found;
  for (std::sregex_iterator at(document.begin(), document.end(), pattern), end; at != end; ++at) {
    found.push_back((*at)[1]);
  }
  return found;
}

// Left edges of the rows' grounds.
double left_of_rows(const std::string& document) {
  std::smatch found;
  REQUIRE(std::regex_search(document, found, std::regex("<rect class=\"row\" x=\"([^\"]*)\"")));
  return std::stod(found[1]);
}

report::Drawings three_runs(Time slow) {
  report::Drawings drawings;
  for (const Time unit : {millisecond, millisecond, slow}) {
    drawings.runs.push_back(drawing_of(one_f_one_b(2, 2), unit));
    drawings.runs.back().title = fmt::format("run {}", drawings.runs.size());
  }
  return drawings;
}

const report::DrawingView timelines{{true, false, false, false}, {}, {}};

}  // namespace

TEST_CASE("a run far longer than the others does not set the axis, and its rows are broken") {
  const std::string document =
      report::svg(three_runs(10 * millisecond), {report::Theme::light}, timelines);
  CHECK(contains(document, "break"));
  CHECK(contains(document, "run 3: Broken rows go on to 90 ms"));
  CHECK(!contains(document, ">60</text>"));
  // 1F1B of two stages and micro-batches: each device is idle for a third of the whole run, of
  // which the axis shows a tenth.
  CHECK(contains(document, ">33.3 %</text>"));
  // One that is no more than twice as long sets it; so does any where memory is drawn.
  CHECK(!contains(report::svg(three_runs(2 * millisecond), {report::Theme::light}, timelines),
                  "break"));
  CHECK(!contains(report::svg(three_runs(10 * millisecond)), "break"));
  report::Drawings two = three_runs(10 * millisecond);
  two.runs.erase(two.runs.begin());
  CHECK(!contains(report::svg(two, {report::Theme::light}, timelines), "break"));
}

TEST_CASE("on a phone the names of rows take a fifth of the width at most") {
  report::Drawing drawing = drawing_of(one_f_one_b(3, 4), millisecond);
  for (const int width : {400, 500, 639}) {
    for (const char* const name : {"gpu0", "node-seventeen.gpu3"}) {
      CAPTURE(width);
      CAPTURE(name);
      drawing.timeline.devices.front() = name;
      CHECK(left_of_rows(report::svg(drawing, {report::Theme::light, width})) <=
            0.2 * width + 0.01);
      CHECK(left_of_rows(report::svg(drawing, {report::Theme::light, width}, timelines)) <=
            0.2 * width + 0.01);
    }
  }
  CHECK(contains(report::svg(drawing, {report::Theme::light, 1000}), "node-sev"));
  // Usual names are whole, beside the numbers of the memory, too.
  const std::string phone =
      report::svg(drawing_of(one_f_one_b(3, 4), millisecond), {report::Theme::light, 400});
  for (const char* const name : {">gpu0</text>", ">gpu1</text>", ">gpu2</text>"}) {
    CAPTURE(name);
    const std::size_t row = phone.find(name);
    REQUIRE(row != std::string::npos);
    CHECK(phone.find(name, row + 1) != std::string::npos);
  }
}

TEST_CASE("where not all of a kind have room, every eighth micro-batch has its number") {
  report::Drawing drawing = drawing_of(one_f_one_b(1, 100), millisecond);
  // 100 forwards of 3 px and backwards of 6 px: numbers of two digits have no room.
  const std::vector<std::string> numbers =
      numbers_in(report::svg(drawing, {report::Theme::light, 1000}));
  CHECK(std::set<std::string>(numbers.begin(), numbers.end()) == std::set<std::string>{});
  drawing = drawing_of(one_f_one_b(1, 100), millisecond);
  const std::vector<std::string> wide =
      numbers_in(report::svg(drawing, {report::Theme::light, 2200}));
  REQUIRE(!wide.empty());
  for (const std::string& number : wide) {
    CAPTURE(number);
    CHECK((wide.size() >= 100 || std::stoi(number) % 8 == 0));
  }
  CHECK(numbers_in(report::svg(drawing, {report::Theme::light, 5000})).size() == 200);
}

TEST_CASE("numbers count from one, by direction, or versions of the weights") {
  const report::Drawing drawing = two_directions();
  CHECK(report::directions_of(drawing.timeline) == std::vector<int>{0, 1, 0, 1});
  CHECK(report::directions_of(drawing_of(one_f_one_b(3, 4), millisecond).timeline).empty());
  const auto numbers = [&](report::OpNumbers counted) {
    report::DrawingView view = timelines;
    view.numbers = counted;
    std::vector<std::string> found = numbers_in(report::svg(drawing, {report::Theme::light}, view));
    return std::set<std::string>(found.begin(), found.end());
  };
  CHECK(numbers(report::OpNumbers::microbatches) == std::set<std::string>{"0", "1", "2", "3"});
  CHECK(numbers(report::OpNumbers::microbatches_from_one) ==
        std::set<std::string>{"1", "2", "3", "4"});
  CHECK(numbers(report::OpNumbers::by_direction) == std::set<std::string>{"0", "1"});
  CHECK(numbers(report::OpNumbers::versions) == std::set<std::string>{"0"});
  // After each backward an update: the second micro-batch of the last stage reads version 1.
  report::Drawing stale = drawing_of(one_f_one_b(2, 3, "stash"), millisecond);
  report::DrawingView view = timelines;
  view.numbers = report::OpNumbers::versions;
  const std::string document = report::svg(stale, {report::Theme::light}, view);
  CHECK(contains(document, "Numbers count the updates"));
  const std::vector<std::string> read = numbers_in(document);
  CHECK(std::count(read.begin(), read.end(), "2") > 0);
}

TEST_CASE("of two directions the second is paler, and the legend says so") {
  const std::string document = report::svg(two_directions(), {report::Theme::light}, timelines);
  CHECK(contains(document, "paler, with a bar: the other direction"));
  CHECK(!contains(document, "every second stage"));
  const std::regex box("<rect class=\"(p?f) e\"[^>]*><title>([01])F(\\d) on gpu(\\d)");
  std::size_t count = 0;
  for (std::sregex_iterator at(document.begin(), document.end(), box), end; at != end; ++at) {
    CAPTURE((*at)[0].str());
    CHECK(((*at)[1] == "pf") == (std::stoi((*at)[3]) % 2 == 1));
    ++count;
  }
  CHECK(count == 8);
}

// Rectangles in the marks of this name, the swatches of the legend left out.
std::size_t marks_in(const std::string& document, const std::string& name) {
  std::size_t count = 0;
  const std::string rows = document.substr(document.find("<g>"));
  const std::regex path("<path class=\"[kw] " + name + "\" d=\"([^\"]*)\"");
  for (std::sregex_iterator at(rows.begin(), rows.end(), path), end; at != end; ++at) {
    const std::string data = (*at)[1];
    count += static_cast<std::size_t>(std::count(data.begin(), data.end(), 'M'));
  }
  return count;
}

TEST_CASE("stages of a device differ in a grey print: by a bar, or by as many notches") {
  const auto stages = [](int count) {
    report::Drawing drawing;
    drawing.timeline.devices = {"gpu0"};
    drawing.timeline.lanes.resize(lane_kinds);
    for (int stage = 0; stage < count; ++stage) {
      drawing.timeline.lanes[0].push_back(
          {op_of(OpKind::forward, stage, 0), millisecond * stage, millisecond * (stage + 1)});
    }
    return drawing;
  };
  const auto drawn = [&](int count, int width) {
    return report::svg(stages(count), {report::Theme::light, width}, timelines);
  };
  const std::string one = drawn(1, 1000);
  CHECK(marks_in(one, "bar") + marks_in(one, "notch") == 0);
  CHECK(!contains(one, "notches"));
  const std::string two = drawn(2, 1000);
  CHECK(marks_in(two, "bar") == 1);
  CHECK(marks_in(two, "notch") == 0);
  CHECK(contains(two, ">paler, with a bar: every second stage<"));
  CHECK(contains(two, "every second stage of a device is paler and has a bar."));
  const std::string five = drawn(5, 1000);
  CHECK(marks_in(five, "notch") == 0 + 1 + 2 + 3 + 4);
  CHECK(marks_in(five, "bar") == 0);
  CHECK(contains(five, ">paler: every second stage<"));
  CHECK(contains(five, ">notches count the stages of a device from 0<"));
  // 40 stages of 7 px have no room for 39 notches, and a part of them would name another stage.
  const std::string narrow = drawn(40, 400);
  CHECK(marks_in(narrow, "notch") == 0);
  CHECK(marks_in(narrow, "bar") == 20);
  const std::string directions = report::svg(two_directions(), {report::Theme::light}, timelines);
  CHECK(marks_in(directions, "bar") > 0);
  CHECK(marks_in(directions, "notch") == 0);
  CHECK(contains(directions, "micro-batches of the other direction are paler and have a bar."));
}

TEST_CASE("a plain picture is the figure alone, with the title that is asked for") {
  report::Drawing drawing = drawing_of(one_f_one_b(2, 2), millisecond);
  drawing.subtitle = "a subtitle";
  drawing.footnotes = {"a note"};
  const std::string whole = report::svg(drawing);
  report::SvgOptions options;
  options.plain = true;
  const std::string plain = report::svg(drawing, options);
  for (const char* const part : {">A run</text>", "a subtitle", "a note", "<rect class=\"bg\""}) {
    CAPTURE(part);
    CHECK(contains(whole, part));
    CHECK(!contains(plain, part));
  }
  CHECK(contains(plain, "<rect class=\"f"));
  options.title = "For <a> slide";
  CHECK(contains(report::svg(drawing, options), ">For &lt;a&gt; slide</text>"));
  options.plain = false;
  CHECK(!contains(report::svg(drawing, options), ">A run<"));
  CHECK(contains(report::svg(drawing, options), "a note"));
}

TEST_CASE("rows are those asked for, in their order and with their names") {
  report::Drawing drawing = drawing_of(one_f_one_b(3, 4), millisecond);
  drawing.rows = {2, 0};
  drawing.timeline.devices[2] = "last";
  const std::string document = report::svg(drawing, {report::Theme::light}, timelines);
  CHECK(document.find(">last</text>") < document.find(">gpu0</text>"));
  CHECK(!contains(document, ">gpu1</text>"));
  const std::string memory =
      report::svg(drawing, {report::Theme::light}, {{false, true, false, false}, {}, {}});
  CHECK(memory.find(">last</text>") < memory.find(">gpu0</text>"));
  CHECK(!contains(memory, ">gpu1</text>"));
}

TEST_CASE("causes of idle time differ in form, and in the colour of their marks") {
  const std::string style = report::idle_style(report::Theme::light);
  std::set<std::string> forms;
  std::set<std::string> colours;
  const std::regex form("<(path d=\"[^\"]*\"|circle [^>]*?) class=\"(\\w+)1\"");
  for (std::sregex_iterator at(style.begin(), style.end(), form), end; at != end; ++at) {
    forms.insert((*at)[1]);
    std::smatch colour;
    const std::regex rule("\\." + (*at)[2].str() + "1\\{\\w+:(#\\w+)\\}");
    REQUIRE(std::regex_search(style, colour, rule));
    colours.insert(colour[1]);
  }
  CHECK(forms.size() == 7);
  CHECK(colours.size() == 7);
}

}  // namespace stageline::svg_figures_tests
