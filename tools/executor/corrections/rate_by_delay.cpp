// The learning rate of a stage by its delay, at first; later, when weights move slowly, the rate of
// all others again:
//
//     rate / (delay + 1)^p,          p = 1 − step / K  from step 0 to K, then 0
//
// Yang et al., "PipeMare", arXiv 1910.05124, technique T1: there the delay of stage i of P is
// (2 (P − i) + 1) / N steps, which at N = 1 is our degree of staleness and 1. K is a quarter of the
// training here; the paper sets it by network. [rebuilt]
#include <algorithm>
#include <cmath>

#include "tools/executor/corrections/correction.hpp"

namespace stageline::executor {
namespace {

void adjust_rate(OptimizerStep& step, const StaleStep& at) {
  const double quarter = std::max(static_cast<double>(at.steps) / 4, 1.0);
  const double power = std::max(1 - static_cast<double>(at.step) / quarter, 0.0);
  step.rate /= std::pow(at.delay + 1, power);
}

}  // namespace

extern const Correction rate_by_delay_correction;
const Correction rate_by_delay_correction = {
    "rate_by_delay",
    "a stage's rate is divided by its delay at first, and less and less",
    "Yang et al. 2021, arXiv 1910.05124",
    std::nullopt,
    nullptr,
    nullptr,
    nullptr,
    adjust_rate,
    false,
    "K rebuilt",
};

}  // namespace stageline::executor
