// Eager 1F1B (Zhuang et al. 2022, "On Optimizing the Communication of Model Parallelism", arXiv
// 2211.05322, in Alpa): 1F1B with twice the warm-up, 2(p-1-r) forwards. It takes as long as 1F1B
// where messages are free; where they are not, the forwards ahead hide their way there and back.
// For that a device holds up to 2(p-r)-1 micro-batches.
//
// figure: stages 4, microbatches 8, F 1, I 1, W 1
//   0 |0123456   aa7bb cc dd ee ff gg hh
//   1 | 01234  aa5bb6cc7dd ee ff gg hh
//   2 |  012 aa3bb4cc5dd6ee7ff gg hh
//   3 |   0aa1bb2cc3dd4ee5ff6gg7hh
#include <vector>

#include "schedulers/parts/in_turn.hpp"
#include "schedulers/parts/stages_behind.hpp"
#include "schedulers/scheduler.hpp"
#include "sim/base/index.hpp"

namespace stageline::eager_1f1b_scheduler {
namespace {

Placement place(int devices, const Knobs&) { return straight_placement(devices); }

Program schedule(const Problem& problem) {
  Program program = blank_program(problem, "eager_1f1b", WeightRule::flush);
  const std::vector<int> behind = stages_behind(program.edges, program.stages());
  for (int s = 0; s < program.stages(); ++s) {
    warm_up_then_in_turn(program, s, 2 * nth(behind, s));
  }
  return program;
}

}  // namespace

extern const Scheduler entry;
const Scheduler entry = {
    "eager_1f1b",
    "1F1B with twice the warm-up, which hides messages",
    "Zhuang et al. 2022 (Alpa), arXiv 2211.05322",
    Synchrony::synchronous,
    {},
    place,
    schedule,
};

}  // namespace stageline::eager_1f1b_scheduler
