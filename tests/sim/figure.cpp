// Do the drawings show what runs when, and the grids what stands where?
#include "sim/text/figure.hpp"
#include "sim/base/index.hpp"

#include <doctest/doctest.h>

#include "tests/schedules/needs_table.hpp"
#include "tests/text.hpp"

namespace stageline::figure_tests {
namespace {

using test::straight_text;

std::string drawn(const std::string& text, const Costs& costs, FigureOptions options) {
  return figure(test::simulated(parse_program(text), costs).timeline, options);
}

TEST_CASE("digits are forwards, letters backwards, blanks bubbles") {
  CHECK(drawn(straight_text(2, 2, "gpu0: 0F0 0F1 0B0 0B1\ngpu1: 1F0 1F1 1B0 1B1\n"),
              uniform_costs(2, 2, Time{1}, Time{1}, Time{1}), {Time{1}, 0, false}) ==
        "  0 |01   aabb\n"
        "  1 | 01aabb\n");
}

TEST_CASE("lower case is the input gradient, upper case the weight gradient, and marks the rest") {
  Costs costs = uniform_costs(2, 2, Time{2}, Time{1}, Time{1});
  for (StageCosts& stage : costs.stage) stage.update = Time{1};
  CHECK(drawn(straight_text(2, 1, "gpu0: 0F0 0R0 0W0 0U0\ngpu1: 1F0 1I0 1W0 1U0\n"), costs,
              {Time{1}, 0, false}) ==
        "  0 |00~~ A^\n"
        "  1 |  00aA^\n");
}

TEST_CASE("micro-batches count modulo ten, backwards modulo twenty-six") {
  std::string ops;
  for (int m = 0; m < 28; ++m) ops += " 0F" + std::to_string(m) + " 0B" + std::to_string(m);
  CHECK(drawn(straight_text(1, 28, "gpu0:" + ops + "\n"),
              uniform_costs(1, 1, Time{1}, Time{1}, Time{0}), {Time{1}, 0, false}) ==
        "  0 |0a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6q7r8s9t0u1v2w3x4y5z6a7b\n");
}

TEST_CASE("a column shows what runs at its middle") {
  const std::string text = straight_text(1, 1, "gpu0: 0F0 0B0\n");
  const Costs costs = uniform_costs(1, 1, Time{6}, Time{4}, Time{4});
  CHECK(drawn(text, costs, {Time{4}, 0, false}) == "  0 |0aa\n");  // middles 2, 6, 10; F ends at 6
  CHECK(drawn(text, costs, {Time{2}, 0, false}) == "  0 |000aaaa\n");
  CHECK(drawn(text, costs, {Time{100}, 0, false}) == "  0 |\n");  // its middle is behind the end
}

TEST_CASE("without a tick the drawing fits the columns") {
  const std::string text = straight_text(1, 1, "gpu0: 0F0 0B0\n");
  const Costs costs = uniform_costs(1, 1, Time{1'000'000}, Time{1'000'000}, Time{1'000'000});
  CHECK(drawn(text, costs, {Time{}, 9, false}) == "  0 |000aaaaaa\n");
  CHECK(drawn(text, costs, {Time{}, 3, false}) == "  0 |0aa\n");
  for (int columns = 1; columns < 50; ++columns) {
    CHECK(drawn(text, costs, {Time{}, columns, false}).size() <=
          std::string("  0 |\n").size() + as_size(columns));
  }
}

TEST_CASE("a program that takes no time is an empty row") {
  CHECK(drawn(straight_text(1, 1, "gpu0: 0F0 0B0\n"), uniform_costs(1, 1, Time{}, Time{}, Time{}),
              {Time{}, 80, false}) == "  0 |\n");
}

TEST_CASE("colours are put around the same letters") {
  const std::string text = straight_text(1, 1, "gpu0: 0F0 0I0 0W0 0U0\n");
  Costs costs = uniform_costs(1, 1, Time{2}, Time{1}, Time{1});
  costs.stage[0].update = Time{1};
  std::string coloured = drawn(text, costs, {Time{1}, 0, true});
  CHECK(coloured != drawn(text, costs, {Time{1}, 0, false}));
  for (std::size_t at; (at = coloured.find('\x1b')) != std::string::npos;) {
    coloured.erase(at, coloured.find('m', at) + 1 - at);
  }
  CHECK(coloured == drawn(text, costs, {Time{1}, 0, false}));
}

TEST_CASE("the legend names every sign") {
  for (const char* const sign : {"0-9", "a-z", "A-Z", "~", "^", "blank"}) {
    CHECK(test::contains(figure_legend(), sign));
  }
}

TEST_CASE("a grid shows all lists when nothing is marked") {
  CHECK(grid(parse_program("stageline-program 1\nmicrobatches: 1\nstage 0: a\nstage 1: long\n"
                           "a: 0F0 0B0\nlong: 1F0 1B0\nidle:\n"),
             {}) ==
        "   a | 0F0 0B0\n"
        "long | 1F0 1B0\n"
        "idle |\n");
}

TEST_CASE("a grid marks ops and shows what is around them") {
  const Program program =
      parse_program(straight_text(1, 4, "gpu0: 0F0 0F1 0F2 0F3 0B0 0B1 0B2 0B3\n"));
  CHECK(grid(program, {*parse_op("0F3")}, 1) == "gpu0 | … 0F2 >0F3< 0B0 …\n");
  CHECK(grid(program, {*parse_op("0F0"), *parse_op("0F2")}, 1) == "gpu0 | >0F0< 0F1 >0F2< 0F3 …\n");
  CHECK(grid(program, {*parse_op("0B3")}, 2) == "gpu0 | … 0B1 0B2 >0B3<\n");
  CHECK(grid(program, {*parse_op("0F0")}, 20) == "gpu0 | >0F0< 0F1 0F2 0F3 0B0 0B1 0B2 0B3\n");
}

TEST_CASE("an op is marked whether overlapped or not") {
  const Program program =
      parse_program(straight_text(1, 2, "gpu0: 0F0 (0F1;0B0)OVERLAP_F_B 0B1\n"));
  CHECK(grid(program, {*parse_op("0F1")}) == "gpu0 | 0F0 >0F1< 0B0 0B1\n");
}

}  // namespace
}  // namespace stageline::figure_tests
