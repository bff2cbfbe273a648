// Advice on comparisons: one device, and ways to fit that were simulated.
#include "tools/compare/advice.hpp"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <sstream>

#include "sim/base/errors.hpp"
#include "tests/questions/ask.hpp"
#include "tests/text.hpp"
#include "tools/base/provided_files.hpp"

namespace stageline::advice_tests {
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

WaysToFit ways(const Asked& asked, int workers = 0) {
  return ways_to_fit(asked.request, asked.setting, asked.rows, workers);
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

// The speed-up of each row is over the fastest of its own devices.
TEST_CASE("rows of other numbers of unequal devices are held against one and the same device") {
  const ProvidedFiles files(ProvidedFiles::Contents{{"three.json", R"({
    "format": "stageline-cluster 1", "name": "unlike",
    "devices": [{"name": "a", "rate": 1}, {"name": "b", "rate": 1}, {"name": "c", "rate": 8}],
    "switches": ["switch"],
    "links": [{"from": "*", "to": "switch", "bandwidth": "1GB/s", "latency": "1us"}]})"}});
  SettingRequest request = uniform_request(",output=5MB", "");
  request.microbatches = 4;
  request.cluster.cluster = "three.json";
  request.devices = {2, 3};
  const Asked asked = asked_of(request, "1f1b");
  const Outcome& two = *asked.rows[0].outcome;
  const Outcome& three = *asked.rows[1].outcome;
  REQUIRE(two.speedup > 1);    // over a
  REQUIRE(three.speedup < 1);  // over c, which alone is faster than both rows
  REQUIRE(three.throughput > two.throughput);
  // 4 micro-batches of eight layers of 3 ms at rate 8.
  const std::string advice = alone(asked);
  CHECK(contains(advice, "12.00 ms a step on the fastest of them"));
  CHECK(contains(advice, "the fastest, 1f1b on 3 devices, takes " + print(three.step_time)));
  CHECK(contains(advice, fmt::format("{:.2f}× as fast", three.speedup)));
  // Where a row without c is the fastest, too.
  request.trace = "uniform:layers=8,output=10MB";
  const Asked wide = asked_of(request, "1f1b");
  REQUIRE(wide.rows[0].outcome->throughput > wide.rows[1].outcome->throughput);
  CHECK(contains(alone(wide), "12.00 ms a step on the fastest of them"));
  CHECK(contains(alone(wide), "the fastest, 1f1b on 2 devices"));
}

TEST_CASE("one device that is too small is not advised without saying so") {
  SettingRequest request = uniform_request("", "40MB");
  request.cluster.link = parse_link("1MB/s,50ms");
  CHECK(contains(alone(asked_of(request, "1f1b")),
                 "one device would be faster than all of these, but lacks memory: "));
}

// Asks the command with the flags that were printed.
test::Answer pasted(const std::string& trace, const std::string& base, const std::string& flags) {
  std::vector<std::string> words{"simulate", trace, "--quiet"};
  for (const std::string& text : {base, flags}) {
    std::istringstream stream(text);
    for (std::string word; stream >> word;) words.push_back(word);
  }
  return test::ask(words);
}

TEST_CASE("every way to fit is a command that fits, in the time that was said") {
  const Asked asked = asked_of(uniform_request(",batch=8,weights=1MB", "8MB"), "1f1b,gpipe");
  const WaysToFit found = ways(asked);
  REQUIRE(found.fitting.size() > 1);
  for (const WayToFit& way : found.fitting) {
    CAPTURE(way.flags);
    const test::Answer answer = pasted(asked.request.trace, "--memory 8MB", way.flags);
    CHECK(answer.exit_code == 0);
    CHECK(contains(answer.out, "step " + print(way.changed.verdict.step)));
    CHECK(contains(answer.out, "of 8.000 MB: fits"));
  }
  CHECK(found.sentences[0].starts_with("the cheapest change that fits: " + found.fitting[0].what));
  CHECK(found.sentences[1] == "its flags: " + found.fitting[0].flags);
}

TEST_CASE("where the order of devices is searched, figures are of the order that flags give") {
  const ProvidedFiles files(ProvidedFiles::Contents{{"unlike.json", R"({
    "format": "stageline-cluster 1", "name": "unlike",
    "devices": [{"name": "a", "rate": 0.5, "memory": "58MB"},
                {"name": "b", "rate": 1, "memory": "40MB"},
                {"name": "c", "rate": 2, "memory": "40MB"},
                {"name": "d", "rate": 3, "memory": "40MB"}],
    "switches": ["switch"],
    "links": [{"from": "*", "to": "switch", "bandwidth": "1GB/s", "latency": "1us"}]})"}});
  SettingRequest request;
  request.trace = "uniform:layers=12";
  request.cluster.cluster = "unlike.json";
  request.microbatches = 8;
  request.device_order = DeviceOrdering::search;
  const Asked asked = asked_of(request, "1f1b");
  REQUIRE(asked.rows[0].outcome);
  const double row = to_seconds(asked.rows[0].outcome->step_time);
  const WaysToFit found = ways(asked);
  REQUIRE_FALSE(found.fitting.empty());
  for (const WayToFit& way : found.fitting) {
    CAPTURE(way.flags);
    const test::Answer answer =
        pasted(request.trace, "--device-order search --cluster unlike.json", way.flags);
    CHECK(answer.exit_code == 0);
    CHECK(contains(answer.out, "step " + print(way.changed.verdict.step)));
    CHECK(way.changed.cost / way.changed.cost_of_from ==
          doctest::Approx(to_seconds(way.changed.verdict.step) / row));
  }
  CHECK(contains(found.sentences.back(), "the order that is best for each"));
}

TEST_CASE("of a language model with ranks of several devices, too") {
  SettingRequest request;
  request.trace = "model:transformer@a100,layers=8,hidden=1024,heads=16,seq=1024,batch=4";
  request.cluster.cluster = "a100x8";
  request.cluster.memory = parse_bytes("4GB");
  request.degrees.tensor = 2;
  request.microbatches = 8;
  const Asked asked = asked_of(request, "1f1b");
  REQUIRE(asked.rows[0].outcome->fit == Fit::no);
  const WaysToFit found = ways(asked);
  REQUIRE_FALSE(found.fitting.empty());
  for (const WayToFit& way : found.fitting) {
    CAPTURE(way.flags);
    const test::Answer answer = pasted(request.trace, "--cluster a100x8 --memory 4GB", way.flags);
    CHECK(answer.exit_code == 0);
    CHECK(contains(answer.out, "step " + print(way.changed.verdict.step)));
  }
}

TEST_CASE("one stage alone is recomputed where that is enough") {
  // 25 MB on the first device, 19 MB on the second.
  const Asked asked = asked_of(uniform_request("", "24MB"), "1f1b");
  const WaysToFit found = ways(asked);
  const auto recomputed = std::find_if(
      found.search.fitting.begin(), found.search.fitting.end(),
      [](const planner::ChangedCandidate& one) {
        return one.changes == std::vector<planner::ChangeKind>{planner::ChangeKind::recompute};
      });
  REQUIRE(recomputed != found.search.fitting.end());
  const std::string flags = flags_of(asked.request, recomputed->candidate);
  CAPTURE(flags);
  CHECK(flags.ends_with("@0"));
}

TEST_CASE("where nothing fits, the nearest is named with what it lacks, and what was tried") {
  const WaysToFit found = ways(asked_of(uniform_request("", "1MB"), "1f1b"));
  CHECK(found.fitting.empty());
  REQUIRE(found.nearest);
  REQUIRE(found.sentences.size() == 3);
  CHECK(found.sentences[0].starts_with("nothing tried fits; what lacks least, "));
  CHECK(contains(found.sentences[0], " of 1.000 MB on gpu"));
  CHECK(contains(found.sentences[2], "changes were simulated, single and in pairs: recompute, "));
}

TEST_CASE("a schedule whose roles are split is recomputed, too") {
  SettingRequest request = uniform_request("", "1MB");
  request.trace = "uniform:layers=3,weights=0B";
  request.devices = {5};
  const WaysToFit found = ways(asked_of(request, "layerpipe:mode=intra"));
  CHECK(found.fitting.empty());
  REQUIRE(found.nearest);
  CHECK(found.search.simulated > 0);
  REQUIRE_FALSE(found.sentences.empty());
  CHECK(contains(found.sentences.back(), "changes were simulated"));
  CHECK(contains(found.sentences.back(), "recompute"));
}

TEST_CASE("a way to fit is so much faster as the step before it is longer") {
  planner::Candidate from;
  from.shape.degrees.pipeline = 4;
  WayToFit way;
  way.changed.candidate = from;
  way.changed.cost_of_from = 1;
  const auto at = [&](double cost) {
    way.changed.cost = cost;
    return way.figures(from);
  };
  CHECK(contains(at(0.8), "(25.0 % faster)"));
  CHECK(contains(at(1.25), "(25.0 % slower)"));
  CHECK(contains(at(0.032), "(31.2× as fast)"));
  CHECK(contains(at(1.0001), "(as fast)"));
  way.changed.candidate.shape.degrees.pipeline = 8;
  CHECK(contains(at(0.8), "(on 8 devices, 20.0 % less device time)"));
}

TEST_CASE("smaller micro-batches and more devices are tried together where neither is enough") {
  SettingRequest request = uniform_request(",batch=8,weights=1MB,output=8MB,stash=8MB", "12MB");
  const Asked asked = asked_of(request, "1f1b");
  const WaysToFit found = ways(asked);
  REQUIRE_FALSE(found.fitting.empty());
  CHECK(found.fitting[0].changed.changes.size() == 2);
}

TEST_CASE("what reads standard input once is not tried") {
  Asked asked = asked_of(uniform_request("", "20MB"), "1f1b");
  asked.request.trace = "-";
  const WaysToFit found = ways(asked);
  REQUIRE(found.sentences.size() == 1);
  CHECK(contains(found.sentences[0], "standard input"));
}

TEST_CASE("nothing is advised where a row fits, nor of unknown memory") {
  CHECK(ways(asked_of(uniform_request("", "30MB"), "1f1b,gpipe")).sentences.empty());
  CHECK(ways(asked_of(uniform_request("", ""), "1f1b,gpipe")).sentences.empty());
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
}  // namespace stageline::advice_tests
