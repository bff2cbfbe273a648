// Error feedback: a late update is the one that should have been made D updates ago, where another
// was made in its place. That error is known now, and added once. With u[t] what the optimizer
// makes of the gradient at w[t−D], its rate included
//
//     w[t+1] = w[t] + u[t] + (u[t] − u[t−D])          (the first D updates: + u[t])
//
// It keeps D updates. What is kept is the update as the optimizer made it, without the feedback.
// At D = 1 the weights are those that weight prediction by one step would read.
//
// Zmushko et al., "One-step gradient delay is not a barrier for large-scale asynchronous pipeline
// parallel LLM pretraining", arXiv 2606.30634 (29 June 2026), section 3, where D is 1. The formula
// at D = 1 is as others state that paper's algorithm (github.com/lodestone-rock/RamTorch,
// documentation of update-level error feedback, September 2026); its own text was not at hand. At
// D > 1 it is [rebuilt]: each error is added once, when it is known.
#include "tools/executor/corrections/correction.hpp"

namespace stageline::executor {
namespace {

void feed_errors_back(OptimizerStep& step, const StaleStep& at) { step.feedback_delay = at.delay; }

}  // namespace

extern const Correction error_feedback_correction;
const Correction error_feedback_correction = {
    "error_feedback",
    "an update adds what it has beyond the one that was made in its place",
    "Zmushko et al. 2026, arXiv 2606.30634",
    std::nullopt,
    nullptr,
    nullptr,
    nullptr,
    feed_errors_back,
    false,
    "delays above 1 rebuilt",
};

}  // namespace stageline::executor
