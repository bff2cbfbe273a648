// DAPPLE (Fan et al. 2020, arXiv 2007.01045), early backward scheduling: device i of p does K_i
// forwards before its first backward, then one backward and one forward in turn. Policy A has
// K_i = min(p-i, D), policy B, where messages take as long as computing, K_i = min(2(p-i)-1, D). D
// is how many micro-batches the device's memory holds the activations of: what weights, gradients,
// optimizer state, workspace and one message of each kind (where they take no time: one of each
// that waits there) leave, over the stash of one; all m where the memory is not known, and 1 where
// not even one fits. As D may differ between devices, K_i is never more than K_(i-1), or that of a
// stage whose output it reads: the device would wait for forwards that nobody does. Over a slow
// link more messages wait: where the peak of the simulated run exceeds a device's memory, D of all
// devices is the largest that is found to fit, by bisection; where D = 1 does not fit either, it
// stays as it is.
//
// figure: stages 4, microbatches 8, F 1, I 1, W 1
//   0 |0123      aa4bb5cc6dd7ee ff gg hh
//   1 | 012    aa3bb4cc5dd6ee7ff gg hh
//   2 |  01  aa2bb3cc4dd5ee6ff7gg hh
//   3 |   0aa1bb2cc3dd4ee5ff6gg7hh
//
// figure: stages 4, microbatches 8, F 1, I 1, W 1, policy B
//   0 |0123456   aa7bb cc dd ee ff gg hh
//   1 | 01234  aa5bb6cc7dd ee ff gg hh
//   2 |  012 aa3bb4cc5dd6ee7ff gg hh
//   3 |   0aa1bb2cc3dd4ee5ff6gg7hh
#include <algorithm>
#include <utility>
#include <vector>

#include "schedulers/parts/in_turn.hpp"
#include "schedulers/parts/memory_trial.hpp"
#include "schedulers/parts/stages_behind.hpp"
#include "schedulers/scheduler.hpp"
#include "sim/base/index.hpp"

namespace stageline::dapple_scheduler {
namespace {

constexpr Knob knobs[] = {
    {"policy", "A|B", "A", "forwards to warm up, within memory: p-i on device i, or 2(p-i)-1"},
};

Placement place(int devices, const Knobs&) { return straight_placement(devices); }

// D of a stage's device.
int depth(const Problem& problem, int s) {
  const auto at = as_size(s);
  const auto& memory = problem.memory[at];
  const StageCosts& stage = problem.costs.stage[at];
  if (!memory || stage.stash() == Bytes{}) return problem.microbatches;
  Bytes fixed = stage.weights + stage.gradients + stage.optimizer_state +
                std::max(stage.workspace, stage.backward_workspace.value_or(stage.workspace));
  const Network& network = problem.costs.network;
  for (const EdgeCosts& edge : problem.costs.edges) {
    if (edge.edge.from != s && edge.edge.to != s) continue;
    const bool free = network.between(edge.edge.from, edge.edge.to).is_free() &&
                      network.between(edge.edge.to, edge.edge.from).is_free();
    const bool comes_forward = edge.edge.to == s;
    if (!free || comes_forward) fixed += edge.activation;
    if (!free || !comes_forward) fixed += edge.gradient;
  }
  if (fixed >= *memory) return 1;
  const std::int64_t stashes = (*memory - fixed).count / stage.stash().count;
  return static_cast<int>(std::clamp<std::int64_t>(stashes, 1, problem.microbatches));
}

// K by device.
std::vector<int> warm_ups(const Problem& problem, const std::vector<StageEdge>& edges) {
  const bool twice = problem.knobs.at("policy") == "B";
  const int stages = problem.placement.stages();
  const std::vector<int> behind = stages_behind(edges, stages);
  std::vector<int> counts;
  for (int s = 0; s < stages; ++s) {
    const int ahead = nth(behind, s) * (twice ? 2 : 1) + 1;
    int count = std::min({problem.microbatches, ahead, depth(problem, s)});
    for (const StageEdge& edge : edges) {
      if (edge.to == s) count = std::min(count, nth(counts, edge.from));
    }
    counts.push_back(count);
  }
  return counts;
}

Program schedule(const Problem& problem) {
  const Program blank = blank_program(problem, "dapple", WeightRule::flush);
  const std::vector<int> counts = warm_ups(problem, blank.edges);
  const auto with_depth = [&](int most) {
    Program program = blank;
    for (int s = 0; s < program.stages(); ++s) {
      warm_up_then_in_turn(program, s, std::min(nth(counts, s), most) - 1);
    }
    return program;
  };
  const auto fits = [&](const Program& program) { return try_memory(problem, program).fits(); };
  const bool is_limited = std::any_of(problem.memory.begin(), problem.memory.end(),
                                      [](const auto& memory) { return memory.has_value(); });
  int exceeds = *std::max_element(counts.begin(), counts.end());
  Program first = with_depth(exceeds);
  if (!is_limited || exceeds == 1 || fits(first)) return first;
  Program best = with_depth(1);
  if (!fits(best)) return first;
  for (int least = 1; exceeds - least > 1;) {
    const int depth = least + (exceeds - least) / 2;
    Program program = with_depth(depth);
    if (fits(program)) {
      best = std::move(program);
      least = depth;
    } else {
      exceeds = depth;
    }
  }
  return best;
}

}  // namespace

extern const Scheduler entry;
const Scheduler entry = {
    "dapple",
    "1F1B with as many forwards ahead as memory allows",
    "Fan et al. 2020 (DAPPLE), arXiv 2007.01045",
    Synchrony::synchronous,
    knobs,
    place,
    schedule,
};

}  // namespace stageline::dapple_scheduler
