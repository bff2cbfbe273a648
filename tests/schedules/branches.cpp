// Schedules of stages that are no chain: encoders beside each other before one language model.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "schedulers/parts/stages_behind.hpp"
#include "sim/base/index.hpp"
#include "sim/costs.hpp"
#include "sim/timeline.hpp"
#include "tests/make.hpp"

namespace stageline::test {
namespace {

Costs costs_of(int stages, const std::vector<StageEdge>& edges) {
  Costs costs = uniform_costs(stages, stages, Time{100}, Time{100}, Time{100});
  costs.edges.clear();
  for (const StageEdge& edge : edges) costs.edges.push_back({edge, Bytes{1}, Bytes{1}});
  return costs;
}

StageEdge edge_of(int from, int to) {
  return {static_cast<std::uint16_t>(from), static_cast<std::uint16_t>(to)};
}

// Every stage but the last leads to a later one.
std::vector<StageEdge> drawn_edges(int stages, std::mt19937& random) {
  std::vector<StageEdge> edges;
  for (int from = 0; from + 1 < stages; ++from) {
    const int first = from + 1 + static_cast<int>(random() % as_size(stages - from - 1));
    edges.push_back(edge_of(from, first));
    for (int to = first + 1; to < stages; ++to) {
      if (random() % 4 == 0) edges.push_back(edge_of(from, to));
    }
  }
  return edges;
}

// The most micro-batches that a stage holds the stash of, in the order of its list.
int most_held(const Program& program, int stage) {
  int held = 0;
  int most = 0;
  for (const Op op : nth(program.ops, stage)) {
    if (op.kind == OpKind::forward) most = std::max(most, ++held);
    if (op.kind == OpKind::backward || op.kind == OpKind::weight_grad) --held;
  }
  return most;
}

Program ordered(const Program& blank, const std::vector<int>& ahead) {
  Program program = blank;
  for (std::vector<Op>& list : program.ops) list.clear();
  for (int s = 0; s < program.stages(); ++s) {
    const int m = program.microbatches;
    for (int i = 0; i < m + std::min(nth(ahead, s), m); ++i) {
      const auto add = [&](OpKind kind, int at) {
        nth(program.ops, s).push_back(op_of(kind, s, static_cast<std::uint32_t>(at)));
      };
      if (i < m) add(OpKind::forward, i);
      if (i >= std::min(nth(ahead, s), m)) add(OpKind::backward, i - std::min(nth(ahead, s), m));
    }
  }
  return program;
}

// By brute force over all numbers of forwards ahead, of which those that fall along no edge cannot
// run: the shortest step, and the fewest stashes of all stages together that reach it.
std::pair<Time, int> fewest_stashes(const Program& blank, const Costs& costs) {
  const int stages = blank.stages();
  std::vector<int> ahead(as_size(stages));
  std::pair best(Time::max(), 0);
  while (true) {
    const bool runs = std::all_of(blank.edges.begin(), blank.edges.end(), [&](StageEdge edge) {
      return ahead[edge.from] >= ahead[edge.to];
    });
    if (runs) {
      int stashes = 0;
      for (const int count : ahead) stashes += count + 1;
      const Time step = makespan(run_program(ordered(blank, ahead), costs).timeline);
      best = std::min(best, std::pair(step, stashes));
    }
    int s = 0;
    while (s < stages && ++nth(ahead, s) == stages) nth(ahead, s++) = 0;
    if (s == stages) return best;
  }
}

}  // namespace

TEST_CASE("the stages behind a stage are those on its longest way to an end") {
  CHECK(stages_behind(chain_edges(4), 4) == std::vector{3, 2, 1, 0});
  const std::vector<StageEdge> encoders{{0, 2}, {1, 2}, {2, 3}};
  CHECK(stages_behind(encoders, 4) == std::vector{2, 2, 1, 0});
  const std::vector<StageEdge> skips{{0, 1}, {0, 3}, {1, 2}, {2, 3}};
  CHECK(stages_behind(skips, 4) == std::vector{3, 2, 1, 0});
}

TEST_CASE("encoders beside each other hold the stashes of their depth") {
  const std::vector<StageEdge> edges{{0, 2}, {1, 2}, {2, 3}};
  const struct {
    const char* schedule;
    std::vector<int> held;
  } each[] = {
      {"1f1b", {3, 3, 2, 1}},       {"dapple", {3, 3, 2, 1}},    {"dapple:policy=B", {5, 5, 3, 1}},
      {"eager_1f1b", {5, 5, 3, 1}}, {"pipedream", {3, 3, 2, 1}}, {"pipedream_2bw", {3, 3, 2, 1}},
      {"zb_h1", {3, 3, 3, 3}},      {"zb_h2", {5, 5, 5, 5}}};
  for (const auto& one : each) {
    const std::string schedule = one.schedule;
    CAPTURE(schedule);
    const Ran ran = run_schedule(schedule, 4, costs_of(4, edges), 8);
    for (int s = 0; s < 4; ++s) CHECK(most_held(ran.program, s) == nth(one.held, s));
  }
  CHECK(makespan(run_schedule("1f1b", 4, costs_of(4, edges), 8).timeline) == Time{300 * (8 + 2)});
}

TEST_CASE("1F1B on branches takes the shortest step, with the fewest stashes of all such orders") {
  std::mt19937 random(52);
  for (int trial = 0; trial < 24; ++trial) {
    const int stages = 2 + trial % 3;
    const Costs costs = costs_of(stages, drawn_edges(stages, random));
    const Ran ran = run_schedule("1f1b", stages, costs, 6);
    int stashes = 0;
    for (int s = 0; s < stages; ++s) stashes += most_held(ran.program, s);
    CAPTURE(trial);
    CHECK(std::pair(makespan(ran.timeline), stashes) == fewest_stashes(ran.program, costs));
  }
}

TEST_CASE("orders ahead by the depth of their stages run on any stage graph") {
  std::mt19937 random(4);
  for (int trial = 0; trial < 200; ++trial) {
    const int stages = 2 + trial % 7;
    const Costs costs = costs_of(stages, drawn_edges(stages, random));
    for (const char* schedule : {"1f1b", "dapple", "dapple:policy=B", "eager_1f1b", "pipedream",
                                 "pipedream_2bw", "zb_h1", "zb_h2"}) {
      CAPTURE(schedule);
      CAPTURE(trial);
      CHECK_NOTHROW(run_schedule(schedule, stages, costs, 9));
    }
  }
}

}  // namespace stageline::test
