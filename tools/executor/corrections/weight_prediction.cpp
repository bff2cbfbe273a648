// Linear weight prediction: a forward goes by the weights as they will be when its gradient
// arrives, `delay` updates later, if each of these repeats the last one:
//
//     F reads  w[t] + delay · (w[t] − w[t−1])
//
// Kosson et al., "Pipelined Backpropagation at Scale", arXiv 2003.11666, section 3.2, in the form
// with weights (LWPw); under plain momentum the form with velocities is the same. A device that
// does not update the weights itself can make this one: it has seen w[t−1].
#include "tools/executor/corrections/correction.hpp"

namespace stageline::executor {
namespace {

std::vector<at::Tensor> remember_weights(const std::vector<at::Tensor>&,
                                         const std::vector<at::Tensor>& before,
                                         const std::vector<at::Tensor>& after) {
  std::vector<at::Tensor> last_step;
  for (std::size_t i = 0; i < after.size(); ++i) last_step.push_back(after[i] - before[i]);
  return last_step;
}

std::vector<at::Tensor> for_forward(const std::vector<at::Tensor>& weights,
                                    const std::vector<at::Tensor>& last_step, int delay) {
  std::vector<at::Tensor> result;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    result.push_back(at::add(weights[i], last_step[i], delay));
  }
  return result;
}

}  // namespace

extern const Correction weight_prediction_correction;
const Correction weight_prediction_correction = {
    "weight_prediction",
    "forwards read the weights as they will be after the delay, by the last step",
    "Kosson et al. 2021, arXiv 2003.11666",
    std::nullopt,
    remember_weights,
    for_forward,
    nullptr,
    nullptr,
    false,
};

}  // namespace stageline::executor
