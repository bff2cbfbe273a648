// Nesterov's method with a late gradient: the weights that passes read are ahead of the iterate by
// the momentum of its last step, and a gradient counts by what momentum leaves of it. With momentum
// m, iterates x and weights w
//
//     x[t+1] = w[t] − (1 − m) · rate · g[t]          w[t+1] = x[t+1] + m (x[t+1] − x[t])
//
// where g[t] is the gradient at w[t−D]. The steps of a constant gradient add up to rate · g each,
// however large m is: with m near 1 a step goes mainly by old steps, so that D matters less. The
// same with the optimizer's velocity v, as long as the rate is constant:
//
//     v ← m v + g          w ← w − (1 − m) · rate · (m v + g)
//
// Ajanthan et al., "Nesterov method for asynchronous pipeline parallel optimization", arXiv
// 2505.01099 (2 May 2025), with m = 0.99 there and on every stage, whatever its delay; their code
// is at github.com/PluralisResearch/AsyncPP, and has it within NAdam. [rebuilt] without Adam's
// scale, and with a constant m.
#include "tools/executor/corrections/correction.hpp"

namespace stageline::executor {
namespace {

void adjust_for_nesterov(OptimizerStep& step, const StaleStep&) {
  step.velocity_share = step.momentum * (1 - step.momentum);
  step.gradient_share = 1 - step.momentum;
}

}  // namespace

extern const Correction nesterov_correction;
const Correction nesterov_correction = {
    "nesterov",
    "passes read weights ahead by the momentum, gradients count by 1 − momentum (optimizer "
    "momentum, best near 1; for all steps)",
    "Ajanthan et al. 2025, arXiv 2505.01099",
    std::nullopt,
    nullptr,
    nullptr,
    nullptr,
    adjust_for_nesterov,
    true,
    "without Adam's scale",
    true,
};

}  // namespace stageline::executor
