// Does a comparison rank by what is asked for?
#include "tools/compare/rank_by.hpp"

#include <doctest/doctest.h>

#include "sim/base/errors.hpp"
#include "tools/report/text/waterfall.hpp"

namespace stageline::rank_by_tests {
namespace {

struct Compared {
  std::vector<Row> rows;
  std::vector<Uncertainty> uncertain;
};

Compared compared(const std::string& schedules, const std::string& cluster = "") {
  SettingRequest request;
  request.trace = "uniform:layers=8,forward=1ms,input_grad=1ms,weight_grad=1ms";
  request.devices = {4};
  request.microbatches = 8;
  request.cluster.cluster = cluster;
  const Setting setting = read_setting(request);
  return {compare(request, setting, parse_schedules(schedules)), {}};
}

ScenarioRequest jitter(const std::string& text) {
  ScenarioRequest request;
  request.perturbation.jitter = parse_jitter(text, "--jitter");
  request.scenarios = 256;
  return request;
}

}  // namespace

TEST_CASE("what ranks is named, and a quantile needs scenarios") {
  using Measure = RankBy::Measure;
  CHECK(parse_rank_by("", "--by", false) == RankBy{});
  CHECK(parse_rank_by("", "--by", true) == RankBy{Measure::quantile, 0.95});
  CHECK(parse_rank_by("p99", "--by", true) == RankBy{Measure::quantile, 0.99});
  CHECK(parse_rank_by("mean", "--by", true) == RankBy{Measure::quantile, std::nullopt});
  CHECK(parse_rank_by("energy", "--by", true).measure == Measure::energy);
  CHECK(parse_rank_by("cost", "--by", false).measure == Measure::cost);
  for (const char* text : {"p95", "mean", "speed", "p101", "px", "Energy"}) {
    CAPTURE(text);
    CHECK_THROWS_WITH_AS(parse_rank_by(text, "--by", false), doctest::Contains("--by"), UsageError);
  }
}

TEST_CASE("rows are ranked by their quantile, and best is shared out among those that fit") {
  Compared all = compared("gpipe,1f1b,zb_h1");
  all.uncertain = uncertainty_of(all.rows, jitter("10%"));
  const auto rivals = rivals_of(all.rows, Synchrony::synchronous, all.uncertain);
  REQUIRE(rivals.size() == 3);
  set_best(all.rows, rivals, all.uncertain);
  double best = 0;
  for (const Uncertainty& row : all.uncertain) best += row.best;
  CHECK(best == doctest::Approx(1));
  const RankBy by = parse_rank_by("p99", "--by", true);
  const std::vector<Measured> measured = measured_by(by, all.rows, all.uncertain);
  const RankedRows order = ranked_by(all.rows, Synchrony::synchronous, measured, all.uncertain);
  REQUIRE(order.rows.size() == 3);
  for (std::size_t i = 1; i < order.rows.size(); ++i) {
    CHECK(*measured[order.rows[i - 1]].value <= *measured[order.rows[i]].value);
  }
  CHECK(all.rows[*order.fastest].schedule == "zb_h1");
  CHECK(order.sentence.find("p99") != std::string::npos);
  CHECK(order.sentence.find("of 256 scenarios") != std::string::npos);
}

TEST_CASE("rows that do not fit are no rivals and come last") {
  SettingRequest request;
  request.trace = "uniform8";
  request.devices = {4};
  request.microbatches = 8;
  request.cluster.memory = Bytes{14'000'000};
  const Setting setting = read_setting(request);
  const std::vector<Row> rows = compare(request, setting, parse_schedules("gpipe,1f1b"));
  std::vector<Uncertainty> uncertain = uncertainty_of(rows, jitter("5%"));
  const auto rivals = rivals_of(rows, Synchrony::synchronous, uncertain);
  const auto fitting = std::count_if(rows.begin(), rows.end(),
                                     [](const Row& row) { return row.outcome->fit != Fit::no; });
  CHECK(rivals.size() == static_cast<std::size_t>(fitting));
  REQUIRE(fitting < 2);
  const std::vector<Measured> measured =
      measured_by({RankBy::Measure::quantile, 0.5}, rows, uncertain);
  const RankedRows order = ranked_by(rows, Synchrony::synchronous, measured, uncertain);
  CHECK(rows[order.rows.back()].outcome->fit == Fit::no);
}

TEST_CASE("an idle device costs power, so the fastest schedule takes least energy here") {
  const Compared all = compared("gpipe,zb_h1", "h100x8");
  const std::vector<Measured> measured =
      measured_by({RankBy::Measure::energy, std::nullopt}, all.rows, {});
  REQUIRE(measured[0].value);
  const RankedRows order = ranked_by(all.rows, Synchrony::synchronous, measured, {});
  CHECK(all.rows[order.rows.front()].schedule == "zb_h1");
  CHECK(order.sentence.find('J') != std::string::npos);
  const Compared plain = compared("gpipe,zb_h1");
  for (const Measured& row : measured_by({RankBy::Measure::energy, std::nullopt}, plain.rows, {})) {
    CHECK(!row.value);
  }
}

TEST_CASE("the same refusal of every row is thrown") {
  Compared all = compared("gpipe,1f1b");
  ScenarioRequest request;
  request.perturbation.slow = parse_slow_items("gpu9:1.2@0.1", "--sometimes-slow");
  request.scenarios = 16;
  CHECK_THROWS_WITH_AS(uncertainty_of(all.rows, request), doctest::Contains("gpu9"), UsageError);
}

TEST_CASE("the difference of two waterfalls is named by its largest causes, which add up") {
  const Compared all = compared("gpipe,zb_h1");
  std::vector<NamedWaterfall> both;
  for (const Row& row : all.rows) {
    both.push_back({row.schedule, waterfall_of(row.asked, *row.outcome)});
  }
  const std::string sentence = report::difference_sentence(both[0], both[1]);
  CHECK(sentence == report::difference_sentence(both[1], both[0]));
  CHECK(sentence.find("zb_h1 is 22.2 % faster than gpipe: fill and drain") == 0);
  const std::string table = report::two_waterfalls_table(both[0], both[1], 0);
  CHECK(table.find("difference") != std::string::npos);
  CHECK(table.find("66.00 ms") != std::string::npos);
  const std::string same = report::difference_sentence(both[0], both[0]);
  CHECK(same == "gpipe is as fast as gpipe, and every cause is as large");
}

}  // namespace stageline::rank_by_tests
