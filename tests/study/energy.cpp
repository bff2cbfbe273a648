// Is energy busy time at busy power and idle time at idle power, of all devices behind a rank?
#include "tools/study/figures/energy.hpp"

#include <doctest/doctest.h>

#include "sim/base/errors.hpp"
#include "tests/make.hpp"
#include "tests/study/uniform.hpp"
#include "tools/inputs/setting.hpp"

namespace stageline::energy_tests {
namespace {

Case powered(double busy, double idle, double price) {
  Case asked = test::uniform_case("1f1b", 4, 8);
  DeviceKind kind;
  kind.name = "small";
  kind.power_watts = busy;
  kind.idle_watts = idle;
  kind.price_per_hour = price;
  asked.cluster.kinds = {kind};
  for (Device& device : asked.cluster.devices) device.kind = 0;
  return asked;
}

}  // namespace

TEST_CASE("joules are busy and idle power over the step, dollars the hours of all devices") {
  const Case asked = powered(300, 50, 3.6);
  const Outcome outcome = study(asked);
  const StepEnergy energy = step_energy(asked, outcome);
  // A step of 66 ms, of which every device computes 8 · 6 ms.
  CHECK(*energy.joules == doctest::Approx(4 * (0.048 * 300 + 0.018 * 50)));
  CHECK(*energy.dollars == doctest::Approx(4 * 3.6 / 3600 * 0.066));
  CHECK(*step_energy(asked, outcome, 7.2).dollars == doctest::Approx(2 * *energy.dollars));
  CHECK(why_no_energy(asked).empty());
  CHECK(why_no_price(asked, std::nullopt).empty());
  CHECK(power_notes(asked).size() == 1);
}

TEST_CASE("with equal powers energy is power times time, whatever the schedule") {
  const Case asked = powered(200, 200, 1);
  const Outcome outcome = study(asked);
  CHECK(*step_energy(asked, outcome).joules == doctest::Approx(4 * 0.066 * 200));
}

TEST_CASE("energy is unknown where a device lacks a power, and the sentence names it") {
  Case asked = powered(300, 0, 0);
  const Outcome outcome = study(asked);
  CHECK(!step_energy(asked, outcome).joules);
  CHECK(!step_energy(asked, outcome).dollars);
  CHECK(why_no_energy(asked).find("small") != std::string::npos);
  CHECK(why_no_price(asked, std::nullopt).find("--price") != std::string::npos);
  CHECK(why_no_price(asked, 2.5).empty());
  asked.cluster.devices[1].kind = -1;
  asked.cluster.kinds[0].idle_watts = 10;
  CHECK(why_no_energy(asked).find(asked.cluster.devices[1].name) != std::string::npos);
}

TEST_CASE("a rank's energy is that of all its devices") {
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
  const StepEnergy energy = step_energy(asked, outcome);
  REQUIRE(energy.joules);
  const DeviceKind& kind = asked.ranked->devices().kinds.front();
  const double step = to_seconds(outcome.step_time);
  double busy = 0;  // of all devices: two ranks of four devices each
  for (const DeviceMetrics& device : outcome.metrics.device) {
    busy += 4 * to_seconds(device.busy) / outcome.program.steps;
  }
  CHECK(*energy.joules ==
        doctest::Approx(busy * kind.power_watts + (8 * step - busy) * kind.idle_watts));
  CHECK(*energy.dollars == doctest::Approx(8 * kind.price_per_hour / 3600 * step));
  CHECK(energy.samples == 64 * 2);
}

}  // namespace stageline::energy_tests
