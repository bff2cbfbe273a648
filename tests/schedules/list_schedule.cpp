// Is the list scheduler's time the simulator's, does it keep its limits, and does it always finish?
#include "schedulers/parts/list_schedule.hpp"
#include "schedulers/parts/memory_trial.hpp"
#include "sim/base/index.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>

#include "sim/analysis/memory.hpp"
#include "sim/base/errors.hpp"
#include "tests/make.hpp"
#include "tests/schedules/sizes.hpp"
#include "tests/specs.hpp"
#include "tests/thorough.hpp"

namespace stageline::list_schedule_tests {
namespace {

using test::longest_span;
using test::Ran;

// Stages, messages and latencies of random size; a wire of its own between every two devices; no
// updates. The list scheduler then knows all that the simulator does.
Costs private_wires(std::mt19937& random, int stages, int devices, bool branches) {
  Costs costs = test::random_costs(random, stages, devices, false);
  for (StageCosts& stage : costs.stage) stage.update = Time{};
  costs.network = uniform_costs(1, devices, Time{}, Time{}, Time{}, Time{1}).network;
  for (Route& route : costs.network.routes) {
    if (!route.bandwidth.is_unlimited()) route.latency = Time{static_cast<int>(random() % 5)};
  }
  if (branches) {
    test::branch(random, costs);
  } else {
    for (EdgeCosts& edge : costs.edges) {
      edge.activation = Bytes{static_cast<int>(random() % 9)};
      edge.gradient = Bytes{static_cast<int>(random() % 9)};
    }
  }
  return costs;
}

struct Asked {
  std::string spec;
  int devices;
  int microbatches;
};
Asked random_list(std::mt19937& random, const std::string& limit) {
  const auto one_of = [&](std::initializer_list<const char*> words) {
    return std::string(*(words.begin() + random() % words.size()));
  };
  std::string spec =
      "list:priority=" + one_of({"backward_first", "forward_first", "critical_path"}) +
      ",split=" + one_of({"yes", "no"}) + ",limit=" + limit;
  const std::string placement = one_of({"straight", "looped", "v"});
  spec += ",placement=" + placement;
  if (placement != "straight") spec += ",chunks=" + std::to_string(1 + random() % 4);
  return {spec, 1 + static_cast<int>(random() % 5), 1 + static_cast<int>(random() % 9)};
}

Problem problem_of(const Asked& asked, const Costs& costs) {
  return test::problem_for(test::spec(asked.spec), asked.devices, costs, asked.microbatches);
}

Program scheduled(const Problem& problem, const std::string& spec) {
  return test::spec(spec).scheduler->schedule(problem);
}

Time end_of_compute(const Ran& ran) {
  Time last{};
  for (std::size_t lane = 0; lane < ran.timeline.lanes.size(); lane += lane_kinds) {
    for (const Span& span : ran.timeline.lanes[lane]) last = std::max(last, span.end);
  }
  return last;
}

TEST_CASE("without shared links a list schedule's times are the simulator's") {
  std::mt19937 random(41);
  for (int i = 0; i < 300; ++i) {
    const Asked asked = random_list(random, "none");
    CAPTURE(asked.spec);
    const int stages = test::stages_for(test::spec(asked.spec), asked.devices);
    const Costs costs = private_wires(random, stages, asked.devices, i % 2 == 0);
    const Problem problem = problem_of(asked, costs);
    ListRules rules;
    rules.split = problem.knobs.at("split") == "yes";
    // Any rule at all, and any of the other settings.
    const std::uint32_t seed = random();
    rules.rank = [seed](OpKind kind, int stage, std::uint32_t m) {
      std::mt19937 one(seed + 977U * static_cast<std::uint32_t>(kind) +
                       31U * static_cast<std::uint32_t>(stage) + m);
      return static_cast<std::int64_t>(one());
    };
    rules.fill = static_cast<int>(random() % 3) * 50;
    rules.even_idle = random() % 2 == 0;
    StashLimit limit;
    if (random() % 2 == 0) {
      limit.unit = random() % 2 == 0 ? StashLimit::Unit::bytes : StashLimit::Unit::stashes;
      for (int d = 0; d < asked.devices; ++d) {
        limit.most.push_back(smallest_limit(problem, limit.unit, true, d) +
                             static_cast<std::int64_t>(random() % 20));
      }
    }
    const ListOutcome outcome = list_schedule(problem, rules, limit);
    const Ran ran = test::run_program(
        freeze(blank_program(problem, "list", WeightRule::flush), outcome.ops), costs);
    CHECK(outcome.span == longest_span(ran));
    CHECK(outcome.makespan == end_of_compute(ran));
  }
}

TEST_CASE("a list schedule finishes under the smallest limit that works, and keeps any") {
  std::mt19937 random(42);
  for (int i = 0; i < 400; ++i) {
    Asked asked = random_list(random, "none");
    const int stages = test::stages_for(test::spec(asked.spec), asked.devices);
    const Costs costs = test::random_costs(random, stages, asked.devices, i % 3 == 0);
    const auto chunks = stages / asked.devices;
    const int limit = chunks + static_cast<int>(random() % 4);
    const std::string none = "limit=none";
    asked.spec.replace(asked.spec.find(none), none.size(), "limit=" + std::to_string(limit));
    CAPTURE(asked.spec);
    const Problem problem = problem_of(asked, costs);
    const Ran ran = test::run_program(scheduled(problem, asked.spec), costs);
    for (const int held : memory_of(ran.program, costs, ran.timeline).device_stash_peak) {
      CHECK(held <= limit);
    }
    // The same in bytes.
    ListRules rules;
    rules.rank = [](OpKind kind, int, std::uint32_t m) {
      return (kind == OpKind::forward ? 0 : 1'000'000) + std::int64_t{m};
    };
    StashLimit bytes{StashLimit::Unit::bytes, {}};
    for (int d = 0; d < asked.devices; ++d) {
      bytes.most.push_back(smallest_limit(problem, bytes.unit, true, d) +
                           static_cast<std::int64_t>(random() % 30));
    }
    const Ran tight = test::run_program(freeze(blank_program(problem, "list", WeightRule::flush),
                                               list_schedule(problem, rules, bytes).ops),
                                        costs);
    const MemoryProfile memory = memory_of(tight.program, costs, tight.timeline, Curves::all);
    for (std::size_t d = 0; d < memory.device.size(); ++d) {
      for (const MemoryPoint& point : memory.device[d].curve) {
        CHECK(nth(point.use, MemoryKind::stash).count <= bytes.most[d]);
      }
    }
  }
}

TEST_CASE("a limit too small is refused with the smallest that works") {
  const auto refusal = [](const std::string& spec, int devices) -> std::string {
    try {
      test::run_schedule(spec, devices,
                         uniform_costs(test::stages_for(test::spec(spec), devices), devices,
                                       Time{1}, Time{1}, Time{1}),
                         4);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  CHECK(refusal("list:placement=v,limit=1", 2) ==
        "limit=1 is too small for gpu0, which holds a stash of each of its stages before the first "
        "backward; the smallest that works is 2");
  CHECK(refusal("list:placement=looped,chunks=3,limit=2", 2).find("smallest that works is 3") !=
        std::string::npos);
  CHECK(refusal("list:placement=v,limit=2", 2).empty());
  CHECK(refusal("zb_auto:limit=1", 4).empty());
  CHECK(refusal("zb_auto:limit=many", 4) ==
        "zb_auto: limit is a whole number of stashes from 1, p, 2p, memory or none (it is "
        "\"many\")");
  CHECK(refusal("zb_auto:limit=0", 4).find("from 1, p, 2p") != std::string::npos);
  CHECK(refusal("list:chunks=2", 4) ==
        "list: placement=straight has 1 stage a device (chunks is 2); take chunks=1, or "
        "placement=looped or v");
  CHECK(refusal("list:chunks=two", 4) ==
        "list: chunks is auto or a whole number from 1 to 65535 (it is \"two\")");
  CHECK(refusal("list:placement=v,chunks=20000", 4) ==
        "list: 20000 chunks on 4 devices are more than 65535 stages; the most is chunks=16383");
}

TEST_CASE("a list schedule never idles while something is ready") {
  std::mt19937 random(43);
  for (int i = 0; i < 100; ++i) {
    const Asked asked = random_list(random, "none");
    CAPTURE(asked.spec);
    const int stages = test::stages_for(test::spec(asked.spec), asked.devices);
    const Costs costs = private_wires(random, stages, asked.devices, false);
    const Ran ran = test::run_program(scheduled(problem_of(asked, costs), asked.spec), costs);
    const TaskGraph& graph = ran.graph;
    for (std::size_t lane = 0; lane < graph.lanes.size(); ++lane) {
      if (graph.lanes[lane].kind != LaneKind::compute) continue;
      Time free{};
      for (std::uint32_t at = graph.lane_begin[lane]; at != graph.lane_begin[lane + 1]; ++at) {
        const std::uint32_t task = graph.lane_task[at];
        const Time start = start_of(graph, ran.times, task);
        for (std::uint32_t later = at; start > free && later != graph.lane_begin[lane + 1];
             ++later) {
          const std::uint32_t other = graph.lane_task[later];
          Time ready{};
          for (std::uint32_t n = graph.need_begin[other]; n != graph.need_begin[other + 1]; ++n) {
            ready = std::max(ready, ran.times.available[graph.need[n]]);
          }
          // Not ready either: what needs an op of this lane behind the gap, or has its turn behind
          // one.
          bool here = false;
          for (std::uint32_t before = at; before != later; ++before) {
            const Op op = graph.op[graph.lane_task[before]];
            here =
                here || op.microbatch == graph.op[other].microbatch ||
                (op.stage == graph.op[other].stage && op.microbatch < graph.op[other].microbatch);
          }
          if (graph.op[other].kind == OpKind::update || here) continue;
          CHECK(ready >= start);
        }
        free = end_of(graph, ran.times, task);
      }
    }
  }
}

TEST_CASE("limit=memory fits the devices' memory, or says that it does not") {
  std::mt19937 random(44);
  int fitted = 0;
  int refused = 0;
  int others = 0;
  for (int i = 0; i < (test::thorough ? 150 : 50); ++i) {
    const std::string spec = i % 2 == 0 ? "zb_auto:limit=memory" : "list:limit=memory";
    const int p = 2 + static_cast<int>(random() % 4);
    const Costs costs = test::random_costs(random, p, p, i % 3 == 0);
    Problem problem = test::problem_for(test::spec(spec), p, costs, 8);
    for (auto& memory : problem.memory) memory = Bytes{25 + static_cast<int>(random() % 100)};
    if (i % 5 == 0) problem.memory[0] = std::nullopt;
    try {
      const Ran ran = test::run_program(scheduled(problem, spec), costs);
      const MemoryProfile memory = memory_of(ran.program, costs, ran.timeline);
      for (std::size_t d = 0; d < problem.memory.size(); ++d) {
        if (problem.memory[d]) CHECK(memory.device[d].peak <= *problem.memory[d]);
      }
      ++fitted;
    } catch (const UsageError& error) {
      const std::string text = error.what();
      // Or, rarely, messages under way that no limit in stashes accounts for.
      const bool too_small = text.find("limit=memory: gpu") == 0 &&
                             text.find("the smallest that works is about") != std::string::npos;
      const bool messages = text.find("limit=memory: after 12 tries the messages under way") == 0;
      CHECK_MESSAGE((too_small || messages), text);
      others += messages ? 1 : 0;
      ++refused;
    }
  }
  CHECK(fitted > (test::thorough ? 30 : 8));
  CHECK(refused > (test::thorough ? 5 : 0));
  if (test::thorough) CHECK(10 * others < refused);
}

// Of a program that the search for this problem writes: whether it fits, span and makespan.
MemoryTrial tried(Problem problem, const std::string& spec) {
  problem.knobs = test::spec(spec).knobs;
  return try_memory(problem, scheduled(problem, spec));
}

TEST_CASE("where messages overfill the memory, no equal number of stashes that fits is faster") {
  std::mt19937 random(45);
  int compared = 0;
  for (int i = 0; i < (test::thorough ? 120 : 12); ++i) {
    const int p = 2 + static_cast<int>(random() % 3);
    const Costs costs = test::random_costs(random, p, p, true);
    Problem problem = test::problem_for(test::spec("zb_auto"), p, costs, 6);
    for (auto& memory : problem.memory) memory = Bytes{45 + static_cast<int>(random() % 60)};
    MemoryTrial found;
    try {
      found = tried(problem, "zb_auto:limit=memory");
    } catch (const UsageError&) {
      continue;
    }
    for (int k = 1; k <= 6; ++k) {
      const MemoryTrial fixed = tried(problem, "zb_auto:limit=" + std::to_string(k));
      if (!fixed.fits()) continue;
      ++compared;
      CHECK_MESSAGE(found.span <= fixed.span, i, " ", k);
    }
  }
  CHECK(compared > (test::thorough ? 50 : 5));
}

TEST_CASE("the search for the shortest step finds none that is longer than that for the span") {
  std::mt19937 random(46);
  for (int i = 0; i < (test::thorough ? 60 : 18); ++i) {
    const int p = 2 + static_cast<int>(random() % 3);
    const Costs costs = test::random_costs(random, p, p, i % 2 == 0);
    Problem problem = test::problem_for(test::spec("zb_auto"), p, costs, 6);
    for (auto& memory : problem.memory) memory = Bytes{90 + static_cast<int>(random() % 60)};
    const std::string limit = i % 3 == 0 ? "none" : i % 3 == 1 ? "p" : "memory";
    try {
      CHECK(tried(problem, "zb_auto:goal=makespan,limit=" + limit).makespan <=
            tried(problem, "zb_auto:goal=span,limit=" + limit).makespan);
    } catch (const UsageError&) {  // too little memory
      CHECK(limit == "memory");
    }
  }
}

}  // namespace
}  // namespace stageline::list_schedule_tests
