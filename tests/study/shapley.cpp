// Are Shapley values what their definition says, and do they add up?
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

#include "sim/base/errors.hpp"
#include "tests/specs.hpp"
#include "tests/study/uneven.hpp"
#include "tests/study/uniform.hpp"
#include "tools/inputs/setting.hpp"
#include "tools/study/whatif/counterfactuals.hpp"
#include "tools/study/whatif/waterfall.hpp"

namespace stageline::shapley_tests {
namespace {

Time sum_of(const Waterfall& waterfall) {
  return std::accumulate(waterfall.by.begin(), waterfall.by.end(), waterfall.ideal);
}

}  // namespace

TEST_CASE("Shapley values add up to the step, to the picosecond, for every scheduler") {
  std::mt19937 random(1953);
  std::map<std::string, int> held;
  for (const ScheduleSpec& spec : test::all_specs(3)) {
    if (!spec.knobs.empty() && held.contains(std::string(spec.scheduler->name))) continue;
    const std::string schedule = spelled(spec);
    CAPTURE(schedule);
    const Case asked = test::uneven_case(random, spec, 3, true);
    std::optional<Outcome> outcome;
    try {
      outcome = study(asked);
    } catch (const UsageError&) {
      continue;  // it does not go on these devices
    }
    const Waterfall fixed = waterfall_of(asked, *outcome);
    const Waterfall shapley = waterfall_of(asked, *outcome, CauseOrder::shapley);
    CHECK(sum_of(shapley) == shapley.step);
    CHECK(shapley.step == fixed.step);
    CHECK(shapley.ideal == fixed.ideal);
    CHECK(shapley.of(StepCause::fill_and_drain) == fixed.of(StepCause::fill_and_drain));
    for (const DeviceWaterfall& device : shapley.device) {
      Time sum = device.work;
      for (const Time time : device.busy) sum += time;
      for (const Time time : device.idle) sum += time;
      CHECK(sum == shapley.step);
    }
    ++held[std::string(spec.scheduler->name)];
  }
  CHECK(held.size() >= 18);
}

TEST_CASE("of two causes each gets the mean of its removal first and last") {
  Case asked = test::uniform_case("1f1b", 4, 8);
  for (Layer& layer : asked.model.layers) {
    layer.output = Bytes{1'000'000};
    layer.update = Time{300'000'001};
  }
  asked.cluster =
      uniform_cluster(4, LinkSpec{Bandwidth{10'000'000'000}, Time{5'000'000}}, std::nullopt);
  const Outcome outcome = study(asked);
  Counterfactuals runs(asked, outcome);
  REQUIRE(runs.present() == std::vector{StepCause::messages, StepCause::optimizer});
  const Removed messages = bit_of(StepCause::messages);
  const Removed optimizer = bit_of(StepCause::optimizer);
  const Time twice =
      runs.step(0) - runs.step(messages) + runs.step(optimizer) - runs.step(messages | optimizer);
  const Waterfall shapley = waterfall_of(asked, outcome, CauseOrder::shapley);
  const Time off = 2 * shapley.of(StepCause::messages) - twice;
  CHECK(off >= Time{-1});
  CHECK(off <= Time{1});
  CHECK(shapley.orders == 2);
}

TEST_CASE("a cause alone gets what its removal saves, in every order") {
  const Case asked = test::uniform_case("1f1b:recompute=always", 4, 8);
  const Outcome outcome = study(asked);
  const Waterfall fixed = waterfall_of(asked, outcome);
  const Waterfall shapley = waterfall_of(asked, outcome, CauseOrder::shapley);
  CHECK(shapley.by == fixed.by);
}

TEST_CASE("the steps without causes do not hang on the order in which they are asked for") {
  Case asked = test::uniform_case("1f1b", 2, 4);
  for (Layer& layer : asked.model.layers) layer.update = Time{300'000'000};
  const Outcome outcome = study(asked);
  Counterfactuals runs(asked, outcome);
  const Removed all = bit_of(StepCause::optimizer) | bit_of(StepCause::imbalance);
  CHECK(runs.step(all) == runs.without(all).step());
  CHECK(runs.step(all) <= runs.step(0));
}

}  // namespace stageline::shapley_tests
