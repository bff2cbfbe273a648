// Are the versions held, and how stale they are, told as they were counted?
#include "tools/report/timeline/weights.hpp"
#include "sim/base/index.hpp"

#include <doctest/doctest.h>

#include "tests/report/example.hpp"

namespace stageline::weights_tests {

using examples::drawing_of;
using examples::one_f_one_b;

namespace {

constexpr Time unit{1};

// A line a curve: "0 on 1: 1@0 2@4 1@7".
std::string words(const std::vector<report::HeldCurve>& curves) {
  std::string text;
  for (const report::HeldCurve& curve : curves) {
    text += fmt::format("{} on {}:", curve.stage, curve.device);
    for (const report::HeldPoint& point : curve.points) {
      text += fmt::format(" {}@{}", point.versions, point.at.count());
    }
    text += "\n";
  }
  return text;
}

std::string held(const report::Drawing& drawing) {
  return words(report::versions_held(drawing.program, drawing.versions));
}

// Stage 0 on two devices, a micro-batch behind each other.
const std::string two_replicas =
    "stageline-program 1\nschedule: x\nmicrobatches: 6\nsteps: 1\nweights: stash\n"
    "stage 0: gpu0+gpu1\nstage 1: gpu2\n"
    "gpu0: 0F0 0F2 0B0 0F4 0B2 0B4\ngpu1: 0F1 0B1 0F3 0B3 0F5 0B5\n"
    "gpu2: 1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3 1F4 1B4 1F5 1B5\n";

}  // namespace

TEST_CASE("with a flush one version is held from the start to the end") {
  const report::Drawing drawing = drawing_of(one_f_one_b(2, 3), unit);
  CHECK(held(drawing) == "0 on 0: 1@0\n1 on 1: 1@0\n");
  CHECK(report::all_fresh(drawing.versions));
  CHECK(report::held_figure(drawing.program, drawing.timeline, drawing.versions) == "");
  CHECK(report::held_legend(drawing.versions) == "");
}

TEST_CASE("a version dropped when the next one comes leaves the number as it is") {
  // Stage 0: F0 0-1, F1 1-2, B0 4-6, F2 6-7, B1 7-9, B2 10-12: version 0 is kept from 6 to 9, where
  // version 1, which F2 has read, takes its place until B2 ends.
  CHECK(held(drawing_of(one_f_one_b(2, 3, "stash"), unit)) ==
        "0 on 0: 1@0 2@6 1@12\n1 on 1: 1@0\n");
}

TEST_CASE("every replica of a stage has its own curve") {
  const report::Drawing drawing = drawing_of(two_replicas, unit);
  const std::vector<report::HeldCurve> curves =
      report::versions_held(drawing.program, drawing.versions);
  REQUIRE(curves.size() == 3);
  CHECK(curves[0].peak() == 2);
  CHECK(curves[1].peak() == 1);
  CHECK(curves[2].peak() == 1);
  CHECK(held(drawing).find("0 on 1: 1@0\n1 on 2: 1@0\n") != std::string::npos);
}

TEST_CASE("a curve never names a moment or a number twice in a row") {
  for (const char* const rule : {"stash", "vertical_sync"}) {
    const report::Drawing drawing = drawing_of(one_f_one_b(4, 9, rule), unit);
    for (const report::HeldCurve& curve :
         report::versions_held(drawing.program, drawing.versions)) {
      REQUIRE(!curve.points.empty());
      CHECK(curve.points.front() == report::HeldPoint{Time{}, 1});
      CHECK(curve.points.back().versions == 1);
      CHECK(curve.peak() == nth(drawing.versions, curve.stage).held_peak);
      for (std::size_t i = 1; i < curve.points.size(); ++i) {
        CHECK(curve.points[i - 1].at < curve.points[i].at);
        CHECK(curve.points[i - 1].versions != curve.points[i].versions);
      }
    }
  }
}

TEST_CASE("the most over several devices is their upper envelope") {
  const report::HeldCurve a{3, 0, {{Time{0}, 1}, {Time{2}, 3}, {Time{5}, 1}}};
  const report::HeldCurve b{3, 1, {{Time{0}, 1}, {Time{3}, 2}, {Time{5}, 2}, {Time{8}, 1}}};
  CHECK(words({report::most_held({a, b})}) == "3 on 0: 1@0 3@2 2@5 1@8\n");
  CHECK(words({report::most_held({a})}) == words({a}));
}

TEST_CASE("the digits stand below the ops that they go with") {
  const report::Drawing drawing = drawing_of(one_f_one_b(2, 3, "stash"), unit);
  const FigureOptions options{unit};
  CHECK(figure(drawing.timeline, options) +
            report::held_figure(drawing.program, drawing.timeline, drawing.versions, options) ==
        "  0 |01  aa2bb cc\n"
        "  1 | 0aa1bb2cc\n"
        " s0 |111111222222\n"
        " s1 |111111111111\n");
  // Columns of two: where one of them has an old version, it is shown.
  CHECK(report::held_figure(drawing.program, drawing.timeline, drawing.versions, {Time{4}}) ==
        " s0 |122\n s1 |111\n");
}

TEST_CASE("ten versions and more are a plus") {
  const report::Drawing drawing = drawing_of(one_f_one_b(11, 30, "stash"), unit);
  CHECK(drawing.versions[0].held_peak == 11);
  const std::string text = report::held_figure(drawing.program, drawing.timeline, drawing.versions);
  CHECK(text.substr(0, text.find('\n')).find("9+") != std::string::npos);
  CHECK(text.find(':') == std::string::npos);  // what comes after '9'
}

TEST_CASE("staleness is told by stage, and where forward and backward differ") {
  const report::Drawing stash = drawing_of(one_f_one_b(3, 6, "stash"), unit);
  CHECK(report::held_legend(stash.versions) ==
        "s0 … versions of its weights that a stage holds, the most in the column\n"
        "staleness (updates:micro-batches) · s0 0:1 1:1 2:4 · s1 0:1 1:5 · s2 0:6\n");
  CHECK(report::staleness_range(stash.versions[0]) == "0–2");
  CHECK(report::staleness_range(stash.versions[2]) == "0");
  const report::Drawing latest = drawing_of(one_f_one_b(3, 6, "latest"), unit);
  CHECK(report::held_figure(latest.program, latest.timeline, latest.versions) == "");
  CHECK(report::held_legend(latest.versions) ==
        "staleness (updates:micro-batches) · s0 0:1 1:1 2:4 F≠B · s1 0:1 1:5 F≠B · s2 0:6\n");
}

}  // namespace stageline::weights_tests
