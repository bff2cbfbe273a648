// Is the picture true, and is it an SVG?
#include "tools/report/timeline/svg.hpp"
#include "sim/base/index.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>

#include "sim/base/errors.hpp"
#include "tests/report/example.hpp"
#include "tools/report/svg/text.hpp"
#include "tools/report/timeline/weights.hpp"

namespace stageline::svg_tests {

using examples::drawing_of;
using examples::millisecond;
using examples::one_f_one_b;

namespace {

struct Rectangle {
  std::string classes;
  double x = 0, y = 0, width = 0, height = 0;
  std::string tooltip;
};

// Rectangles that carry a tooltip: the spans.
std::vector<Rectangle> spans_in(const std::string& document) {
  static const std::regex pattern(
      "<rect class=\"([^\"]*)\" x=\"([^\"]*)\" y=\"([^\"]*)\" width=\"([^\"]*)\" "
      "height=\"([^\"]*)\"><title>([^<]*)</title>");
  std::vector<Rectangle> found;
  for (std::sregex_iterator at(document.begin(), document.end(), pattern), end; at != end; ++at) {
    found.push_back({(*at)[1], std::stod((*at)[2]), std::stod((*at)[3]), std::stod((*at)[4]),
                     std::stod((*at)[5]), (*at)[6]});
  }
  return found;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Faults in the nesting of elements and in the use of & and <, or "".
std::string nesting_fault(const std::string& xml) {
  std::vector<std::string> open;
  std::size_t at = xml.find("?>") + 2;
  while ((at = xml.find_first_of("<&", at)) != std::string::npos) {
    if (xml[at] == '&') {
      const std::size_t end = xml.find(';', at);
      std::string name = xml.substr(at, end - at + 1);
      if (name != "&lt;" && name != "&gt;" && name != "&amp;" && name != "&quot;") return name;
      at = end;
      continue;
    }
    const std::size_t end = xml.find('>', at);
    std::string tag = xml.substr(at + 1, end - at - 1);
    if (tag.find('<') != std::string::npos) return tag;
    if (tag[0] == '/') {
      if (open.empty() || open.back() != tag.substr(1)) return tag;
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(tag.substr(0, tag.find(' ')));
    }
    at = end;
  }
  return open.empty() ? "" : open.back();
}

report::Drawing huge(int devices, int spans_each) {
  report::Drawing drawing;
  for (int device = 0; device < devices; ++device) {
    drawing.timeline.devices.push_back(fmt::format("gpu{}", device));
    for (int lane = 0; lane < lane_kinds; ++lane) drawing.timeline.lanes.emplace_back();
    auto& compute = drawing.timeline.lanes[as_size(device) * lane_kinds];
    std::uint64_t random = 88172645463325252ull + static_cast<std::uint64_t>(device);
    Time at{};
    for (int i = 0; i < spans_each; ++i) {
      random ^= random << 13, random ^= random >> 7, random ^= random << 17;  // xorshift
      const Time length{static_cast<std::int64_t>(random % 1'000'000) + 1};
      const OpKind kinds[] = {OpKind::forward, OpKind::backward, OpKind::weight_grad};
      Op op;
      op.kind = kinds[random / 1'000'000 % 3];
      op.stage = static_cast<std::uint16_t>(device);
      op.microbatch = static_cast<std::uint32_t>(i);
      compute.push_back({op, at, at + length});
      at += length + Time{static_cast<std::int64_t>(random % 7) * 100'000};
    }
  }
  return drawing;
}

}  // namespace

TEST_CASE("each span has a rectangle where its times say") {
  const report::Drawing drawing = drawing_of(one_f_one_b(3, 4), millisecond, millisecond / 4);
  const auto rectangles = spans_in(report::svg(drawing));
  const double end = static_cast<double>(makespan(drawing.timeline).count());
  // The plot, from the earliest and the last edge.
  double left = 1e9, right = 0;
  for (const Rectangle& rectangle : rectangles) {
    left = std::min(left, rectangle.x);
    right = std::max(right, rectangle.x + rectangle.width);
  }
  std::size_t next = 0;
  std::map<int, double> row_top;  // by device: of its compute row
  for (int device = 0; device < 3; ++device) {
    for (int lane = 0; lane < lane_kinds; ++lane) {
      for (const Span& span : drawing.timeline.lane(device, static_cast<LaneKind>(lane))) {
        if (span.start == span.end) continue;
        REQUIRE(next < rectangles.size());
        const Rectangle& rectangle = rectangles[next++];
        INFO(rectangle.tooltip);
        CHECK(rectangle.tooltip.rfind(print(span.op) + " on gpu" + std::to_string(device), 0) == 0);
        const auto x = [&](Time time) {
          return left + (right - left) * static_cast<double>(time.count()) / end;
        };
        CHECK(std::abs(rectangle.x - x(span.start)) <= 0.011);
        CHECK(std::abs(rectangle.x + rectangle.width - x(span.end)) <= 0.021);
        if (lane == 0) {
          if (row_top.count(device) == 0) row_top[device] = rectangle.y;
          CHECK(rectangle.y == row_top[device]);
        } else {
          CHECK(rectangle.y > row_top[device]);
          CHECK(rectangle.height < 10);
        }
      }
    }
  }
  CHECK(next == rectangles.size());
  CHECK(row_top[0] < row_top[1]);
  CHECK(row_top[1] < row_top[2]);
}

TEST_CASE("spans of different kinds have different classes, the same kind the same") {
  const auto rectangles = spans_in(report::svg(drawing_of(
      "stageline-program 1\nschedule: x\nmicrobatches: 2\nsteps: 1\nweights: flush\nstage 0: gpu0\n"
      "stage 1: gpu1\ngpu0: 0F0 0F1 0R0 0I0 0W0 0B1\ngpu1: 1F0 1I0 1F1 1W0 1B1\n",
      millisecond)));
  std::map<std::string, std::string> class_of;  // by kind
  for (const Rectangle& rectangle : rectangles) {
    const std::string kind(1, rectangle.tooltip[1]);
    const std::string colour = rectangle.classes.substr(0, rectangle.classes.find(' '));
    const auto [entry, fresh] = class_of.emplace(kind, colour);
    CHECK((fresh || entry->second == colour));
  }
  CHECK(class_of.size() == 5);
  std::map<std::string, std::string> kind_of;
  for (const auto& [kind, colour] : class_of) CHECK(kind_of.emplace(colour, kind).second);
}

TEST_CASE("names with markup in them stay text") {
  report::Drawing drawing = drawing_of(one_f_one_b(2, 2), millisecond);
  drawing.title = "F < B & \"I\" > W";
  drawing.subtitle = "</text><script>alert(1)</script>";
  drawing.footnotes = {"5 < 6 && 7 > 6"};
  drawing.timeline.devices[0] = "<a&\"b\">";
  const std::string document = report::svg(drawing);
  CHECK(nesting_fault(document) == "");
  CHECK(!contains(document, "<script"));
  CHECK(contains(document, "F &lt; B &amp; &quot;I&quot; &gt; W"));
  CHECK(contains(document, "&lt;a&amp;&quot;b&quot;&gt;</text>"));
}

TEST_CASE("a timeline without a span is refused with its numbers") {
  report::Drawing drawing;
  CHECK_THROWS_WITH_AS(report::svg(drawing), doctest::Contains("nothing to draw"), UsageError);
  drawing.timeline.devices = {"gpu0", "gpu1"};
  drawing.timeline.lanes.resize(std::size_t{2} * lane_kinds);
  CHECK_THROWS_WITH_AS(report::svg(drawing), doctest::Contains("2 devices, 10 lanes and 0 spans"),
                       UsageError);
  drawing.timeline.lanes[0].push_back({Op{}, Time{}, Time{}});
  CHECK_THROWS_WITH_AS(report::svg(drawing), doctest::Contains("1 spans"), UsageError);
}

TEST_CASE("a width out of range is refused") {
  const report::Drawing drawing = drawing_of(one_f_one_b(2, 2), millisecond);
  CHECK_THROWS_WITH_AS(report::svg(drawing, {report::Theme::light, 100}), doctest::Contains("100"),
                       UsageError);
  CHECK_THROWS_AS(report::svg(drawing, {report::Theme::light, 20'000}), UsageError);
  CHECK(contains(report::svg(drawing, {report::Theme::light, 640}), "width=\"640\""));
}

TEST_CASE("themes: automatic asks the viewer, light and dark force one") {
  const report::Drawing drawing = drawing_of(one_f_one_b(2, 3), millisecond);
  const std::string automatic = report::svg(drawing, {report::Theme::automatic, 800});
  const std::string light = report::svg(drawing, {report::Theme::light, 800});
  const std::string dark = report::svg(drawing, {report::Theme::dark, 800});
  const std::string light_ground = ".bg{fill:#ffffff}";
  const std::string dark_ground = ".bg{fill:#14171c}";
  CHECK(contains(light, light_ground));
  CHECK(!contains(light, dark_ground));
  CHECK(contains(dark, dark_ground));
  CHECK(!contains(dark, light_ground));
  CHECK(automatic.find(light_ground) < automatic.find("@media (prefers-color-scheme:dark)"));
  CHECK(automatic.find("@media (prefers-color-scheme:dark)") < automatic.find(dark_ground));
  // Only the style differs.
  const auto body = [](const std::string& text) { return text.substr(text.rfind("</style>")); };
  CHECK(body(light) == body(dark));
  CHECK(body(light) == body(automatic));
}

TEST_CASE("the same run gives the same bytes") {
  const auto text = one_f_one_b(4, 6, "stash");
  CHECK(report::svg(drawing_of(text, millisecond)) == report::svg(drawing_of(text, millisecond)));
  CHECK(report::svg(huge(3, 5000)) == report::svg(huge(3, 5000)));
}

TEST_CASE("huge timelines stay under 2 MB, say what they merged and have no tooltips") {
  for (const int devices : {1, 8, 128}) {
    CAPTURE(devices);
    const std::string document = report::svg(huge(devices, 300'000 / devices));
    CAPTURE(document.size());
    CHECK(document.size() < 2'000'000);
    CHECK(contains(document, "drawn merged"));
    CHECK(spans_in(document).empty());
    CHECK(nesting_fault(document) == "");
    CHECK(!contains(document, "width=\"-"));
    CHECK(!contains(document, "height=\"-"));
    CHECK(!contains(document, "h--"));
    CHECK(!contains(document, "nan"));
  }
}

TEST_CASE("small timelines merge nothing and say nothing of it") {
  CHECK(!contains(report::svg(drawing_of(one_f_one_b(4, 8), millisecond)), "merged"));
}

TEST_CASE("memory shows each device's peak, and the limit where it is known") {
  report::Drawing drawing = drawing_of(one_f_one_b(3, 4), millisecond);
  const std::string plain = report::svg(drawing);
  CHECK(contains(plain, ">Memory</text>"));
  CHECK(!contains(plain, "class=\"limit\""));
  CHECK(contains(plain, ">6 B</text>"));  // three stashes of two bytes on gpu0
  drawing.memory_limit = {Bytes{7}, Bytes{7}, Bytes{7}};
  CHECK(contains(report::svg(drawing), "class=\"limit\""));
  CHECK(contains(report::svg(drawing), ">of 7 B</text>"));
  drawing.memory_limit = {Bytes{5}, std::nullopt, std::nullopt};
  CHECK(contains(report::svg(drawing), "class=\"bad\""));
  CHECK(contains(report::svg(drawing), ">over 5 B</text>"));
  drawing.memory = {};
  CHECK(!contains(report::svg(drawing), ">Memory</text>"));
}

// The texts of a document at this size, in order, of the class or of one in bold.
std::vector<std::string> texts_of(const std::string& document, const std::string& classes,
                                  int size) {
  std::vector<std::string> found;
  const std::regex text("<text class=\"" + classes + "\" x=\"[^\"]*\" y=\"[^\"]*\" font-size=\"" +
                        std::to_string(size) + "\">([^<]*)<");
  for (std::sregex_iterator at(document.begin(), document.end(), text), end; at != end; ++at) {
    found.push_back((*at)[1]);
  }
  return found;
}

TEST_CASE("each of many devices has a small memory panel with its peak, the fullest in bold") {
  report::Drawing drawing = drawing_of(one_f_one_b(12, 4), millisecond);
  std::vector<Bytes> peaks;
  for (const DeviceMemory& memory : drawing.memory.device) peaks.push_back(memory.peak);
  const Bytes highest = *std::max_element(peaks.begin(), peaks.end());
  CHECK(peaks[0] == highest);
  drawing.memory_limit.assign(12, highest);
  drawing.memory_limit[3] = Bytes{peaks[3].count - 1};
  for (const int width : {400, 1000, 1600}) {
    CAPTURE(width);
    const std::string document = report::svg(drawing, {report::Theme::light, width});
    CHECK(nesting_fault(document) == "");
    CHECK(contains(document, "12 devices on one scale"));
    CHECK(texts_of(document, "t h", 10) == std::vector<std::string>{"gpu0"});
    CHECK(texts_of(document, "t h r", 10) == std::vector<std::string>{report::brief(highest)});
    CHECK(texts_of(document, "bad r", 10) ==
          std::vector<std::string>{
              fmt::format("{} B, over {} B", peaks[3].count, peaks[3].count - 1)});
    CHECK(texts_of(document, "t", 10).size() == 11);
    CHECK(texts_of(document, "t r", 10).size() == 10);
    std::size_t limits = 0;
    for (std::size_t at = 0; (at = document.find("class=\"limit\"", at)) != std::string::npos;
         ++at) {
      ++limits;
    }
    CHECK(limits == 12);
  }
}

TEST_CASE(
    "of very many devices those that peak highest have a panel, and a note tells of the rest") {
  const report::Drawing drawing = drawing_of(one_f_one_b(40, 40), millisecond);
  const std::string document = report::svg(drawing);
  CHECK(contains(document, "the 32 of 40 devices that peak highest"));
  CHECK(contains(document, "the fullest, gpu0, in bold"));
  CHECK(contains(document, "Memory is drawn of 32 devices"));
  const std::vector<DeviceMemory>& devices = drawing.memory.device;
  CHECK(contains(document,
                 fmt::format("the other 8 peak at {} to {}.", report::brief(devices[39].peak),
                             report::brief(devices[32].peak))));
  const std::vector<std::string> names = texts_of(document, "t", 10);
  CHECK(names.size() == 31);
  CHECK(names.front() == "gpu1");
  CHECK(names.back() == "gpu31");
}

// Numbers in the path data that comes after `mark`, first of the element of class `classes`.
std::vector<double> path_after(const std::string& document, const std::string& mark,
                               const std::string& classes) {
  const std::string open = "<path class=\"" + classes + "\" d=\"";
  const std::size_t from = document.find(open, document.find(mark));
  REQUIRE(from != std::string::npos);
  const std::size_t begin = from + open.size();
  const std::string data = document.substr(begin, document.find('"', begin) - begin);
  static const std::regex number("-?[0-9.]+");
  std::vector<double> numbers;
  for (std::sregex_iterator at(data.begin(), data.end(), number), end; at != end; ++at) {
    numbers.push_back(std::stod(at->str()));
  }
  return numbers;
}

TEST_CASE("stale weights have a band a stage, high where old versions are held") {
  const report::Drawing drawing = drawing_of(one_f_one_b(3, 6, "stash"), millisecond);
  const std::string document = report::svg(drawing);
  CHECK(nesting_fault(document) == "");
  const std::string mark = "<title>stage 0 on gpu0: holds at most 3 versions";
  REQUIRE(contains(document, mark));
  CHECK(contains(document, "<title>stage 2 on gpu2: holds at most 1 version of"));
  // The newest version: from edge to edge.
  const auto newest = path_after(document, mark, "ms");  // M left top H right V bottom H left
  REQUIRE(newest.size() == 5);
  const double cell = newest[3] - newest[1];
  const double left = newest[0], width = newest[2] - newest[0];
  // Older ones upon it: boxes of M x top H until V bottom H x.
  const auto older = path_after(document, mark, "mv");
  std::vector<double> expected;
  const std::vector<report::HeldCurve> curves =
      report::versions_held(drawing.program, drawing.versions);
  const auto x = [&](Time time) {
    return left + width * static_cast<double>(time.count()) /
                      static_cast<double>(makespan(drawing.timeline).count());
  };
  const auto& points = curves[0].points;
  for (std::size_t i = 0; i + 1 < points.size(); ++i) {
    if (points[i].versions == 1) continue;
    expected.insert(expected.end(), {x(points[i].at), newest[1] - cell * (points[i].versions - 1),
                                     x(points[i + 1].at), newest[1], x(points[i].at)});
  }
  REQUIRE(older.size() == expected.size());
  CHECK(expected.size() > 5);
  for (std::size_t i = 0; i < older.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(older[i] - expected[i]) <= 0.021);
  }
}

TEST_CASE("the histogram of staleness has a bar a value, as high as its share") {
  const std::string document = report::svg(drawing_of(one_f_one_b(3, 6, "stash"), millisecond));
  CHECK(contains(document, "staleness (updates:micro-batches) 0:1 1:1 2:4;"));
  // The footnote, its lines joined.
  const std::string joined = std::regex_replace(document, std::regex("</text>\n<text[^>]*>"), " ");
  CHECK(contains(joined,
                 "updates:micro-batches of stage 0 0:1 1:1 2:4, stage 1 0:1 1:5, stage 2 0:6."));
  // Behind the band of stage 0: fresh in grey; M x top h width v height h -width.
  const std::size_t behind = document.find("</g>", document.find("<title>stage 0 on gpu0: holds"));
  const std::string rest = document.substr(behind);
  const auto fresh = path_after(rest, "", "ms");
  const auto stale = path_after(rest, "", "mv");
  const auto most = path_after(rest.substr(rest.find("class=\"mv\"") + 1), "", "mv");
  REQUIRE(fresh.size() == 5);
  CHECK(stale[3] == doctest::Approx(fresh[3]));
  CHECK(most[3] == doctest::Approx(4 * fresh[3]));
  CHECK(stale[0] > fresh[0]);
}

TEST_CASE("a stage whose backward reads another version is marked, and only such a stage") {
  const auto marks = [](const std::string& rule) {
    const std::string document = report::svg(drawing_of(one_f_one_b(3, 6, rule), millisecond));
    int count = 0;
    for (std::size_t at = 0; (at = document.find(">F≠B</text>", at)) != std::string::npos; ++at) {
      ++count;
    }
    return count;
  };
  CHECK(marks("latest") == 2);  // the last stage is consistent
  CHECK(marks("stash") == 0);
  CHECK(contains(report::svg(drawing_of(one_f_one_b(3, 6, "latest"), millisecond)),
                 "5 backwards read another version than their forward, by up to 2 updates"));
}

TEST_CASE("where nothing is stale one line says so for all stages") {
  const std::string document = report::svg(drawing_of(one_f_one_b(3, 6), millisecond));
  CHECK(contains(document, ">fresh: one version of every stage"));
  CHECK(!contains(document, "staleness"));
  CHECK(!contains(document, "class=\"held\""));
  CHECK(!contains(report::svg(drawing_of(one_f_one_b(3, 6, "stash"), millisecond)), ">fresh"));
  report::Drawing unknown = drawing_of(one_f_one_b(3, 6), millisecond);
  unknown.versions.clear();
  CHECK(!contains(report::svg(unknown), "Weights"));
}

TEST_CASE("the bands of many stages share a panel of bounded height") {
  const auto height = [](int stages) {
    report::Drawing drawing = drawing_of(one_f_one_b(stages, 3, "stash"), millisecond);
    const auto of = [](const std::string& document) {
      const std::size_t at = document.find("height=\"") + 8;
      return std::stod(document.substr(at));
    };
    const std::string document = report::svg(drawing);
    CHECK(nesting_fault(document) == "");
    CHECK(contains(document, ">the most that are held<") == (stages > 12));
    CHECK(contains(document, "<path class=\"row\" d=") == (stages > 12));  // as the legend says
    CHECK(contains(document, "one strip for 3 stages") == (stages == 200));
    const double with = of(document);
    drawing.versions.clear();
    return with - of(report::svg(drawing));
  };
  CHECK(height(12) < 500);
  CHECK(height(13) < 320);
  CHECK(height(200) < 320);
}

TEST_CASE("every XML parser reads what is drawn") {
  report::Drawing odd = drawing_of(one_f_one_b(4, 6), millisecond / 7, millisecond / 100);
  odd.title = "a <b> & 'c' \x02 \xff";
  odd.timeline.devices[1] = "a name far too long for the column of names & \"more\"";
  const std::vector<std::string> documents{
      report::svg(odd), report::svg(odd, {report::Theme::dark, 400}),
      report::svg(drawing_of(one_f_one_b(12, 20), millisecond)),
      report::svg(huge(128, 1000), {report::Theme::light, 3000})};
  const char* checker = std::getenv("STAGELINE_WELLFORMED");
  std::string command = checker ? fmt::format("python3 '{}'", checker) : "";
  const auto folder = std::filesystem::temp_directory_path() /
                      fmt::format("stageline-svg-{}", static_cast<const void*>(&odd));
  std::filesystem::create_directories(folder);
  for (std::size_t i = 0; i < documents.size(); ++i) {
    CHECK(nesting_fault(documents[i]) == "");
    const auto path = folder / fmt::format("{}.svg", i);
    std::ofstream(path) << documents[i];
    command += fmt::format(" '{}'", path.string());
  }
  if (checker) {
    CHECK(std::system(command.c_str()) == 0);
  } else {
    MESSAGE("skipped: STAGELINE_WELLFORMED does not name wellformed.py: nesting alone is checked");
  }
  std::filesystem::remove_all(folder);
}

}  // namespace stageline::svg_tests
