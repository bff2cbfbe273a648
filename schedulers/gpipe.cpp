// GPipe (Huang et al. 2019, arXiv 1811.06965): all forwards of a step, then all backwards, in the
// order of the forwards (or reversed, as torchgpipe does). With recompute a stage keeps only its
// input and runs its forward again, "R", before each backward; torchgpipe's except_last spares the
// last micro-batch, whose backward follows its forward closest.
//
// figure: stages 4, microbatches 4, F 1, I 1, W 1
//   0 |0123         aabbccdd
//   1 | 0123      aabbccdd
//   2 |  0123   aabbccdd
//   3 |   0123aabbccdd
//
// figure: stages 4, microbatches 4, F 1, I 1, W 1, recompute always, reverse yes
//   0 |0123~         dd~cc~bb~aa
//   1 | 0123~      dd~cc~bb~aa
//   2 |  0123~   dd~cc~bb~aa
//   3 |   0123~dd~cc~bb~aa
#include "schedulers/order.hpp"
#include "schedulers/scheduler.hpp"

namespace stageline::gpipe_scheduler {
namespace {

constexpr Knob knobs[] = {
    {"recompute", "never|always|except_last", "never",
     "run the forward again before each backward, and keep only each stage's input"},
    {"reverse", "no|yes", "no", "backwards from the last micro-batch to the first"},
};

Placement place(int devices, const Knobs&) { return straight_placement(devices); }

Program schedule(const Problem& problem) {
  Program program = blank_program(problem, "gpipe", WeightRule::flush);
  const std::string& recompute = problem.knobs.at("recompute");
  const bool reverse = problem.knobs.at("reverse") == "yes";
  const auto size = static_cast<std::uint32_t>(program.microbatches);
  for (int s = 0; s < program.stages(); ++s) {
    Order order(program, s);
    for (std::uint32_t first = 0; first < program.total_microbatches(); first += size) {
      for (std::uint32_t i = 0; i < size; ++i) order.forward(first + i);
      for (std::uint32_t i = 0; i < size; ++i) {
        const std::uint32_t m = first + (reverse ? size - 1 - i : i);
        const bool last = m == first + size - 1;
        if (recompute == "always" || (recompute == "except_last" && !last)) order.recompute(m);
        order.backward(m);
      }
    }
  }
  return program;
}

}  // namespace

extern const Scheduler entry;
const Scheduler entry = {
    "gpipe",
    "all forwards, then all backwards",
    "Huang et al. 2019, arXiv 1811.06965; recompute as in torchgpipe, arXiv 2004.09910",
    Synchrony::synchronous,
    knobs,
    place,
    schedule,
};

}  // namespace stageline::gpipe_scheduler
