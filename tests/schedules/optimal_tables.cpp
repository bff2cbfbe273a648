// Proved optima of CP-SAT: is no bound above one, does zb_auto meet them, and does the search that
// goes on until it has a proof?
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include "schedulers/search/device_bound.hpp"
#include "schedulers/search/order_climb.hpp"
#include "schedulers/zb_auto.hpp"
#include "sim/base/index.hpp"
#include "tests/make.hpp"
#include "tests/specs.hpp"
#include "tests/thorough.hpp"

namespace stageline::optimal_tables_tests {
namespace {

// The rows of a table by their columns' names.
void each_row(const std::string& name,
              const std::function<void(const std::function<std::string(const char*)>&)>& visit) {
  const char* const data = std::getenv("STAGELINE_DATA");
  std::ifstream in(std::filesystem::path(data == nullptr ? "" : data) / "optimal" / name);
  if (!in) {
    MESSAGE("skipped: STAGELINE_DATA holds no optimal/" << name);
    return;
  }
  std::vector<std::string> columns;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::vector<std::string> field = test::split(line, ',');
    if (columns.empty()) {
      columns = field;
      continue;
    }
    CAPTURE(line);
    visit([&](const char* column) {
      for (std::size_t i = 0; i < columns.size(); ++i) {
        if (columns[i] == column) return field.at(i);
      }
      return std::string();
    });
  }
}

using Cell = std::function<std::string(const char*)>;

// Times by stage are apart with '/', one where they are equal.
Problem problem_of(const Cell& cell, const std::string& knobs, int chunks) {
  const int p = std::stoi(cell("p"));
  const std::string comm = cell("comm");
  Costs costs = uniform_costs(chunks * p, p, Time{1}, Time{1}, Time{1}, Time{1});
  for (Route& route : costs.network.routes) {
    if (route.is_free()) continue;
    route = Route{};
    route.latency = Time{comm.empty() ? 0 : std::stoi(comm)};
  }
  const auto of_stage = [&](const char* column, std::size_t s) {
    const std::vector<std::string> each = test::split(cell(column), '/');
    return Time{std::stoi(each.size() > s ? each[s] : each.back())};
  };
  for (std::size_t s = 0; s < costs.stage.size(); ++s) {
    StageCosts& stage = costs.stage[s];
    stage.forward = of_stage("F", s);
    stage.input_grad = of_stage("I", s);
    stage.weight_grad = of_stage("W", s);
    stage.backward = stage.input_grad + stage.weight_grad;
    stage.update = Time{};
  }
  const ScheduleSpec spec = test::spec("zb_auto:goal=" + cell("goal") + knobs);
  return test::problem_for(spec, p, costs, std::stoi(cell("m")));
}

StashLimit limit_of(const Problem& problem, const std::string& stashes) {
  return stashes == "none" ? StashLimit{} : stash_limit(problem, std::stoi(stashes));
}

// That the order keeps its limit and takes as long as is said.
void check_order(const Problem& problem, const StashLimit& limit, const SearchedOrder& found) {
  const bool for_span = problem.knobs.at("goal") == "span";
  OrderClimb climb(problem, limit, {}, for_span);
  const std::optional<StepTimes> times = climb.times(found.lists);
  // ZB-H1 and the like may hold B's, which this does not time.
  if (!times) return;
  CHECK((for_span ? times->span : times->makespan) == found.value);
}

TEST_CASE("zb_auto meets the proved optima of straight pipelines, and proves them itself") {
  int rows = 0;
  int tight = 0;
  int met = 0;
  int proved = 0;
  double worst = 1;
  std::mt19937 random(71);
  for (const char* const table : {"optimal_spans.csv", "optimal_spans_large.csv"}) {
    const bool large = std::string(table) == "optimal_spans_large.csv";
    each_row(table, [&](const Cell& cell) {
      if (!test::chosen(random, large ? 14 : 6)) return;
      const Problem problem = problem_of(cell, "", 1);
      const StashLimit limit = limit_of(problem, cell("limit_stashes"));
      const bool for_span = cell("goal") == "span";
      const Time best{std::stoi(cell(large ? "best_known" : "optimal"))};
      const auto stash = stash_bounds(problem, limit);
      const auto device = device_bounds(problem, limit);
      REQUIRE(stash.has_value());
      REQUIRE(device.has_value());
      const Time bound = (for_span ? stash->span : stash->makespan).value;
      CHECK(bound <= best);
      CHECK((for_span ? device->span : device->makespan).value <= best);
      const SearchedOrder found = search_order(problem, limit);
      check_order(problem, limit, found);
      CHECK(found.bound <= best);
      CHECK(found.value >= best);
      ++rows;
      tight += bound == best ? 1 : 0;
      met += found.value == best ? 1 : 0;
      proved += found.value == found.bound ? 1 : 0;
      worst = std::max(worst, to_seconds(found.value) / to_seconds(best));
    });
  }
  if (rows == 0) return;
  CHECK(10 * tight > 9 * rows);
  CHECK(100 * met >= 99 * rows);
  CHECK(100 * proved >= 99 * rows);
  CHECK(worst <= 1.02);
}

// best and bound are those of CP-SAT; where they differ, its best may be beaten.
TEST_CASE("zb_auto in a V meets the proved optima or comes near") {
  int rows = 0;
  int met = 0;
  double worst = 1;
  std::mt19937 random(72);
  each_row("optimal_spans_v.csv", [&](const Cell& cell) {
    if (!test::chosen(random, 6)) return;
    const Problem problem = problem_of(cell, ",placement=v", 2);
    const StashLimit limit = limit_of(problem, cell("limit_chunk_stashes"));
    const bool for_span = cell("goal") == "span";
    const Time best{std::stoi(cell("best"))};
    const auto bounds = device_bounds(problem, limit);
    REQUIRE(bounds.has_value());
    CHECK((for_span ? bounds->span : bounds->makespan).value <= best);
    const SearchedOrder found = search_order(problem, limit);
    check_order(problem, limit, found);
    CHECK(found.bound <= best);
    CHECK(found.value >= Time{std::stoi(cell("bound"))});
    ++rows;
    met += found.value <= best ? 1 : 0;
    worst = std::max(worst, to_seconds(found.value) / to_seconds(best));
  });
  if (rows == 0) return;
  CHECK(10 * met >= 9 * rows);
  CHECK(worst <= 1.02);
  if (test::thorough) CHECK(met >= 82);
}

TEST_CASE("a search that goes on proves the optimum of a V, and says no more when it is stopped") {
  int rows = 0;
  each_row("optimal_spans_v.csv", [&](const Cell& cell) {
    if (cell("proved") != "yes" || std::stoi(cell("p")) > 2 || std::stoi(cell("m")) > 4) return;
    const Problem problem = problem_of(cell, ",placement=v", 2);
    const StashLimit limit = limit_of(problem, cell("limit_chunk_stashes"));
    const Time best{std::stoi(cell("best"))};
    const SearchedOrder found =
        search_order(problem, limit, [](const BranchKnown&) { return false; });
    CHECK(found.value == best);
    CHECK(found.bound == best);
    const SearchedOrder again =
        search_order(problem, limit, [](const BranchKnown&) { return false; });
    CHECK(again.lists == found.lists);
    CHECK(again.states == found.states);
    const SearchedOrder stopped =
        search_order(problem, limit, [](const BranchKnown&) { return true; });
    CHECK(stopped.bound <= best);
    CHECK(stopped.value >= best);
    ++rows;
  });
  if (rows > 0) CHECK(rows >= 6);
}

// Messages of two ops' time wait for each other on their links: branch and bound proves nothing.
TEST_CASE("a search that branch and bound cannot end goes on with local search") {
  Costs costs = uniform_costs(4, 4, Time{10}, Time{11}, Time{9}, Time{20});
  const Problem problem = test::problem_for(test::spec("zb_auto:placement=straight"), 4, costs, 8);
  const StashLimit limit = stash_limit(problem, 4);
  int asked = 0;
  const SearchedOrder found =
      search_order(problem, limit, [&](const BranchKnown&) { return ++asked > 40; });
  const SearchedOrder before = search_order(problem, limit);
  CHECK(found.value <= before.value);
  if (found.value > found.bound) CHECK(asked > 40);
}

}  // namespace
}  // namespace stageline::optimal_tables_tests
