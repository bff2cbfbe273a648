// Is an order that is timed again after a change timed as if for the first time?
#include "schedulers/search/order_times.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "sim/base/index.hpp"
#include "tests/make.hpp"
#include "tests/specs.hpp"

namespace stageline::order_times_tests {
namespace {

using Node = OrderTimes::Node;

// An order that finishes, with I and W apart.
StepLists some_order(const Problem& problem) {
  ListRules rules;
  rules.rank = [](OpKind kind, int stage, std::uint32_t m) {
    return (kind == OpKind::forward ? 1 : 0) + 2 * std::int64_t{m} - stage;
  };
  return list_schedule(problem, rules, {}).ops;
}

// By device, with one op of a random list elsewhere, and sometimes a second.
std::size_t move_some(std::mt19937& random, std::vector<std::vector<Node>>& order) {
  const std::size_t device = random() % order.size();
  std::vector<Node>& list = order[device];
  for (int moves = random() % 4 == 0 ? 2 : 1; moves > 0; --moves) {
    const auto at = [&](std::size_t i) { return list.begin() + static_cast<std::ptrdiff_t>(i); };
    const std::size_t from = random() % list.size();
    const std::size_t to =
        random() % 3 == 0 ? random() % list.size() : std::min(from + random() % 4, list.size() - 1);
    if (to < from) std::rotate(at(to), at(from), at(from + 1));
    if (from < to) std::rotate(at(from), at(from + 1), at(to + 1));
  }
  return device;
}

void check_equal(const OrderTimes& times, const OrderTimes& other) {
  CHECK(times.order() == other.order());
  CHECK(times.value() == other.value());
  for (Node node = 0; node < times.nodes(); ++node) {
    REQUIRE(times.start_of(node) == other.start_of(node));
    REQUIRE(times.position_of(node) == other.position_of(node));
    REQUIRE(times.cause_of(node) == other.cause_of(node));
  }
}

TEST_CASE("an order that is changed op by op is timed as if anew") {
  std::mt19937 random(19);
  int refused = 0;
  int late = 0;
  int undone = 0;
  for (int i = 0; i < 60; ++i) {
    const int p = 1 + static_cast<int>(random() % 4);
    const int m = 1 + static_cast<int>(random() % 9);
    const ScheduleSpec spec =
        test::spec("list:placement=" + std::string(i % 2 == 0 ? "v" : "looped"));
    Costs costs = test::random_costs(random, 2 * p, p, i % 4 != 0);
    const bool branched = i % 5 == 4 && p > 1;  // an edge that skips a stage
    if (branched) costs.edges.push_back({{0, 2}, Bytes{3}, Bytes{4}});
    const Problem problem = test::problem_for(spec, p, costs, m);
    const bool for_span = random() % 2 == 0;
    OrderTimes times(problem, for_span);
    OrderTimes fresh(problem, for_span);
    times.read(some_order(problem));
    REQUIRE(times.run());
    for (int change = 0; change < 60; ++change) {
      times.restore();
      const OrderTimes::NodeLists before = times.order();
      const StepLists ops = times.written(before);
      OrderTimes::NodeLists changed = before;
      const std::size_t device = move_some(random, changed);
      fresh.read(times.written(changed));
      const bool finishes = fresh.run();
      const Time most = random() % 2 == 0 ? Time::max() : times.value().longest;
      if (times.change(device, changed[device], most)) {
        REQUIRE(finishes);
        check_equal(times, fresh);
        if (random() % 3 > 0) continue;
        times.undo();
        ++undone;
      } else if (finishes) {
        CHECK(fresh.value().longest > most);
        ++late;
      } else {
        ++refused;
      }
      times.restore();
      fresh.read(ops);
      REQUIRE(fresh.run());
      check_equal(times, fresh);
    }
  }
  CHECK(refused > 50);
  CHECK(late > 50);
  CHECK(undone > 50);
}

}  // namespace
}  // namespace stageline::order_times_tests
