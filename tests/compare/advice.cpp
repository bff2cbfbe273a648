// Advice on comparisons: one device, and ways to fit that were simulated.
#include "tools/compare/advice.hpp"

#include <doctest/doctest.h>

#include "sim/errors.hpp"
#include "tests/text.hpp"

namespace stageline {
namespace {

using test::contains;

struct Asked {
  SettingRequest request;
  Setting setting;
  std::vector<Row> rows;
};

Asked asked_of(SettingRequest request, const std::string& schedules) {
  Setting setting = read_setting(request);
  std::vector<Row> rows = compare(request, setting, parse_schedules(schedules));
  return {std::move(request), std::move(setting), std::move(rows)};
}

SettingRequest uniform_request(const std::string& options, const std::string& memory) {
  SettingRequest request;
  request.trace = "uniform:layers=8" + options;
  request.devices = {4};
  request.microbatches = 8;
  if (!memory.empty()) request.cluster.memory = parse_bytes(memory);
  return request;
}

std::vector<std::string> changes(const Asked& asked) {
  return ways_to_fit(asked.request, asked.setting, asked.rows);
}

std::string alone(const Asked& asked) {
  return one_device_advice(asked.request, asked.setting, asked.rows);
}

TEST_CASE("one device is advised where links cost more than devices save") {
  SettingRequest request = uniform_request("", "");
  CHECK(alone(asked_of(request, "1f1b,gpipe")).empty());
  request.cluster.link = parse_link("1MB/s,50ms");
  const Asked slow = asked_of(request, "1f1b,gpipe,pipedream");
  const std::string advice = alone(slow);
  CHECK(contains(advice, "one device is faster than all of these: "));
  CHECK(contains(advice, " on 4 devices, takes "));
  // 8 micro-batches of eight layers of 3 ms.
  CHECK(contains(advice, "192.0 ms a step"));
}

TEST_CASE("one device is advised where asynchronous schedules alone are faster") {
  SettingRequest request = uniform_request(",output=1kB,forward=10ms", "");
  request.cluster.link = parse_link("1GB/s,40ms");
  const Asked asked = asked_of(request, "naive,pipedream");
  REQUIRE(asked.rows[0].outcome->speedup < 0.9);
  REQUIRE(asked.rows[1].outcome->speedup > 1);
  CHECK(alone(asked).starts_with("one device is faster than all synchronous schedules: "));
  CHECK(contains(alone(asked), "the fastest, naive on 4 devices"));
}

TEST_CASE("one device that is too small is not advised without saying so") {
  SettingRequest request = uniform_request("", "40MB");
  request.cluster.link = parse_link("1MB/s,50ms");
  CHECK(contains(alone(asked_of(request, "1f1b")),
                 "one device would be faster than all of these, but lacks memory: "));
}

TEST_CASE("every way to fit is a command that fits") {
  // Of 8 samples each, so that micro-batches can be cut.
  const Asked asked = asked_of(uniform_request(",batch=8,weights=1MB", "8MB"), "1f1b,gpipe");
  const std::vector<std::string> found = changes(asked);
  REQUIRE_FALSE(found.empty());
  for (const std::string& change : found) {
    CAPTURE(change);
    CHECK(change.starts_with("--schedule "));
    CHECK(contains(change, " fits: "));
    SettingRequest request = asked.request;
    std::string schedule = "1f1b";
    std::string words = change.substr(0, change.find(" fits: ")) + " ";
    while (!words.empty()) {
      const std::size_t middle = words.find(' ');
      const std::string flag = words.substr(0, middle);
      const std::size_t end = words.find(' ', middle + 1);
      const std::string value = words.substr(middle + 1, end - middle - 1);
      words.erase(0, end + 1);
      if (flag == "--schedule") schedule = value;
      if (flag == "--devices") request.devices = parse_devices(value);
      if (flag == "--microbatches") request.microbatches = std::stoi(value);
      if (flag == "--microbatch-size") request.microbatch_size = std::stoi(value);
    }
    const Asked changed = asked_of(request, schedule);
    CHECK(changed.rows[0].outcome->fit == Fit::yes);
  }
}

TEST_CASE("recomputing is tried where a schedule has the knob") {
  // 25 MB of stashes and weights; one stash at a time leaves 17 MB and the inputs.
  const Asked asked = asked_of(uniform_request("", "23MB"), "1f1b");
  const std::vector<std::string> found = changes(asked);
  REQUIRE_FALSE(found.empty());
  CHECK(found[0].starts_with("--schedule 1f1b:recompute=always fits: "));
}

TEST_CASE("where nothing fits, the nearest is named with what it lacks") {
  const std::vector<std::string> found = changes(asked_of(uniform_request("", "1MB"), "1f1b"));
  REQUIRE(found.size() == 1);
  CHECK(contains(found[0], "nothing tried fits; --schedule 1f1b --devices 8 lacks least, "));
  CHECK(contains(found[0], " of 1.000 MB on gpu"));
}

TEST_CASE("smaller micro-batches and more devices are tried together where neither is enough") {
  const Asked asked =
      asked_of(uniform_request(",batch=8,weights=1MB,output=8MB,stash=8MB", "12MB"), "1f1b");
  const std::vector<std::string> found = changes(asked);
  REQUIRE(found.size() == 1);
  CHECK(found[0].starts_with(
      "--schedule 1f1b --devices 8 --microbatch-size 1 --microbatches 64 fits: "));
}

TEST_CASE("nothing is advised where a row fits, nor of unknown memory") {
  CHECK(changes(asked_of(uniform_request("", "30MB"), "1f1b,gpipe")).empty());
  CHECK(changes(asked_of(uniform_request("", ""), "1f1b,gpipe")).empty());
}

TEST_CASE("the margin of a recommendation is a share with its sign") {
  CHECK(parse_within("1%", "--within") == doctest::Approx(0.01));
  CHECK(parse_within("2.5 %", "--within") == doctest::Approx(0.025));
  CHECK(parse_within("0%", "--within") == 0);
  for (const char* const text : {"1", "", "%", "-1%", "101%", "1%%", "nan%", "1 percent"}) {
    CAPTURE(text);
    CHECK_THROWS_WITH_AS(parse_within(text, "--within"), doctest::Contains("write it like 1%"),
                         UsageError);
  }
}

}  // namespace
}  // namespace stageline
