// Does the text diagram tell forwards from backwards without colour, and micro-batches over nine?
#include "tools/report/text/space_time.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "sim/base/errors.hpp"
#include "tests/schedules/needs_table.hpp"
#include "tests/study/uniform.hpp"
#include "tests/text.hpp"
#include "tools/base/text.hpp"
#include "tools/report/text/outcome_tables.hpp"

namespace stageline::space_time_tests {
namespace {

using test::contains;
using test::straight_text;

Timeline timeline(const std::string& text, const Costs& costs) {
  return test::simulated(parse_program(text), costs).timeline;
}

const FigureOptions exact{Time{1}, 0, false};

TEST_CASE("a forward and its backward have one number, in rows of their own") {
  const Timeline run =
      timeline(straight_text(2, 2, "gpu0: 0F0 0F1 0B0 0B1\ngpu1: 1F0 1F1 1B0 1B1\n"),
               uniform_costs(2, 2, Time{2}, Time{1}, Time{2}));
  CHECK(report::space_time(run, exact) ==
        " 0 F|0─1─\n"
        "   B|    .....0──1──\n"
        " 1 F|  0─1─\n"
        "   B|..    0──1──...\n");
  CHECK(report::space_time_legend({&run}) ==
        "F forward · B backward · digit of the micro-batch · . idle");
}

TEST_CASE("weight gradients, recomputes and updates are told apart") {
  Costs costs = uniform_costs(2, 2, Time{2}, Time{1}, Time{1});
  for (StageCosts& stage : costs.stage) stage.update = Time{1};
  const Timeline run =
      timeline(straight_text(2, 1, "gpu0: 0F0 0R0 0W0 0U0\ngpu1: 1F0 1I0 1W0 1U0\n"), costs);
  CHECK(report::space_time(run, exact) ==
        " 0 F|0─\n"
        "   B|  ~~  ^\n"
        "   W|    .0\n"
        " 1 F|  0─\n"
        "   B|    0 ^\n"
        "   W|..   0\n");
  const std::string legend = report::space_time_legend({&run});
  for (const char* const sign : {"W weight", "input gradient", "~ ", "^ ", ". idle"}) {
    CHECK(contains(legend, sign));
  }
}

TEST_CASE("a number of several digits is whole where its box goes on behind it") {
  std::string ops;
  for (int m = 0; m < 13; ++m) ops += " 0F" + std::to_string(m) + " 0B" + std::to_string(m);
  const Timeline run = timeline(straight_text(1, 13, "gpu0:" + ops + "\n"),
                                uniform_costs(1, 1, Time{1}, Time{2}, Time{1}));
  const std::string text = report::space_time(run, exact);
  CHECK(contains(text, " 0 F|0   1   2   3   4   5   6   7   8   9   0   1   2\n"));
  CHECK(contains(text, "   B| 0── 1── 2── 3── 4── 5── 6── 7── 8── 9── 10─ 11─ 12─\n"));
  CHECK(contains(report::space_time_legend({&run}), "number of the micro-batch, in a narrow box"));
}

TEST_CASE("columns show what runs at their middle, and the tick fits the columns") {
  const Timeline run = timeline(straight_text(1, 1, "gpu0: 0F0 0B0\n"),
                                uniform_costs(1, 1, Time{6}, Time{4}, Time{4}));
  CHECK(report::space_time(run, {Time{4}, 0, false}) == " 0 F|0\n   B| 0─\n");
  CHECK(report::space_time(run, {Time{2}, 0, false}) == " 0 F|0──\n   B|   0───\n");
  CHECK(report::space_time(run, {Time{100}, 0, false}) == " 0 F|\n   B|\n");
  for (int columns = 1; columns < 30; ++columns) {
    for (const char* const row : {" 0 F|", "   B|"}) {
      const std::string text =
          test::from_word(report::space_time(run, {Time{}, columns, false}), row);
      CHECK(columns_of(text.substr(0, text.find('\n'))) <= columns + report::space_time_margin);
    }
  }
}

TEST_CASE("both ops of an overlapped pair are drawn") {
  const Timeline run = timeline(straight_text(1, 2, "gpu0: 0F0 (0F1;0B0)OVERLAP_F_B 0B1\n"),
                                uniform_costs(1, 1, Time{2}, Time{1}, Time{1}));
  CHECK(report::space_time(run, exact) ==
        " 0 F|0─1───\n"
        "   B|  0───1─\n");
  CHECK(contains(report::space_time_legend({&run}), "overlapped pair"));
}

TEST_CASE("colours are put around the same signs") {
  Costs costs = uniform_costs(1, 1, Time{2}, Time{1}, Time{1});
  const Timeline run = timeline(straight_text(1, 1, "gpu0: 0F0 0I0 0W0\n"), costs);
  std::string coloured = report::space_time(run, {Time{1}, 0, true});
  CHECK(coloured != report::space_time(run, exact));
  for (std::size_t at; (at = coloured.find('\x1b')) != std::string::npos;) {
    coloured.erase(at, coloured.find('m', at) + 1 - at);
  }
  CHECK(coloured == report::space_time(run, exact));
}

TEST_CASE("of many devices the first and the last are drawn, and all where asked") {
  Timeline many;
  for (int d = 0; d < 30; ++d) many.devices.push_back("gpu" + std::to_string(d));
  many.lanes.resize(30 * lane_kinds);
  const std::string text = report::space_time(many, exact, false);
  CHECK(contains(text, " 7 F|\n   B|\n …  | devices 8 to 21 left out: --full\n22 F|\n"));
  CHECK_FALSE(contains(report::space_time(many, exact, true), "left out"));
}

Outcome interleaved(int devices, int layers, const std::string& schedule) {
  Case asked = test::uniform_case(schedule, devices, 2 * devices);
  asked.model = uniform_model("layers=" + std::to_string(layers));
  return study(asked);
}

int lines_in(const std::string& text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

TEST_CASE("the tables of many devices and stages are summed up") {
  const Outcome outcome = interleaved(16, 96, "interleaved_1f1b:chunks=6");
  const Model model = uniform_model("layers=96");
  const std::string all = report::stage_table(outcome, model, {0, true});
  CHECK(lines_in(all) == 2 + 96);
  const std::string some = report::stage_table(outcome, model, {0, false});
  CHECK(lines_in(some) <= 2 + 24 + 1);
  CHECK(contains(some, "… 96 stages in "));
  CHECK(contains(some, "--full"));
  for (const char* const stage : {"\n 0–39  16 devices", "\n   95  gpu15"})
    CHECK(contains(some, stage));
  CHECK(report::device_table(outcome, {0, true}) == report::device_table(outcome, {0, false}));
  for (const int width : {40, 60, 80, 120}) {
    for (const bool full : {false, true}) {
      for (const std::string& text : {report::stage_table(outcome, model, {width, full}),
                                      report::device_table(outcome, {width, full})}) {
        CHECK(wrapped(text, width) == text);
      }
    }
  }
}

TEST_CASE("equal stages are one row") {
  const Outcome outcome = interleaved(30, 30, "naive");
  const std::string text = report::stage_table(outcome, uniform_model("layers=30"), {0, false});
  CHECK(contains(text, "gpu0 … gpu28"));
  CHECK(contains(text, "(29)"));
  CHECK(contains(text, "… 30 stages in 2 rows, equal neighbours as one: --full\n"));
}

}  // namespace
}  // namespace stageline::space_time_tests
