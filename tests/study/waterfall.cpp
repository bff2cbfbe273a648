// Do the causes of a step add up to it, and is each what its removal saves?
#include "tools/study/whatif/waterfall.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <random>

#include "sim/base/errors.hpp"
#include "tests/make.hpp"
#include "tests/specs.hpp"
#include "tests/study/uneven.hpp"
#include "tests/study/uniform.hpp"
#include "tests/thorough.hpp"
#include "tools/inputs/setting.hpp"
#include "tools/report/text/waterfall.hpp"
#include "traces/traces.hpp"

namespace stageline::waterfall_tests {
namespace {

Time sum_of(const Waterfall& waterfall) {
  return std::accumulate(waterfall.by.begin(), waterfall.by.end(), waterfall.ideal);
}

Time sum_of(const DeviceWaterfall& device) {
  const Time busy = std::accumulate(device.busy.begin(), device.busy.end(), device.work);
  return std::accumulate(device.idle.begin(), device.idle.end(), busy);
}

std::int64_t ops_of(const Program& program) {
  std::int64_t all = 0;
  for (const std::vector<Op>& list : program.ops) all += static_cast<std::int64_t>(list.size());
  return all;
}

}  // namespace

TEST_CASE("the causes add up to the step, to the picosecond, for every scheduler") {
  std::mt19937 random(2201);
  std::map<std::string, int> held;
  for (const int devices : {2, 4}) {
    for (const ScheduleSpec& spec : test::all_specs(devices)) {
      if (!spec.knobs.empty() && random() % (test::thorough ? 4 : 12) != 0) continue;
      for (const bool link : {false, true}) {
        const std::string schedule = spelled(spec);
        CAPTURE(schedule);
        CAPTURE(devices);
        CAPTURE(link);
        const Case asked = test::uneven_case(random, spec, devices, link);
        std::optional<Outcome> outcome;
        try {
          outcome = study(asked);
        } catch (const UsageError&) {
          continue;  // it does not go on these devices
        }
        const Waterfall waterfall = waterfall_of(asked, *outcome);
        CHECK(sum_of(waterfall) == waterfall.step);
        REQUIRE(waterfall.device.size() == outcome->program.devices.size());
        for (const DeviceWaterfall& device : waterfall.device) {
          CAPTURE(device.name);
          CHECK(sum_of(device) == waterfall.step);
        }
        if (outcome->settled) CHECK(waterfall.step == outcome->step_time);
        CHECK(waterfall.ideal > Time{});
        CHECK(waterfall.ideal <= waterfall.step);
        if (!link) {
          // Equal stages take whole picoseconds, each op less than one too long; a path of a step
          // has no more than its ops.
          const Time rounding = Time{1} * (1 + ops_of(outcome->program) / outcome->program.steps);
          for (std::size_t c = 0; c < waterfall.by.size(); ++c) {
            // Fill and drain are counted as those of one direction. Two that meet in overlapped
            // pairs wait for less, and the rest of the idle time is below zero.
            const bool meets =
                static_cast<StepCause>(c) == StepCause::dependency && outcome->figures.has_pairs;
            if (!meets) CHECK(waterfall.by[c] >= -rounding);
          }
          CHECK(waterfall.of(StepCause::messages) == Time{});
        }
        ++held[std::string(spec.scheduler->name)];
      }
    }
  }
  CHECK(held.size() >= 20);
}

TEST_CASE("of equal stages all above the ideal is fill and drain") {
  const Case asked = test::uniform_case("1f1b", 4, 8);
  const Waterfall waterfall = waterfall_of(asked, study(asked));
  constexpr Time ms{1'000'000'000};
  CHECK(waterfall.ideal == 48 * ms);  // 8 micro-batches of 24 ms on 4 devices
  CHECK(waterfall.step == 66 * ms);   // (8 + 4 - 1) · 6 ms
  CHECK(waterfall.of(StepCause::fill_and_drain) == 18 * ms);
  const std::string table = report::waterfall_table(waterfall, 0);
  CHECK(table.find("fill and drain") != std::string::npos);
  CHECK(table.find("messages") == std::string::npos);
}

TEST_CASE("a slow device of a stream is imbalance, and nothing else") {
  Case asked = test::uniform_case("pipedream", 4, 16);
  asked.cluster.devices[2].rate = 0.5;
  asked.partition = "0-1,2-3,4-5,6-7";
  const Outcome outcome = study(asked);
  const Waterfall waterfall = waterfall_of(asked, outcome);
  constexpr Time ms{1'000'000'000};
  CHECK(waterfall.step == 16 * 12 * ms);
  CHECK(waterfall.ideal == 16 * (6 + 6 + 12 + 6) * ms / 4);
  CHECK(waterfall.of(StepCause::imbalance) == waterfall.step - waterfall.ideal);
}

TEST_CASE("messages and the optimizer are what the step is longer by with them") {
  Case asked = test::uniform_case("1f1b", 4, 8);
  for (Layer& layer : asked.model.layers) {
    layer.output = Bytes{1'000'000};
    layer.update = Time{300'000'000};
  }
  asked.cluster =
      uniform_cluster(4, LinkSpec{Bandwidth{10'000'000'000}, Time{5'000'000}}, std::nullopt);
  Case without_links = asked;
  without_links.cluster = uniform_cluster(4, std::nullopt, std::nullopt);
  Case without_updates = asked;
  for (Layer& layer : without_updates.model.layers) layer.update = Time{};
  Case without_both = without_links;
  for (Layer& layer : without_both.model.layers) layer.update = Time{};
  const Time step = study(asked).step_time;
  const Time no_updates = study(without_updates).step_time;
  const Waterfall waterfall = waterfall_of(asked, study(asked));
  CHECK(waterfall.of(StepCause::optimizer) == step - no_updates);
  CHECK(waterfall.of(StepCause::optimizer) > Time{});
  CHECK(waterfall.of(StepCause::messages) == no_updates - study(without_both).step_time);
  CHECK(waterfall.of(StepCause::messages) > Time{});
}

TEST_CASE("recomputing is a cause of its own") {
  const Case asked = test::uniform_case("1f1b:recompute=always", 4, 8);
  const Waterfall waterfall = waterfall_of(asked, study(asked));
  const Case without = test::uniform_case("1f1b", 4, 8);
  CHECK(waterfall.of(StepCause::recompute) == study(asked).step_time - study(without).step_time);
  CHECK(waterfall.of(StepCause::recompute) > Time{});
}

TEST_CASE("blocking collectives and reductions of degrees are causes, at fair rates, too") {
  SettingRequest request;
  request.trace = "model:gpt@h100,batch=8,vocab=50432";
  request.cluster.cluster = "h100x8";
  request.devices = {8};
  request.microbatches = 8;
  request.degrees.tensor = 2;
  request.degrees.data = 2;
  request.degrees.pipeline = 2;
  const Setting setting = read_setting(request);
  const Case asked = make_case(request, setting, test::spec("1f1b"), 8);
  const Outcome outcome = study(asked);
  const Waterfall waterfall = waterfall_of(asked, outcome);
  CHECK(sum_of(waterfall) == waterfall.step);
  CHECK(waterfall.of(StepCause::blocking_collectives) > Time{});
  CHECK(waterfall.of(StepCause::reductions) > Time{});
}

TEST_CASE("a device's own work and idle time are told apart") {
  Case asked = test::uniform_case("pipedream", 4, 16);
  asked.cluster.devices[2].rate = 0.5;
  asked.partition = "0-1,2-3,4-5,6-7";
  const Waterfall waterfall = waterfall_of(asked, study(asked));
  constexpr Time ms{1'000'000'000};
  const auto imbalance = static_cast<std::size_t>(StepCause::imbalance);
  for (std::size_t d = 0; d < waterfall.device.size(); ++d) {
    const DeviceWaterfall& device = waterfall.device[d];
    CHECK(device.work == 16 * (d == 2 ? 12 : 6) * ms);  // the slow one never waits
    CHECK(device.idle[imbalance] == 16 * (d == 2 ? 0 : 6) * ms);
    CHECK(device.busy[imbalance] == Time{});
  }
}

TEST_CASE("a device that recomputes is busy with it, and the others wait as long") {
  const Case asked = test::uniform_case("1f1b:recompute=always", 4, 8);
  const Waterfall waterfall = waterfall_of(asked, study(asked));
  const auto recompute = static_cast<std::size_t>(StepCause::recompute);
  constexpr Time ms{1'000'000'000};
  for (const DeviceWaterfall& device : waterfall.device) {
    CHECK(device.busy[recompute] >= Time{});
    CHECK(device.busy[recompute] <= 16 * ms);  // 8 micro-batches of two layers of 1 ms
    CHECK(device.busy[recompute] + device.idle[recompute] == waterfall.of(StepCause::recompute));
  }
  CHECK(waterfall.device.front().busy[recompute] == 16 * ms);
}

TEST_CASE("the mean over the devices is the whole, where stages are equal") {
  Case asked = test::uniform_case("1f1b", 4, 8);
  for (Layer& layer : asked.model.layers) layer.output = Bytes{1'000'000};
  asked.cluster =
      uniform_cluster(4, LinkSpec{Bandwidth{10'000'000'000}, Time{5'000'000}}, std::nullopt);
  const Waterfall waterfall = waterfall_of(asked, study(asked));
  Time work{};
  for (const DeviceWaterfall& device : waterfall.device) work += device.work;
  CHECK(work / 4 == waterfall.ideal);
  for (std::size_t cause = 0; cause < std::size_t{step_causes}; ++cause) {
    Time sum{};
    for (const DeviceWaterfall& device : waterfall.device) {
      sum += device.busy[cause] + device.idle[cause];
    }
    const Time off = sum / 4 - waterfall.by[cause];
    CHECK(off >= Time{-2});
    CHECK(off <= Time{2});
  }
}

TEST_CASE("a limit of memory is a cause where the schedule is faster without it") {
  const Case asked = test::uniform_case("zb_auto:limit=2", 4, 8);
  const Outcome outcome = study(asked);
  const Waterfall waterfall = waterfall_of(asked, outcome);
  const Outcome free = study(test::uniform_case("zb_auto:limit=none", 4, 8));
  REQUIRE(free.step_time < outcome.step_time);
  CHECK(waterfall.of(StepCause::memory_limit) == outcome.step_time - free.step_time);
  CHECK(sum_of(waterfall) == waterfall.step);
  const Case wide = test::uniform_case("zb_auto:limit=none", 4, 8);
  CHECK(waterfall_of(wide, free).of(StepCause::memory_limit) == Time{});
}

TEST_CASE("jitter lengthens the step by what the mean is longer") {
  const Case asked = test::uniform_case("1f1b", 4, 8);
  Waterfall waterfall = waterfall_of(asked, study(asked));
  const Time nominal = waterfall.step;
  add_jitter(waterfall, Time{1234});
  CHECK(waterfall.step == nominal + Time{1234});
  CHECK(waterfall.of(StepCause::jitter) == Time{1234});
  CHECK(sum_of(waterfall) == waterfall.step);
  for (const DeviceWaterfall& device : waterfall.device) CHECK(sum_of(device) == waterfall.step);
}

}  // namespace stageline::waterfall_tests
