// Are several recomputations rows side by side, each of which names its own?
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "schedulers/scheduler.hpp"
#include "tools/base/json.hpp"
#include "tools/compare/comparison.hpp"
#include "tools/inputs/setting.hpp"
#include "tools/inputs/settings.hpp"
#include "tools/report/json/outcome.hpp"
#include "tools/report/text/comparison.hpp"

namespace stageline::recomputations_tests {
namespace {

SettingRequest request_of(const std::vector<std::string>& recomputations) {
  SettingRequest request;
  request.trace = "uniform:layers=8,stash=2MB";
  request.devices = {2};
  request.microbatches = 4;
  find_setting("recompute")->set({"--recompute", recomputations, {}, 0, false}, request);
  return request;
}

std::vector<Row> rows_of(const std::vector<std::string>& recomputations) {
  const SettingRequest request = request_of(recomputations);
  return compare(request, read_setting(request), parse_schedules("1f1b,gpipe"), 1);
}

}  // namespace

TEST_CASE("several recomputations are rows of each schedule, those named twice once") {
  const std::vector<Row> rows = rows_of({"none", "full", "block:1", "full"});
  REQUIRE(rows.size() == 6);
  const RowDifferences differences = differences_of(rows);
  CHECK(differences.recomputations);
  CHECK_FALSE(differences.cuts);
  CHECK(row_name(rows[0], differences) == "1f1b (none)");
  CHECK(row_name(rows[1], differences) == "1f1b (full)");
  CHECK(row_name(rows[5], differences) == "gpipe (block:1)");
  CHECK(rows[0].outcome->step_time < rows[2].outcome->step_time);
  CHECK(rows[2].outcome->step_time < rows[1].outcome->step_time);
  const RankedRows order = ranked(rows, Synchrony::synchronous);
  report::ComparisonView view;
  view.recomputations = true;
  CHECK(report::comparison_table(rows, order, view).find("gpipe (block:1)") != std::string::npos);
  CHECK(order.sentence.find(" (none)") != std::string::npos);
  const std::string json = report::rows_json(read_setting(request_of({"none"})), rows, {});
  CHECK(json.find("\"recomputation\": \"block:1\"") != std::string::npos);
}

TEST_CASE("one recomputation is not named by its rows") {
  const std::vector<Row> rows = rows_of({"full"});
  REQUIRE(rows.size() == 2);
  CHECK_FALSE(differences_of(rows).any());
  CHECK(row_name(rows[0], differences_of(rows)) == "1f1b");
  const std::string json = report::rows_json(read_setting(request_of({"full"})), rows, {});
  CHECK(json.find("\"recomputation\"") == std::string::npos);
}

}  // namespace stageline::recomputations_tests
