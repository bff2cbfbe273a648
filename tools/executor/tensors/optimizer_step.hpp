// One step of an optimizer on the weights of one layer.
//
// Includes ATen: for the files of this folder and its neighbours only.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "cost_models/roofline.hpp"

namespace stageline::executor {

/// The weights of one layer, what is accumulated for them, and what the optimizer keeps.
struct LayerWeights {
  std::vector<at::Tensor> values;  // leaves that require gradients; see `whole_backward`
  std::vector<at::Tensor> gradients;
  std::vector<at::Tensor> state;  // what the optimizer keeps; see optimizer_step.hpp
  std::vector<bool> matrix;       // muon: whether a weight goes by its orthogonal factor
  int updates = 0;                // made so far; adam corrects by it
};

/// Where an update puts the new weights: into the tensors of the old ones, or into others, beside
/// those that an op still reads.
enum class NewWeights : std::uint8_t { in_place, beside };

/// The numbers of one optimizer step, named as in PyTorch. Adam's betas are 0.9 and 0.999.
struct OptimizerStep {
  double rate = 0.01;       // learning rate
  double momentum = 0.9;    // of Optimizer::momentum and Optimizer::muon
  double weight_decay = 0;  // this share of the weights is added to their gradients (L2); muon: to
                            // the way they go (decoupled, as AdamW's)
  /// Optimizer::momentum goes by velocity_share × velocity + gradient_share × gradient: 1 and 0,
  /// unless a correction wants it otherwise (corrections/spike_compensation.cpp).
  double velocity_share = 1;
  double gradient_share = 0;
  /// Above 0: so many updates later, an update adds what it has beyond the one that was made in its
  /// place (corrections/error_feedback.cpp).
  int feedback_delay = 0;
};

/// What the optimizer keeps for these weights before the first step: for each weight
///
///     sgd: nothing    momentum: velocity    adam: mean, mean square    muon: velocity, nothing;
///     or,
///                                           where the weight is no `matrix`, as adam
///
/// Behind that, once steps have a feedback_delay, its last updates, from the oldest on.
void begin_state(LayerWeights& weights, Optimizer optimizer);

/// In PyTorch's formulas (torch.optim.SGD, Adam, Muon, AdamW). Leaves the gradients as they are.
void update(LayerWeights& weights, Optimizer optimizer, const OptimizerStep& step,
            NewWeights put = NewWeights::in_place);

/// About the orthogonal factor U Vᵀ of a matrix U S Vᵀ: five steps of a Newton–Schulz iteration,
///
///     X ← a X + b (X Xᵀ) X + c (X Xᵀ)² X,      a, b, c = 3.4445, −4.7750, 2.0315
///
/// from X = matrix / its Frobenius norm. They bring singular values above 0.01 of that norm between
/// 0.68 and 1.14. Jordan et al., "Muon", kellerjordan.github.io/posts/muon, 8 December 2024.
at::Tensor orthogonalized(const at::Tensor& matrix);

}  // namespace stageline::executor
