// The optimizer's numbers, and the learning rate over the steps of a training.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stageline::executor {

/// In PyTorch's terms: SGD with momentum and weight decay, LinearLR for the warm-up, then
/// MultiStepLR.
struct Recipe {
  double rate = 0.01;                      // learning rate after the warm-up
  double momentum = 0.9;                   // ignored by optimizers without
  double weight_decay = 0;                 // L2, on all weights
  std::int64_t warm_up = 0;                // steps; the k-th of them (from 1) has k / warm_up of it
  std::vector<std::int64_t> milestones{};  // steps (from 0), rising, from which on the rate is
  double factor = 0.1;                     // this much of what it was
  std::int64_t steps = 0;                  // of the whole training

  friend bool operator==(const Recipe&, const Recipe&) = default;
};

/// The learning rate of the step with this number, from 0.
double rate_at(const Recipe& recipe, std::int64_t step);

/// "rate 0.05, momentum 0.9, weight decay 0.0005, warm-up 20, ×0.1 at 300 600".
std::string print(const Recipe& recipe);

}  // namespace stageline::executor
