// Do we give the zero-bubble papers' numbers? p devices, m micro-batches,
// F, I and W one stage's times. A span is a device's time from its first start to its last end.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <tuple>

#include "sim/analysis/memory.hpp"
#include "sim/analysis/metrics.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tests/make.hpp"
#include "tests/schedules/sizes.hpp"
#include "tests/specs.hpp"
#include "tests/thorough.hpp"

namespace stageline::closed_forms_zero_bubble_tests {
namespace {

using test::longest_span;
using test::peak;
using test::peaks;
using test::Ran;
using test::Size;

std::string text(const Size& size) {
  return "p " + std::to_string(size.p) + ", m " + std::to_string(size.m) + ", F " +
         std::to_string(size.F) + ", I " + std::to_string(size.I) + ", W " +
         std::to_string(size.W) + ", c " + std::to_string(size.c);
}

Ran run(const std::string& schedule, const Size& size) {
  const int stages = test::stages_for(test::spec(schedule), size.p);
  return test::run_schedule(
      schedule, size.p,
      uniform_costs(stages, size.p, Time{size.F}, Time{size.I}, Time{size.W}, Time{size.c}),
      size.m);
}

// Times for which the papers' formulas hold.
const std::tuple<int, int, int> ratios[] = {{1, 1, 1}, {10, 10, 10}, {7, 9, 7}, {10, 12, 6},
                                            {5, 9, 1}, {4, 4, 3},    {6, 6, 0}};

TEST_CASE("ZB-H1 leaves every device (p-1)(F+I-W) of the makespan, with I ≥ F and W ≤ F") {
  for (int p = 1; p <= 8; ++p) {
    for (const int m : {p, p + 1, 2 * p, 3 * p + 1}) {
      for (const auto& [F, I, W] : ratios) {
        const Size size{p, m, F, I, W};
        CAPTURE(text(size));
        const Ran ran = run("zb_h1", size);
        const Metrics metrics = metrics_of(ran.program, ran.graph, ran.times);
        for (const DeviceMetrics& device : metrics.device) {
          CHECK(device.idle == Time{(p - 1) * (F + I - W)});
        }
        CHECK(longest_span(ran) == metrics.makespan);
      }
    }
  }
}

TEST_CASE("ZB-H2 leaves max(0, (p-1)(F+I-2W)) inside a device's span, with W ≤ F ≤ I") {
  for (int p = 1; p <= 8; ++p) {
    for (const int m : {2 * p, 2 * p + 1, 4 * p}) {
      for (const auto& [F, I, W] : ratios) {
        const Size size{p, m, F, I, W};
        CAPTURE(text(size));
        const Ran ran = run("zb_h2", size);
        const Metrics metrics = metrics_of(ran.program, ran.graph, ran.times);
        CHECK(longest_span(ran) == Time{m * (F + I + W) + std::max(0, (p - 1) * (F + I - 2 * W))});
        if (F == I && I == W) CHECK(metrics.makespan == Time{m * (F + I + W) + (p - 1) * F});
      }
    }
  }
}

TEST_CASE("ZB-H1 holds p stashes on every device, ZB-H2 2p-1") {
  for (int p = 1; p <= 10; ++p) {
    for (const int m : {1, 2, p, 2 * p, 5 * p}) {
      for (const auto& [F, I, W] :
           {std::tuple(1, 1, 1), std::tuple(3, 8, 5), std::tuple(7, 2, 9)}) {
        const Size size{p, m, F, I, W};
        CAPTURE(text(size));
        const auto all = [&](int most) { return std::vector<int>(as_size(p), std::min(most, m)); };
        CHECK(peaks(run("zb_h1", size)) == all(p));
        CHECK(peaks(run("zb_h2", size)) == all(2 * p - 1));
      }
    }
  }
}

// Qi et al. 2023 (arXiv 2401.10241), profiled times (table 9) and bubble rates (table 5) of
// the 6.2B model on 8 devices with 24 micro-batches, in µs.
TEST_CASE("bubble rates are those that the zero-bubble paper prints for its 6.2B model") {
  const Size size{8, 24, 29718, 29444, 19927, 527};
  const auto rate = [&](const std::string& schedule) {
    const double work = size.m * (size.F + size.I + size.W);
    const auto span = static_cast<double>(longest_span(run(schedule, size)).count());
    return fmt::format("{:.4f}", 1 - work / span);
  };
  CHECK(rate("1f1b") == "0.2347");
  CHECK(rate("zb_h1") == "0.1323");
  CHECK(rate("zb_h2") == "0.0698");
}

TEST_CASE("zb_auto finds what the zero-bubble scheduler finds, or better") {
  // Measured by running the public one: F = I = W = 10.
  const std::tuple<int, int, int, int, int> figures[] = {
      {4, 12, 390, 360, 366},
      {8, 24, 790, 720, 728},  //
      {8, 64, 1990, 1920, 1928},
      {16, 64, 2070, 1920, 1940},
  };
  for (const auto& figure : figures) {
    const auto [one, two, with_messages] =
        std::tuple(std::get<2>(figure), std::get<3>(figure), std::get<4>(figure));
    const int p = std::get<0>(figure);
    const int m = std::get<1>(figure);
    CAPTURE(p);
    CAPTURE(m);
    const Ran narrow = run("zb_auto:limit=p", {p, m, 10, 10, 10});
    CHECK(longest_span(narrow) <= Time{one});
    CHECK(peak(narrow) <= p);
    const Ran wide = run("zb_auto:limit=2p", {p, m, 10, 10, 10});
    CHECK(longest_span(wide) == Time{two});
    CHECK(peak(wide) <= 2 * p);
    const Ran linked = run("zb_auto:limit=2p", {p, m, 10, 10, 10, 1});
    CHECK(longest_span(linked) <= Time{with_messages});
    CHECK(peak(linked) <= 2 * p);
  }
}

TEST_CASE("zb_auto's last refinement pays: better than the public scheduler at small sizes") {
  CHECK(longest_span(run("zb_auto:limit=2p", {4, 12, 10, 10, 10, 1})) < Time{366});
  CHECK(longest_span(run("zb_auto:limit=2p", {8, 24, 10, 10, 10, 1})) < Time{728});
}

TEST_CASE("zb_auto is never worse than ZB-H1, ZB-H2, 1F1B and a round within their memory") {
  std::mt19937 random(31);
  for (int i = 0; i < (test::thorough ? 120 : 12); ++i) {
    const int p = 1 + static_cast<int>(random() % 6);
    const int m = 1 + static_cast<int>(random() % 14);
    const Costs costs = test::random_costs(random, p, p, i % 2 == 0);
    CAPTURE(i);
    for (const std::string goal : {"span", "makespan"}) {
      const auto value = [&](const Ran& ran) {
        return goal == "span" ? longest_span(ran) : makespan(ran.times);
      };
      // Updates come behind the order, and are no part of what is looked for.
      Costs without = costs;
      for (StageCosts& stage : without.stage) stage.update = Time{};
      const Ran narrow = test::run_schedule("zb_auto:limit=p,goal=" + goal, p, without, m);
      const Ran wide = test::run_schedule("zb_auto:limit=2p,goal=" + goal, p, without, m);
      const Time one_f = value(test::run_schedule("1f1b", p, without, m));
      const Time h1 = value(test::run_schedule("zb_h1", p, without, m));
      const Time h2 = value(test::run_schedule("zb_h2", p, without, m));
      const Time round = value(test::run_schedule("cyclic:limit=p", p, without, m));
      const Time wide_round = value(test::run_schedule("cyclic:limit=2p", p, without, m));
      CHECK(value(narrow) <= std::min({one_f, h1, round}));
      CHECK(value(wide) <= std::min({one_f, h1, h2, wide_round}));
      CHECK(peak(narrow) <= p);
      CHECK(peak(wide) <= 2 * p);
    }
  }
}

TEST_CASE("zb_auto keeps any limit from one stash, and more memory does not make it slower") {
  std::mt19937 random(32);
  for (int i = 0; i < (test::thorough ? 20 : 6); ++i) {
    const int p = 2 + static_cast<int>(random() % 5);
    const Costs costs = test::random_costs(random, p, p, i % 2 == 0);
    CAPTURE(i);
    for (int limit = 1; limit <= 2 * p; ++limit) {
      const Ran ran =
          test::run_schedule("zb_auto:limit=" + std::to_string(limit), p, costs, 2 * p + 1);
      CHECK(peak(ran) <= limit);
    }
  }
  Time before = Time::max();
  for (int limit = 1; limit <= 16; ++limit) {
    const Time span =
        longest_span(run("zb_auto:limit=" + std::to_string(limit), {8, 24, 10, 10, 10}));
    CHECK(span <= before);
    before = span;
  }
  CHECK(before == Time{720});
}

// Of two chunks a device, F = I = W = 5 each.
TEST_CASE("ZB-V leaves no bubble in a device's span, V-Half and V-Min the public scheduler's") {
  const std::tuple<int, int, int, int> figures[] = {
      {4, 12, 385, 415}, {8, 24, 805, 855}, {8, 64, 2005, 2055}, {16, 64, 2125, 2215}};
  for (const auto& figure : figures) {
    const auto [half, least] = std::pair(std::get<2>(figure), std::get<3>(figure));
    const int p = std::get<0>(figure);
    const int m = std::get<1>(figure);
    CAPTURE(p);
    CAPTURE(m);
    CHECK(longest_span(run("zb_v", {p, m, 5, 5, 5})) == Time{30 * m});
    CHECK(longest_span(run("v_half", {p, m, 5, 5, 5})) <= Time{half});
    CHECK(longest_span(run("v_min", {p, m, 5, 5, 5})) <= Time{least});
  }
  for (int p = 1; p <= 16; p += test::thorough ? 1 : 3) {
    for (const int m : {2 * p, 2 * p + 1, 5 * p}) {
      CAPTURE(p);
      CAPTURE(m);
      CHECK(longest_span(run("zb_v", {p, m, 5, 5, 5})) == Time{30 * m});
    }
  }
}

// A chunk counts until its W has ended; a device's share of the model is two.
TEST_CASE("ZB-V, V-Half and V-Min hold p, floor((p+2)/2) and floor((p+4)/3) shares, in chunks") {
  for (int p = 2; p <= 16; p += test::thorough ? 1 : 3) {
    CAPTURE(p);
    const int m = 4 * p;
    CHECK(peak(run("zb_v", {p, m, 5, 5, 5})) == 2 * p);
    CHECK(peak(run("v_half", {p, m, 5, 5, 5})) == 2 * ((p + 2) / 2));
    CHECK(peak(run("v_min", {p, m, 5, 5, 5})) == 2 * ((p + 4) / 3));
  }
}

// Fitted to the above, and to what the building blocks leave at their ends: in chunk slots. An
// order that the search finds may leave less.
TEST_CASE("V-Half idles for about 3p slots in the longest span, V-Min for about 4p, or less") {
  for (int p = 3; p <= 16; p += test::thorough ? 1 : 3) {
    CAPTURE(p);
    const int m = 4 * p;
    const int half = 3 * p - (p % 2 == 0 ? 7 : 4);
    const int least = 4 * p - (p % 3 == 0 ? 7 : 5);
    CHECK(longest_span(run("v_half", {p, m, 5, 5, 5})) <= Time{5 * (6 * m + half)});
    CHECK(longest_span(run("v_min", {p, m, 5, 5, 5})) <= Time{5 * (6 * m + least)});
  }
}

TEST_CASE("the V schedules keep their limits for unequal costs and few micro-batches") {
  std::mt19937 random(33);
  for (int i = 0; i < (test::thorough ? 60 : 8); ++i) {
    const int p = 1 + static_cast<int>(random() % 7);
    const int m = 1 + static_cast<int>(random() % 20);
    const Costs costs = test::random_costs(random, 2 * p, p, i % 2 == 0);
    CAPTURE(p);
    CAPTURE(m);
    CHECK(peak(test::run_schedule("zb_v", p, costs, m)) <= 2 * p);
    CHECK(peak(test::run_schedule("v_half", p, costs, m)) <= 2 * ((p + 2) / 2));
    CHECK(peak(test::run_schedule("v_min", p, costs, m)) <= 2 * ((p + 4) / 3));
  }
}

TEST_CASE("steps that follow each other take a span each, where the makespan takes more") {
  for (const char* const schedule : {"zb_h2", "zb_v", "zb_auto:limit=2p"}) {
    CAPTURE(schedule);
    const int p = 4;
    const int stages = test::stages_for(test::spec(schedule), p);
    const Costs costs = uniform_costs(stages, p, Time{5}, Time{5}, Time{5});
    const Time one = makespan(test::run_schedule(schedule, p, costs, 12).times);
    const Time three = makespan(test::run_schedule(schedule, p, costs, 12, 3).times);
    const Time span = longest_span(test::run_schedule(schedule, p, costs, 12));
    CHECK(one > span);
    CHECK(three == one + 2 * span);
  }
}

}  // namespace
}  // namespace stageline::closed_forms_zero_bubble_tests
