// Has a picture the shape that is asked for, and is all of it there?
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <regex>
#include <string>

#include "sim/base/errors.hpp"
#include "tests/report/example.hpp"
#include "tests/text.hpp"
#include "tools/report/svg/aspect.hpp"
#include "tools/report/timeline/svg.hpp"

namespace stageline::svg_aspect_tests {
namespace {

using test::contains;

// What a viewer shows.
struct ViewBox {
  std::string words;
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
};

ViewBox view_box(const std::string& svg) {
  static const std::regex pattern("viewBox=\"(([^ ]*) ([^ ]*)) ([^ ]*) ([^\"]*)\"");
  std::smatch found;
  REQUIRE(std::regex_search(svg, found, pattern));
  return {found[1], std::stod(found[2]), std::stod(found[3]), std::stod(found[4]),
          std::stod(found[5])};
}

std::string drawn(int devices, const char* shape, report::SvgOptions& used) {
  const report::Drawing drawing =
      examples::drawing_of(examples::one_f_one_b(devices, 6), examples::millisecond);
  return report::in_aspect(report::aspect_of(shape), {}, [&](const report::SvgOptions& options) {
    used = options;
    return report::svg(drawing, options);
  });
}

TEST_CASE("a picture has the shape that is asked for, and its content lies within") {
  for (const int devices : {2, 8, 40}) {
    for (const char* const shape : {"16:9", "1:1", "4:3", "1:4", "4:1"}) {
      CAPTURE(devices);
      CAPTURE(shape);
      report::SvgOptions used;
      const std::string svg = drawn(devices, shape, used);
      const ViewBox box = view_box(svg);
      CHECK(std::abs(box.width / box.height / report::aspect_of(shape) - 1) < 1e-3);
      const ViewBox own = view_box(report::svg(
          examples::drawing_of(examples::one_f_one_b(devices, 6), examples::millisecond), used));
      CHECK(box.x <= own.x);
      CHECK(box.y <= own.y);
      CHECK(box.x + box.width >= own.x + own.width - 0.01);
      CHECK(box.y + box.height >= own.y + own.height - 0.01);
      // The ground is under all of it.
      const std::size_t blank = box.words.find(' ');
      CHECK(contains(svg, fmt::format("class=\"bg\" x=\"{}\" y=\"{}\" width",
                                      box.words.substr(0, blank), box.words.substr(blank + 1))));
    }
  }
}

TEST_CASE("between the narrowest and the widest picture hardly any ground is added") {
  report::SvgOptions used;
  const ViewBox box = view_box(drawn(12, "16:9", used));
  CHECK(used.width > 640);
  CHECK(std::abs(box.x) < 0.02 * box.width);
  CHECK(std::abs(box.y) < 0.02 * box.height);
}

TEST_CASE("a shape that is none is a sentence") {
  for (const char* const text :
       {"16/9", "16", "0:9", "16:0", "-4:3", "a:b", "1e400:1", "nan:1", "5:1", "1:4.1"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(report::aspect_of(text), UsageError);
  }
}

}  // namespace
}  // namespace stageline::svg_aspect_tests
