// The formulas of the optimizers.
#include "tools/executor/tensors/optimizer_step.hpp"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "sim/base/index.hpp"

namespace stageline::executor {
namespace {

using at::Tensor;

constexpr int newton_schulz_steps = 5;
// Liu et al. 2025, "Muon is scalable for LLM training", arXiv 2502.16982, section 2.2: a step of
// Muon is then as large as AdamW's, and one rate does for both.
constexpr double muon_scale = 0.2;

// A weight moves by factor × way, or by factor × way / scale where there is one.
struct Move {
  Tensor way;
  Tensor scale;
  double factor = 0;

  Tensor whole() const { return scale.defined() ? way.div(scale).mul_(factor) : way.mul(factor); }
};

std::size_t states_of(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::sgd:
      return 0;
    case Optimizer::momentum:
      return 1;
    case Optimizer::adam:
    case Optimizer::muon:
      return 2;
  }
  return 0;  // unreachable; g++ wants it
}

bool is_matrix(const LayerWeights& weights, std::size_t i) {
  return i < weights.matrix.size() && weights.matrix[i];
}

Move momentum_move(Tensor& state, const Tensor& gradient, const OptimizerStep& step) {
  Tensor& velocity = state.mul_(step.momentum).add_(gradient);
  const bool plain_way = step.velocity_share == 1 && step.gradient_share == 0;
  return {
      plain_way ? velocity : velocity.mul(step.velocity_share).add_(gradient, step.gradient_share),
      {},
      -step.rate};
}

Move adam_move(LayerWeights& weights, std::size_t i, const Tensor& gradient, double rate) {
  constexpr double beta1 = 0.9;
  constexpr double beta2 = 0.999;
  constexpr double epsilon = 1e-8;
  Tensor& mean = weights.state[2 * i];
  Tensor& square = weights.state[2 * i + 1];
  mean.mul_(beta1).add_(gradient, 1 - beta1);
  square.mul_(beta2).addcmul_(gradient, gradient, 1 - beta2);
  const double correction1 = 1 - std::pow(beta1, weights.updates);
  const double correction2 = 1 - std::pow(beta2, weights.updates);
  return {mean, square.sqrt().div_(std::sqrt(correction2)).add_(epsilon), -rate / correction1};
}

// Filters of a convolution are the rows of a matrix.
Move muon_move(LayerWeights& weights, std::size_t i, const OptimizerStep& step) {
  const Tensor& gradient = weights.gradients[i];
  if (!is_matrix(weights, i)) return adam_move(weights, i, gradient, step.rate);
  Tensor& velocity = weights.state[2 * i].mul_(step.momentum).add_(gradient);
  const Tensor ahead = gradient.add(velocity, step.momentum).flatten(1);
  const auto longer = static_cast<double>(std::max(ahead.size(0), ahead.size(1)));
  return {orthogonalized(ahead).view_as(gradient), {}, -step.rate * muon_scale * std::sqrt(longer)};
}

Move move_of(LayerWeights& weights, std::size_t i, Optimizer optimizer, const OptimizerStep& step) {
  if (optimizer == Optimizer::muon) return muon_move(weights, i, step);
  Tensor gradient = weights.gradients[i];
  if (step.weight_decay != 0) gradient = gradient.add(weights.values[i], step.weight_decay);
  if (optimizer == Optimizer::adam) return adam_move(weights, i, gradient, step.rate);
  if (optimizer == Optimizer::momentum) return momentum_move(weights.state[i], gradient, step);
  return {gradient, {}, -step.rate};
}

void go(Tensor& weight, const Move& move, NewWeights put) {
  const bool here = put == NewWeights::in_place;
  if (move.scale.defined()) {
    weight = here ? weight.addcdiv_(move.way, move.scale, move.factor)
                  : weight.addcdiv(move.way, move.scale, move.factor);
  } else {
    weight = here ? weight.add_(move.way, move.factor) : weight.add(move.way, move.factor);
  }
}

// Adds what these updates have beyond those that were made in their place, and keeps them.
void feed_back(LayerWeights& weights, std::vector<Tensor> updates, Optimizer optimizer,
               const OptimizerStep& step, NewWeights put) {
  const std::size_t count = weights.values.size();
  const std::size_t kept_from = states_of(optimizer) * count;
  const bool full = weights.state.size() >= kept_from + as_size(step.feedback_delay) * count;
  for (std::size_t i = 0; i < count; ++i) {
    const Tensor whole = full ? updates[i].mul(2).sub_(weights.state[kept_from + i]) : updates[i];
    go(weights.values[i], {whole, {}, 1}, put);
  }
  if (full) {
    const auto oldest = weights.state.begin() + static_cast<std::ptrdiff_t>(kept_from);
    weights.state.erase(oldest, oldest + static_cast<std::ptrdiff_t>(count));
  }
  for (Tensor& update : updates) weights.state.push_back(std::move(update));
}

}  // namespace

void begin_state(LayerWeights& weights, Optimizer optimizer) {
  const c10::NoGradGuard plain;
  for (std::size_t i = 0; i < weights.values.size(); ++i) {
    for (std::size_t k = 0; k < states_of(optimizer); ++k) {
      const bool nothing = optimizer == Optimizer::muon && k > 0 && is_matrix(weights, i);
      weights.state.push_back(nothing ? at::zeros({0}, weights.values[i].options())
                                      : at::zeros_like(weights.values[i]));
    }
  }
}

void update(LayerWeights& weights, Optimizer optimizer, const OptimizerStep& step, NewWeights put) {
  const c10::NoGradGuard plain;
  ++weights.updates;
  std::vector<Tensor> updates;
  for (std::size_t i = 0; i < weights.values.size(); ++i) {
    Tensor& weight = weights.values[i];
    const bool decays = optimizer == Optimizer::muon && step.weight_decay != 0;
    const Move move = move_of(weights, i, optimizer, step);
    if (step.feedback_delay > 0) {
      updates.push_back(move.whole());
      if (decays) updates.back().add_(weight, -step.rate * step.weight_decay);
      continue;
    }
    if (decays) go(weight, {weight.clone(), {}, -step.rate * step.weight_decay}, put);
    go(weight, move, put);
  }
  if (step.feedback_delay > 0) feed_back(weights, std::move(updates), optimizer, step, put);
}

Tensor orthogonalized(const Tensor& matrix) {
  const c10::NoGradGuard plain;
  constexpr double a = 3.4445;
  constexpr double b = -4.7750;
  constexpr double c = 2.0315;
  constexpr double epsilon = 1e-7;  // as torch.optim.Muon's
  const bool tall = matrix.size(0) > matrix.size(1);
  Tensor x = tall ? matrix.t() : matrix;
  x = x.div(matrix.norm().clamp_min(epsilon));
  for (int step = 0; step < newton_schulz_steps; ++step) {
    const Tensor square = x.mm(x.t());
    x = at::addmm(x, square.mul(b).addmm_(square, square, 1, c), x, a, 1);
  }
  return tall ? x.t().contiguous() : x;
}

}  // namespace stageline::executor
