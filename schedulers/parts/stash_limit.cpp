#include "schedulers/parts/stash_limit.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "sim/analysis/memory.hpp"
#include "sim/errors.hpp"
#include "sim/index.hpp"
#include "sim/interference.hpp"
#include "sim/lower/passes.hpp"
#include "sim/numbers.hpp"

namespace stageline {
namespace {

constexpr int most_tries = 12;

// Beside stashes and messages.
Bytes standing(const Problem& problem, int device) {
  Bytes sum{};
  Bytes workspace{};
  for (std::size_t s = 0; s < problem.placement.stage.size(); ++s) {
    if (problem.placement.stage[s].replicas[0] != device) continue;
    const StageCosts& costs = problem.costs.stage[s];
    sum += costs.weights + costs.gradients + costs.optimizer_state;
    workspace = std::max({workspace, costs.workspace, costs.backward_workspace.value_or(Bytes{}),
                          costs.input_grad_workspace.value_or(Bytes{}),
                          costs.weight_grad_workspace.value_or(Bytes{})});
  }
  return sum + workspace;
}

void check_room(const Problem& problem, const StashLimit& limit, bool split, int device) {
  const auto d = as_size(device);
  const std::int64_t lacks = smallest_limit(problem, limit.unit, split, device) - limit.most[d];
  if (lacks <= 0) return;
  const Bytes memory = problem.memory[d].value_or(Bytes{});
  throw UsageError(fmt::format(
      "limit=memory: {} has {}, too little for its weights, gradients, optimizer state, workspace "
      "and messages beside one micro-batch's stash; the smallest that works is about {}",
      problem.devices[d], print(memory), print(memory + Bytes{lacks})));
}

Program by_memory(const Problem& problem, bool split,
                  const std::function<Program(const StashLimit&)>& make) {
  StashLimit limit{StashLimit::Unit::bytes, {}};
  const auto known = [&](std::size_t d) {
    return d < problem.memory.size() && problem.memory[d].has_value();
  };
  for (std::size_t d = 0; d < problem.devices.size(); ++d) {
    limit.most.push_back(-1);
    if (!known(d)) continue;
    limit.most[d] = (*problem.memory[d] - standing(problem, static_cast<int>(d))).count;
    if (limit.most[d] < 0) check_room(problem, limit, split, static_cast<int>(d));
  }
  if (std::all_of(limit.most.begin(), limit.most.end(), [](auto most) { return most < 0; })) {
    return make({});
  }
  for (int i = 0; i < most_tries; ++i) {
    for (std::size_t d = 0; d < limit.most.size(); ++d) {
      if (known(d)) check_room(problem, limit, split, static_cast<int>(d));
    }
    Program program = make(limit);
    const Program whole = complete(program, problem.costs);
    TaskGraph graph = compile(whole, problem.costs);
    const TaskTimes times = simulate_together(graph, {});
    const MemoryProfile memory = memory_of(whole, problem.costs, timeline_of(whole, graph, times));
    bool fits = true;
    for (std::size_t d = 0; d < limit.most.size(); ++d) {
      if (!known(d) || memory.device[d].peak <= *problem.memory[d]) continue;
      fits = false;
      const Bytes over = memory.device[d].peak - *problem.memory[d];
      limit.most[d] -= over.count;
      if (limit.most[d] < 0) check_room(problem, limit, split, static_cast<int>(d));
    }
    if (fits) return program;
  }
  // Not seen: every try takes at least a byte away, and mostly all that was too much.
  throw UsageError(
      fmt::format("limit=memory: after {} tries the messages under way still take more than the "
                  "devices' memory "
                  "has beside the stashes; give a limit in stashes, such as limit=p",
                  most_tries));
}

}  // namespace

LimitChoice read_limit(const std::string& schedule, const std::string& text, int devices) {
  if (text == "none") return {};
  if (text == "p") return {LimitChoice::Kind::stashes, devices};
  if (text == "2p") return {LimitChoice::Kind::stashes, 2 * std::int64_t{devices}};
  if (text == "memory") return {LimitChoice::Kind::memory, 0};
  const int stashes = parse_number<int>(text).value_or(0);
  if (stashes >= 1) return {LimitChoice::Kind::stashes, stashes};
  throw UsageError(fmt::format(
      "{}: limit is a whole number of stashes from 1, p, 2p, memory or none (it is \"{}\")",
      schedule, text));
}

Program under_limit(const Problem& problem, const LimitChoice& choice, bool split,
                    const std::function<Program(const StashLimit&)>& make) {
  switch (choice.kind) {
    case LimitChoice::Kind::none:
      return make({});
    case LimitChoice::Kind::stashes:
      return make(stash_limit(problem, choice.stashes));
    case LimitChoice::Kind::memory:
      return by_memory(problem, split, make);
  }
  return {};
}

}  // namespace stageline
