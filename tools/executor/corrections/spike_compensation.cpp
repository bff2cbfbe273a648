// Spike compensation: a late gradient gets at once what momentum would have given it had it come in
// time, and from then on goes on as it would have. With momentum m and delay D
//
//     v ← m v + g          w ← w − rate · (a v + b g)          a = m^D,  b = (1 − m^D) / (1 − m)
//
// so that every gradient still adds up to 1 / (1 − m) in the end.
// Kosson et al., "Pipelined Backpropagation at Scale", arXiv 2003.11666, section 3.1 (SC_D).
#include <cmath>

#include "tools/executor/corrections/correction.hpp"

namespace stageline::executor {
namespace {

void adjust_for_spikes(OptimizerStep& step, const StaleStep& at) {
  const double left = std::pow(step.momentum, at.delay);
  step.velocity_share = left;
  step.gradient_share = step.momentum == 1 ? at.delay : (1 - left) / (1 - step.momentum);
}

}  // namespace

extern const Correction spike_compensation_correction;
const Correction spike_compensation_correction = {
    "spike_compensation",
    "a late gradient gets at once what momentum would have given it (optimizer momentum)",
    "Kosson et al. 2021, arXiv 2003.11666",
    std::nullopt,
    nullptr,
    nullptr,
    nullptr,
    adjust_for_spikes,
    true,
};

}  // namespace stageline::executor
