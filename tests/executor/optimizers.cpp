// Do the optimizers and the corrections of their steps follow their formulas? By closed forms, on
// weights that are few, and on a quadratic whose gradients come late.
#include "tools/executor/tensors/optimizer_step.hpp"

#include <doctest/doctest.h>
#include <torch/optim/adamw.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "cost_models/roofline.hpp"
#include "sim/base/index.hpp"
#include "tools/executor/corrections/correction.hpp"
#include "tools/executor/tensors/tensor_model.hpp"

namespace stageline::executor {
namespace {

at::Tensor random(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  at::manual_seed(seed);
  return at::randn({rows, columns}, at::kDouble);
}

LayerWeights number(double value, Optimizer optimizer) {
  LayerWeights one;
  one.values = {at::full({1}, value, at::kDouble)};
  one.gradients = {at::zeros({1}, at::kDouble)};
  begin_state(one, optimizer);
  return one;
}

double value_of(const LayerWeights& one) { return one.values[0].item<double>(); }

// Steps on one weight, with a correction for the delay.
struct Walk {
  Optimizer optimizer = Optimizer::sgd;
  double rate = 0.1;
  double momentum = 0.9;
  int delay = 0;
  std::string correction = "none";

  OptimizerStep numbers() const {
    OptimizerStep step;
    step.rate = rate;
    step.momentum = momentum;
    Corrections(parse_corrections(correction)).adjust(step, {delay, 0, 1000});
    return step;
  }

  // The weight after each step down w² / 2 from 1, by its gradients at the weight `delay` steps
  // ago.
  std::vector<double> down(int steps) const {
    LayerWeights one = number(1, optimizer);
    std::vector<double> weights = {1};
    for (int t = 0; t < steps; ++t) {
      one.gradients[0].fill_(weights[as_size(std::max(t - delay, 0))]);
      update(one, optimizer, numbers());
      weights.push_back(value_of(one));
      if (std::abs(weights.back()) > 1e6) break;
    }
    return weights;
  }

  bool arrives() const { return std::abs(down(6000).back()) < 1e-3; }
  bool diverges() const { return std::abs(down(6000).back()) > 1e6; }
};

}  // namespace

TEST_CASE("five Newton-Schulz steps bring singular values near 1 and leave the vectors") {
  for (const auto& size : {std::pair{12, 7}, std::pair{7, 12}, std::pair{6, 6}}) {
    const int rows = size.first;
    const int columns = size.second;
    CAPTURE(rows);
    // Singular values from 1 to 0.05, between orthogonal factors.
    const std::int64_t rank = std::min(rows, columns);
    const auto [u, no_values, v] = at::linalg_svd(random(rows, columns, 3), false);
    const at::Tensor values = at::linspace(1, 0.05, rank, at::kDouble);
    const at::Tensor made = orthogonalized(u.mm(at::diag(values)).mm(v) * 40);
    const at::Tensor back = u.t().mm(made).mm(v.t());
    for (std::int64_t i = 0; i < rank; ++i) {
      for (std::int64_t k = 0; k < rank; ++k) {
        const double entry = back[i][k].item<double>();
        if (i == k) {
          CHECK(entry > 0.68);
          CHECK(entry < 1.14);
        } else {
          CHECK(std::abs(entry) < 1e-9);
        }
      }
    }
  }
  CHECK(at::equal(orthogonalized(at::zeros({3, 2}, at::kDouble)), at::zeros({3, 2}, at::kDouble)));
  // A number becomes its sign, about.
  CHECK(orthogonalized(at::full({1, 1}, -5, at::kDouble)).item<double>() ==
        doctest::Approx(-1).epsilon(0.32));
}

TEST_CASE("Muon steps the matrices of hidden layers by their factor, and all else as AdamW") {
  TensorModel model = tensor_model(parse_shape("lenet5,width=2"), Optimizer::muon,
                                   at::TensorOptions(at::kDouble), 1);
  std::vector<std::string> matrices;
  std::vector<at::Tensor> others;
  std::vector<std::vector<at::Tensor>> before;
  for (std::size_t i = 0; i < model.weights.size(); ++i) {
    LayerWeights& weights = model.weights[i];
    for (std::size_t k = 0; k < weights.values.size(); ++k) {
      CHECK(weights.state[2 * k + 1].numel() ==
            (weights.matrix[k] ? 0 : weights.values[k].numel()));
      if (weights.matrix[k]) {
        matrices.push_back(model.shape.layers[i].name);
      } else {
        others.push_back(weights.values[k].detach().clone().set_requires_grad(true));
      }
      weights.gradients[k] = at::randn(weights.values[k].sizes(), at::kDouble);
    }
    before.emplace_back();
    for (const at::Tensor& value : weights.values) before.back().push_back(value.detach().clone());
  }
  // Not the first and the last; filters of the second convolution are rows.
  CHECK(matrices == std::vector<std::string>{"conv2", "fc1", "fc2"});
  OptimizerStep step{0.01, 0.95, 0.1};
  torch::optim::AdamW adamw(others, torch::optim::AdamWOptions(0.01).weight_decay(0.1));
  for (std::size_t i = 0; i < model.weights.size(); ++i) update(model, i, step);
  std::size_t next = 0;
  for (const LayerWeights& weights : model.weights) {
    for (std::size_t k = 0; k < weights.values.size(); ++k) {
      if (!weights.matrix[k]) others[next++].mutable_grad() = weights.gradients[k];
    }
  }
  adamw.step();
  next = 0;
  for (std::size_t i = 0; i < model.weights.size(); ++i) {
    const LayerWeights& weights = model.weights[i];
    for (std::size_t k = 0; k < weights.values.size(); ++k) {
      CAPTURE(model.shape.layers[i].name);
      if (!weights.matrix[k]) {
        CHECK(at::allclose(weights.values[k], others[next++], 1e-12, 1e-12));
        continue;
      }
      // The first step: the factor of the gradient itself, for its length does not count.
      const at::Tensor flat = weights.gradients[k].flatten(1);
      const double longer = static_cast<double>(std::max(flat.size(0), flat.size(1)));
      const at::Tensor way = orthogonalized(flat).view_as(before[i][k]);
      const at::Tensor expected =
          before[i][k] * (1 - 0.01 * 0.1) - way * (0.01 * 0.2 * std::sqrt(longer));
      CHECK(at::allclose(weights.values[k], expected, 1e-9, 1e-9));
    }
  }
}

TEST_CASE("Muon's momentum is Nesterov's") {
  LayerWeights one;
  one.values = {random(4, 3, 1)};
  one.gradients = {random(4, 3, 2)};
  one.matrix = {true};
  begin_state(one, Optimizer::muon);
  update(one, Optimizer::muon, {0.01, 0.95});
  const at::Tensor first = one.gradients[0].clone();
  one.gradients[0] = random(4, 3, 3);
  const at::Tensor velocity = first * 0.95 + one.gradients[0];
  const at::Tensor expected = one.values[0] - orthogonalized(one.gradients[0] + velocity * 0.95) *
                                                  (0.01 * 0.2 * std::sqrt(4.0));
  update(one, Optimizer::muon, {0.01, 0.95});
  CHECK(at::allclose(one.values[0], expected, 1e-12, 1e-12));
}

TEST_CASE("nesterov at delay 0 is the textbook's, with gradients of 1 - momentum") {
  for (const double momentum : {0.0, 0.5, 0.9, 0.99}) {
    CAPTURE(momentum);
    const std::vector<double> ours =
        Walk{Optimizer::momentum, 0.3, momentum, 0, "nesterov"}.down(60);
    double iterate = 1;
    double ahead = 1;
    for (std::size_t t = 0; t < 60; ++t) {
      CHECK(ours[t] == doctest::Approx(ahead).epsilon(1e-12));
      const double next = ahead - 0.3 * (1 - momentum) * ahead;
      ahead = next + momentum * (next - iterate);
      iterate = next;
    }
  }
}

TEST_CASE("late gradients: nesterov and error feedback arrive where momentum diverges") {
  // A step of w²/2 by gradients one update late diverges from a rate of 2 sin(π/6) = 1 on, with
  // momentum, too (the whole step is rate / (1 − momentum)).
  CHECK(Walk{Optimizer::sgd, 0.98, 0, 1}.arrives());
  CHECK(Walk{Optimizer::sgd, 1.02, 0, 1}.diverges());
  const auto momentum = [](double whole, int delay, const std::string& correction) {
    return Walk{Optimizer::momentum, whole * 0.1, 0.9, delay, correction};
  };
  const auto nesterov = [](double whole, int delay) {
    return Walk{Optimizer::momentum, whole, 0.9, delay, "nesterov"};
  };
  for (const auto& one : {std::pair{1.2, 1}, std::pair{0.3, 4}}) {
    const double whole = one.first;
    const int delay = one.second;
    CAPTURE(delay);
    CHECK(momentum(whole, delay, "none").diverges());
    CHECK(nesterov(whole, delay).arrives());
    CHECK(momentum(whole, delay, "error_feedback").arrives());
  }
  // Eight updates late, feedback does more harm than good.
  CHECK(nesterov(0.14, 8).arrives());
  CHECK(momentum(0.14, 8, "error_feedback").diverges());
  // Without momentum, feedback is no help at a high rate: z³ − z² + 2 r z − r has its roots within
  // 1 below r = (√5 − 1) / 2 only.
  CHECK(Walk{Optimizer::sgd, 0.6, 0, 1, "error_feedback"}.arrives());
  CHECK(Walk{Optimizer::sgd, 0.64, 0, 1, "error_feedback"}.diverges());
  // At a low rate the path is nearer to that without delay.
  const std::vector<double> in_time = Walk{Optimizer::sgd, 0.05, 0, 0}.down(60);
  const std::vector<double> late = Walk{Optimizer::sgd, 0.05, 0, 1}.down(60);
  const std::vector<double> fed = Walk{Optimizer::sgd, 0.05, 0, 1, "error_feedback"}.down(60);
  for (const std::size_t t : {20, 40, 60}) {
    CHECK(std::abs(fed[t] - in_time[t]) < 0.2 * std::abs(late[t] - in_time[t]));
  }
}

TEST_CASE("error feedback adds each update's error once: the last ones count twice") {
  for (const int delay : {1, 3, 8}) {
    CAPTURE(delay);
    const OptimizerStep step = Walk{Optimizer::sgd, 1, 0, delay, "error_feedback"}.numbers();
    LayerWeights one = number(0, Optimizer::sgd);
    std::vector<double> gradients;
    for (int t = 0; t < 20; ++t) {
      gradients.push_back(std::sin(t * 1.7));
      one.gradients[0].fill_(gradients.back());
      update(one, Optimizer::sgd, step, t % 2 == 0 ? NewWeights::beside : NewWeights::in_place);
      double sum = 0;
      for (int s = 0; s <= t; ++s) {
        // The first `delay` ones were made in the place of none.
        const bool again = t >= delay && s > t - delay;
        sum -= gradients[as_size(s)] * (again ? 2 : 1);
      }
      for (int s = 0; t >= delay && s < delay; ++s) sum += gradients[as_size(s)];
      CHECK(value_of(one) == doctest::Approx(sum).epsilon(1e-12));
      CHECK(one.state.size() == as_size(std::min(t + 1, delay)));
    }
  }
}

TEST_CASE("error feedback of one update steps as the weights that prediction by one step reads") {
  const Corrections prediction(parse_corrections("weight_prediction"));
  for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::momentum, Optimizer::adam}) {
    CAPTURE(std::string(name(optimizer)));
    const OptimizerStep feeds = Walk{optimizer, 0.05, 0.9, 1, "error_feedback"}.numbers();
    const OptimizerStep plain = Walk{optimizer, 0.05, 0.9, 1}.numbers();
    LayerWeights fed = number(1, optimizer);
    LayerWeights predicted = number(1, optimizer);
    double read = 1;
    for (int t = 0; t < 30; ++t) {
      for (LayerWeights* const one : {&fed, &predicted}) one->gradients[0].fill_(std::cos(t * 0.8));
      const double before = value_of(fed);
      const std::vector<at::Tensor> old = {predicted.values[0].clone()};
      update(fed, optimizer, feeds);
      update(predicted, optimizer, plain);
      const auto memory = prediction.remember({}, old, predicted.values);
      const double next = prediction.for_forward(predicted.values, memory, 1)[0].item<double>();
      // The first update stands in the place of none, so it is fed as it is.
      if (t > 0) CHECK(value_of(fed) - before == doctest::Approx(next - read).epsilon(1e-9));
      read = next;
    }
  }
}

}  // namespace stageline::executor
