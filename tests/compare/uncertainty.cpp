// Schedules under the same scenarios: rankings, failures, and files of it.
#include "tools/compare/uncertainty.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <random>

#include "sim/base/errors.hpp"
#include "tools/report/text/uncertainty.hpp"

namespace stageline::uncertainty_tests {
namespace {

// Work that lasts over all time, by playing failures: seeded.
double played(const Failures& failures, double interval) {
  std::mt19937_64 random(11);
  std::exponential_distribution<double> next(1 / failures.between);
  double time = 0;
  double work = 0;
  double failure = next(random);
  constexpr int segments = 200'000;
  for (int done = 0; done < segments;) {
    if (time + interval + failures.checkpoint <= failure) {
      time += interval + failures.checkpoint;
      work += interval;
      ++done;
      continue;
    }
    time = failure;
    failure = time + next(random);
    // A failure during the restart begins it anew.
    while (time + failures.restart > failure) {
      time = failure;
      failure = time + next(random);
    }
    time += failures.restart;
  }
  return work / time;
}

SettingRequest on_replicas(int data) {
  SettingRequest request;
  request.trace = "model:gpt@h100,layers=8,hidden=1024,heads=16,vocab=51200,seq=1024,batch=1";
  request.cluster.cluster = "h100x8*2";
  request.degrees.tensor = 2;
  request.degrees.data = data;
  request.microbatches = 4;
  return request;
}

}  // namespace

TEST_CASE("the useful share of the time is what playing failures gives") {
  for (const Failures& failures :
       {Failures{8 * 3600, 60, 0, 1800}, Failures{3600, 120, 300, 600}, Failures{600, 30, 60, 0}}) {
    const UsefulShare share = useful_share(failures);
    CHECK(share.useful == doctest::Approx(played(failures, share.interval)).epsilon(0.01));
  }
}

TEST_CASE("Daly's interval is nearly the best that a search finds, and Young's near it") {
  for (const double checkpoint : {10.0, 60.0, 300.0}) {
    Failures failures{4 * 3600, checkpoint, 120, 0};
    const UsefulShare daly = useful_share(failures);
    double best = 0;
    for (double interval = 30; interval < 20000; interval *= 1.01) {
      failures.interval = interval;
      best = std::max(best, useful_share(failures).useful);
    }
    CHECK(daly.useful <= best * (1 + 1e-4));
    CHECK(daly.useful >= best * (1 - 1e-4));
    CHECK(daly.young == doctest::Approx(std::sqrt(2 * checkpoint * 4 * 3600)));
    CHECK(daly.daly < daly.young);
  }
}

TEST_CASE("a quantile is asked for by its percentile") {
  CHECK(*parse_quantile("p95", "--by") == doctest::Approx(0.95));
  CHECK(*parse_quantile("p99.9", "--by") == doctest::Approx(0.999));
  CHECK(!parse_quantile("mean", "--by"));
  for (const char* text : {"", "95", "p101", "p-1", "px"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_quantile(text, "--by"), UsageError);
  }
}

TEST_CASE("all schedules of a question meet the same scenarios") {
  SettingRequest request;
  request.trace = "uniform8";
  request.devices = {4};
  request.microbatches = 8;
  const Setting setting = read_setting(request);
  ScenarioRequest scenarios;
  scenarios.perturbation.jitter = parse_jitter("10%", "--jitter");
  scenarios.scenarios = 512;
  const std::vector<UncertainRow> rows =
      under_uncertainty(request, setting, parse_schedules("gpipe,1f1b,zb_h1"), scenarios);
  REQUIRE(rows.size() == 3);
  double best = 0;
  for (const UncertainRow& row : rows) {
    REQUIRE(row.steps);
    CHECK(row.steps->step.size() == 512);
    CHECK(row.steps->nominal == row.row.outcome->step_time);
    CHECK(row.loss() > 0);  // jitter of mean 1 makes the longest of several paths longer
    CHECK(row.distribution.p5 < row.distribution.p50);
    CHECK(row.distribution.p50 < row.distribution.p95);
    CHECK(row.distribution.p95 < row.distribution.p99);
    best += row.best;
  }
  CHECK(best == doctest::Approx(1));
  const std::vector<std::size_t> order = ranked_by_quantile(rows, 0.95);
  REQUIRE(order.size() == 3);
  CHECK(rows[order.front()].row.schedule == "zb_h1");
  // A schedule alone meets the scenarios that it meets beside others.
  const std::vector<UncertainRow> alone =
      under_uncertainty(request, setting, parse_schedules("1f1b"), scenarios);
  CHECK(alone.front().steps->step == rows[1].steps->step);
}

TEST_CASE("what does not fit is behind all that does, and wins in no scenario") {
  SettingRequest request;
  request.trace = "resnet50-cpu";
  request.devices = {4};
  request.microbatches = 8;
  request.cluster.memory = Bytes{1'300'000'000};
  ScenarioRequest scenarios;
  scenarios.perturbation.jitter = parse_jitter("5%", "--jitter");
  scenarios.scenarios = 64;
  const std::vector<UncertainRow> rows =
      under_uncertainty(request, read_setting(request), parse_schedules("zb_h1,1f1b"), scenarios);
  CHECK(!rows[0].fits());
  CHECK(rows[0].distribution.p95 < rows[1].distribution.p95);
  CHECK(rows[0].best == 0);
  CHECK(rows[1].best == 1);
  const std::vector<std::size_t> order = ranked_by_quantile(rows, 0.95);
  CHECK(order == std::vector<std::size_t>{1, 0});
  CHECK(report::uncertainty_sentence(rows, order, 0.95).starts_with("1f1b: least by p95"));
  const std::string table = report::uncertainty_table(rows, order, 0);
  CHECK(table.find("fits") != std::string::npos);
  CHECK(table.find("NO") != std::string::npos);
  // Of one, what is asked for.
  const std::vector<UncertainRow> alone =
      under_uncertainty(request, read_setting(request), parse_schedules("zb_h1"), scenarios);
  CHECK(report::uncertainty_sentence(alone, {0}, 0.5)
            .starts_with("zb_h1, which does not fit: 50 % of the steps take at most "));
  CHECK(report::uncertainty_sentence(alone, {0}, std::nullopt).find(": a step takes ") !=
        std::string::npos);
}

TEST_CASE("a loss that rounds to nothing has no sign") {
  SettingRequest request;
  request.trace = "uniform:layers=4,forward=1ms";
  request.devices = {2};
  ScenarioRequest scenarios;
  scenarios.perturbation.jitter = parse_jitter("5%", "--jitter");
  scenarios.scenarios = 8;
  std::vector<UncertainRow> rows =
      under_uncertainty(request, read_setting(request), parse_schedules("1f1b"), scenarios);
  // A picosecond less than the nominal step.
  rows[0].steps->step.assign(8, rows[0].steps->nominal - Time{1});
  rows[0].distribution = distribution_of(rows[0].steps->step);
  CHECK(
      report::uncertainty_sentence(rows, {0}, 0.95).ends_with(", 0.0 % against the nominal step"));
  CHECK(report::uncertainty_table(rows, {0}, 0).find("-0.0 %") == std::string::npos);
}

TEST_CASE("replicas draw their own times, and a step waits for the slowest") {
  SettingRequest request = on_replicas(4);
  ScenarioRequest scenarios;
  scenarios.perturbation.jitter = parse_jitter("20%", "--jitter");
  scenarios.scenarios = 64;
  const auto loss = [&](auto&& set) {
    SettingRequest asked = request;
    set(asked);
    return under_uncertainty(asked, read_setting(asked), parse_schedules("1f1b"), scenarios)
        .front()
        .loss();
  };
  const double alike = loss([](SettingRequest&) {});
  const double vary = loss([](SettingRequest& asked) { asked.replicas_vary = true; });
  CHECK(vary == loss([](SettingRequest& asked) { asked.all_pipelines = true; }));
  CHECK(vary > alike + 0.03);
  request.replicas_vary = true;
  const std::vector<std::string> said = notes(read_setting(request));
  CHECK(
      std::count(
          said.begin(), said.end(),
          "all 4 data-parallel replicas are simulated: each draws its own times, and "
          "reductions wait for the slowest; so does each GPU of a pipeline rank, whose ops wait for the slowest") ==
      1);
  // Of many ranks one pipeline stands for all, and that is said.
  request.cluster.cluster = "h100x8*20";
  request.degrees.data = 40;
  const Setting many = read_setting(request);
  CHECK(many.ranked.begin()->second->replicas() == 1);
  const std::vector<std::string> of_many = notes(many);
  CHECK(std::any_of(of_many.begin(), of_many.end(), [](const std::string& note) {
    return note.ends_with("no step waits for the slowest: --all-pipelines draws each");
  }));
}

TEST_CASE("a slow device is called by its name, its machine's or its pipeline rank's") {
  SettingRequest request = on_replicas(2);
  request.replicas_vary = true;
  const Setting setting = read_setting(request);
  const auto mean = [&](const char* items) {
    ScenarioRequest scenarios;
    scenarios.perturbation.slow = parse_slow_items(items, "--slow");
    scenarios.scenarios = 16;
    return under_uncertainty(request, setting, parse_schedules("1f1b"), scenarios)
        .front()
        .distribution.mean;
  };
  // Machine m1 has the second halves of both pipelines, or the second pipeline: in either case some
  // ranks, among them that of its first GPU.
  const Time rank = mean("m1.gpu0:2");
  CHECK(rank > mean("m1.gpu0:1"));
  CHECK(mean("m1.host0:2") >= rank);
  CHECK(mean("m1.*:2") == mean("m1.host0:2"));
  CHECK(mean("pp0:2") > mean("pp0:1"));
  CHECK(mean("dp0.pp0:2") > mean("dp0.pp0:1"));
  CHECK_THROWS_WITH_AS(mean("m9.gpu0:2"), doctest::Contains("nothing is called 'm9.gpu0'"),
                       UsageError);
}

TEST_CASE("a run that is stopped at once has rows without steps") {
  SettingRequest request;
  request.trace = "uniform8";
  const Setting setting = read_setting(request);
  const std::atomic<bool> stop{true};
  ScenarioRequest scenarios;
  scenarios.stop = &stop;
  const std::vector<UncertainRow> rows =
      under_uncertainty(request, setting, parse_schedules("1f1b,gpipe"), scenarios);
  REQUIRE(rows.size() == 2);
  for (const UncertainRow& row : rows) {
    CHECK(!row.steps);
    CHECK(row.row.why_not == "interrupted");
  }
  CHECK(ranked_by_quantile(rows, 0.95).empty());
}

TEST_CASE("no scenarios and too many are refused") {
  SettingRequest request;
  request.trace = "uniform8";
  const Setting setting = read_setting(request);
  ScenarioRequest scenarios;
  for (const std::int64_t count :
       {std::int64_t{0}, std::int64_t{-5}, std::int64_t{1'000'000'000}}) {
    scenarios.scenarios = count;
    CHECK_THROWS_WITH_AS(under_uncertainty(request, setting, parse_schedules("1f1b"), scenarios),
                         doctest::Contains("scenarios"), UsageError);
  }
}

}  // namespace stageline::uncertainty_tests
