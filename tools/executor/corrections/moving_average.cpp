// LayerPipe2: no old weights are kept. The weights that a forward read are rebuilt from the newest,
// by the mean of the weights' last steps:
//
//     mean ← 0.9 mean + 0.1 (w[t] − w[t−1])          w[t−n] ≈ w[t] − n · mean
//
// Unnikrishnan and Parhi, "LayerPipe2", arXiv 2512.08160. That there is a moving average of the
// gradients is quoted; its memory of 0.9, and that it is one of the optimizer's steps, is
// [rebuilt].
#include <utility>

#include "tools/executor/corrections/correction.hpp"

namespace stageline::executor {
namespace {

constexpr double memory_of_mean = 0.9;

std::vector<at::Tensor> remember_average(const std::vector<at::Tensor>& mean,
                                         const std::vector<at::Tensor>& before,
                                         const std::vector<at::Tensor>& after) {
  std::vector<at::Tensor> result;
  for (std::size_t i = 0; i < after.size(); ++i) {
    at::Tensor step = after[i] - before[i];
    if (!mean.empty()) step.mul_(1 - memory_of_mean).add_(mean[i], memory_of_mean);
    result.push_back(std::move(step));
  }
  return result;
}

std::vector<at::Tensor> for_backward(const std::vector<at::Tensor>& newest,
                                     const std::vector<at::Tensor>& mean, int updates) {
  std::vector<at::Tensor> result;
  for (std::size_t i = 0; i < newest.size(); ++i) {
    result.push_back(at::sub(newest[i], mean[i], updates));
  }
  return result;
}

}  // namespace

extern const Correction moving_average_correction;
const Correction moving_average_correction = {
    moving_average,
    "backwards rebuild their forward's weights from a mean of the last steps",
    "Unnikrishnan & Parhi 2025, arXiv 2512.08160",
    std::nullopt,
    remember_average,
    nullptr,
    for_backward,
    nullptr,
    false,
    "rebuilt",
};

}  // namespace stageline::executor
