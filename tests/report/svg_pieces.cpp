// Numbers, text, axes and boxes: what the SVG writer is made of.
#include <doctest/doctest.h>

#include "tools/report/svg/text.hpp"
#include "tools/report/timeline/svg_boxes.hpp"

namespace stageline::svg_pieces_tests {

TEST_CASE("numbers have at most two decimals and no ornaments") {
  CHECK(report::svg_number(0) == "0");
  CHECK(report::svg_number(-0.001) == "0");
  CHECK(report::svg_number(3) == "3");
  CHECK(report::svg_number(100) == "100");
  CHECK(report::svg_number(2.5) == "2.5");
  CHECK(report::svg_number(1.23456) == "1.23");
  CHECK(report::svg_number(-4.126) == "-4.13");
}

TEST_CASE("escaping leaves nothing that XML would read as markup, or not at all") {
  CHECK(report::xml_escaped("a<b&\"c\">") == "a&lt;b&amp;&quot;c&quot;&gt;");
  CHECK(report::xml_escaped("µs — ok") == "µs — ok");
  CHECK(report::xml_escaped("tab\there") == "tab here");
  CHECK(report::xml_escaped(std::string_view("\x01", 1)) == "\uFFFD");
  CHECK(report::xml_escaped(std::string_view("\0", 1)) == "\uFFFD");
  CHECK(report::xml_escaped("\xff") == "\uFFFD");
  CHECK(report::xml_escaped("cut \xe2\x82") == "cut \uFFFD\uFFFD");
  CHECK(report::xml_escaped("\xc0\xaf") == "\uFFFD\uFFFD");              // overlong
  CHECK(report::xml_escaped("\xed\xa0\x80") == "\uFFFD\uFFFD\uFFFD");    // surrogate
  CHECK(report::xml_escaped("\xef\xbf\xbf") == "\uFFFD\uFFFD\uFFFD");    // U+FFFF
  CHECK(report::xml_escaped("\xf0\x9f\x98\x80") == "\xf0\x9f\x98\x80");  // four bytes
}

TEST_CASE("long names lose their middle and are cut between characters") {
  CHECK(report::shortened("gpu0", 4) == "gpu0");
  CHECK(report::shortened("node7.gpu10", 6) == "nod…10");
  CHECK(report::shortened("abc", 1) == "…");
  CHECK(report::shortened("ééééé", 3) == "é…é");
}

TEST_CASE("text is broken at blanks and loses no word") {
  const std::string text = "a sentence of seven short words here";
  const auto lines = report::text_lines(text, 80, 10);
  REQUIRE(lines.size() > 1);
  std::string joined;
  for (const std::string& line : lines) {
    CHECK(report::text_width(line, 10) <= 80);
    joined += (joined.empty() ? "" : " ") + line;
  }
  CHECK(joined == text);
  CHECK(report::text_lines("", 80, 10).empty());
  CHECK(report::text_lines("unbreakableunbreakable", 10, 10).size() == 1);
}

TEST_CASE("axes have steps of 1, 2 or 5 and the unit that suits") {
  const report::Axis long_time = report::time_axis(Time{99'600'000'000}, 10);  // 99.6 ms
  CHECK(long_time.step == 10'000'000'000);
  CHECK(long_time.unit_name == "ms");
  CHECK(report::tick_label(long_time, 3 * long_time.step) == "30");

  const report::Axis seconds = report::time_axis(Time{3'400'000'000'000}, 8);
  CHECK(seconds.unit_name == "s");
  CHECK(report::tick_label(seconds, seconds.step) == "0.5");

  const report::Axis microseconds = report::time_axis(Time{2'500'000}, 6);
  CHECK(microseconds.unit_name == "µs");
  CHECK(report::tick_label(microseconds, microseconds.step) == "0.5");

  const report::Axis tiny = report::time_axis(Time{7}, 10);
  CHECK(tiny.step == 1);
  CHECK(tiny.unit_name == "ps");

  const report::Axis memory = report::byte_axis(Bytes{3'200'000'000}, 2);
  CHECK(memory.step == 2'000'000'000);
  CHECK(memory.unit_name == "GB");

  for (std::int64_t top = 1; top < 4'000'000'000'000'000'000; top = top * 3 + 1) {
    for (const int intervals : {1, 2, 7, 20}) {
      const report::Axis axis = report::time_axis(Time{top}, intervals);
      CHECK(top / axis.step <= intervals);
      CHECK(std::stod(report::tick_label(axis, axis.step)) * static_cast<double>(axis.unit) ==
            doctest::Approx(static_cast<double>(axis.step)));
    }
  }
}

namespace {

// 100 ps on 100 px from x = 10: 1 px a picosecond.
const report::TimeScale scale{Time{100}, 10, 100};

report::Piece piece(int start, int end, int tone = 0) { return {Time{start}, Time{end}, tone}; }

}  // namespace

TEST_CASE("wide pieces become boxes of their own, and neighbours share an edge") {
  const report::Boxes boxes =
      report::boxes_of({piece(0, 30), piece(30, 45, 1), piece(50, 100)}, scale, 1, 12);
  REQUIRE(boxes.boxes.size() == 3);
  CHECK(boxes.merged == 0);
  CHECK(boxes.boxes[0].x == 10);
  CHECK(boxes.boxes[0].width == 30);
  CHECK(boxes.boxes[1].x == boxes.boxes[0].x + boxes.boxes[0].width);
  CHECK(boxes.boxes[1].tone == 1);
  CHECK(boxes.boxes[2].x == 60);
  CHECK(boxes.boxes[2].piece == 2);
}

TEST_CASE("pieces at the same time share the height, empty ones have no box") {
  const report::Boxes boxes =
      report::boxes_of({piece(0, 20), piece(0, 20, 1), piece(20, 20, 2)}, scale, 1, 12);
  REQUIRE(boxes.boxes.size() == 2);
  CHECK(boxes.boxes[0].top == 0);
  CHECK(boxes.boxes[0].height == 0.5);
  CHECK(boxes.boxes[1].top == 0.5);
  CHECK(boxes.boxes[1].height == 0.5);
}

TEST_CASE("narrow neighbours become stacks whose heights are shares of time") {
  std::vector<report::Piece> pieces;  // 1 of tone 0, 2 of tone 1, 1 of nothing, again and again
  for (int i = 0; i < 100; i += 4) {
    pieces.push_back(piece(i, i + 1, 0));
    pieces.push_back(piece(i + 1, i + 3, 1));
  }
  const report::Boxes boxes = report::boxes_of(pieces, scale, 20, 24);
  CHECK(boxes.merged == pieces.size());
  double area[2] = {};
  for (const report::Box& box : boxes.boxes) {
    CHECK(box.piece == -1);
    CHECK(box.width >= 20);
    CHECK(box.top >= 0);
    CHECK(box.top + box.height <= 1.0001);
    area[box.tone] += box.width * box.height;
  }
  CHECK(area[0] == doctest::Approx(25).epsilon(0.1));
  CHECK(area[1] == doctest::Approx(50).epsilon(0.1));
}

TEST_CASE("a lone narrow piece stays itself and stays visible") {
  const report::Boxes boxes =
      report::boxes_of({{Time{0}, Time{1}, 3}}, {Time{1'000'000}, 0, 100}, 1, 12);
  REQUIRE(boxes.boxes.size() == 1);
  CHECK(boxes.merged == 0);
  CHECK(boxes.boxes[0].piece == 0);
  CHECK(boxes.boxes[0].width > 0);
}

TEST_CASE("narrow pieces that overlap never stack above the row") {
  std::vector<report::Piece> pieces;
  pieces.reserve(90);
  for (int i = 0; i < 90; ++i) pieces.push_back(piece(i, i + 8, i % 3));
  for (const report::Box& box : report::boxes_of(pieces, scale, 10, 24).boxes) {
    CHECK(box.top >= -1e-9);
    CHECK(box.height > 0);
    CHECK(box.x + box.width <= 110 + 1e-9);
  }
}

}  // namespace stageline::svg_pieces_tests
