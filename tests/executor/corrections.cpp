// Do the corrections follow their papers' formulas? And the rate its schedule?
#include "sim/base/index.hpp"
#include "tools/executor/corrections/correction.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "tools/executor/train/recipe.hpp"

namespace stageline::executor {
namespace {

at::Tensor number(double value) { return at::full({1}, value, at::kDouble); }

std::vector<at::Tensor> numbers(double value) { return {number(value)}; }

double value(const std::vector<at::Tensor>& some) { return some.at(0).item<double>(); }

// Momentum on one weight, with gradients that arrive `late` steps late and steps adjusted for it.
std::vector<double> path(const std::vector<double>& gradients, int late, double momentum,
                         const Corrections& corrections) {
  OptimizerStep step;
  step.rate = 1;
  step.momentum = momentum;
  corrections.adjust(step, {late, 0, 100});
  double weight = 0;
  double velocity = 0;
  std::vector<double> weights;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const double gradient = i < as_size(late) ? 0 : gradients[i - as_size(late)];
    velocity = momentum * velocity + gradient;
    weight -= step.velocity_share * velocity + step.gradient_share * gradient;
    weights.push_back(weight);
  }
  return weights;
}

}  // namespace

TEST_CASE(
    "spike compensation catches up with what was missed, and goes on as if it had been there") {
  const Corrections compensated(parse_corrections("spike_compensation"));
  const Corrections none(parse_corrections("none"));
  std::vector<double> spike(40);
  spike[0] = 1;
  for (const int late : {1, 3, 8}) {
    const std::vector<double> in_time = path(spike, 0, 0.9, none);
    const std::vector<double> made_up = path(spike, late, 0.9, compensated);
    const std::vector<double> left = path(spike, late, 0.9, none);
    for (std::size_t i = as_size(late); i < spike.size(); ++i) {
      CHECK(made_up[i] == doctest::Approx(in_time[i]));
      CHECK(left[i] > in_time[i] + 1e-3);
    }
    CHECK(made_up[as_size(late) - 1] == 0);
  }
}

TEST_CASE("weight prediction goes on by the last step, as often as the delay") {
  const Corrections predicted(parse_corrections("weight_prediction"));
  auto memory = predicted.remember({}, numbers(1), numbers(1.5));
  CHECK(value(predicted.for_forward(numbers(1.5), memory, 4)) == doctest::Approx(3.5));
  memory = predicted.remember(memory, numbers(1.5), numbers(1.25));
  CHECK(value(predicted.for_forward(numbers(1.25), memory, 2)) == doctest::Approx(0.75));
  CHECK(value(predicted.for_forward(numbers(1.25), {}, 2)) == 1.25);  // nothing to go by yet
  CHECK(value(predicted.for_forward(numbers(1.25), memory, 0)) == 1.25);
  CHECK(value(predicted.for_backward(numbers(1.25), memory, 3)) == 1.25);  // backwards as it is
}

TEST_CASE("a moving average finds the way back") {
  const Corrections averaged(parse_corrections("moving_average"));
  // Steps of equal size: the mean is that, and any old version is rebuilt exactly.
  std::vector<at::Tensor> memory;
  double weight = 5;
  for (int i = 0; i < 6; ++i, weight -= 0.25) {
    memory = averaged.remember(memory, numbers(weight), numbers(weight - 0.25));
  }
  CHECK(value(averaged.for_backward(numbers(weight), memory, 4)) == doctest::Approx(weight + 1));
  // 0.9 of the old mean and 0.1 of the new step.
  memory = averaged.remember(memory, numbers(weight), numbers(weight + 1));
  CHECK(value(memory) == doctest::Approx(0.9 * -0.25 + 0.1));
}

TEST_CASE("the rate by delay begins at the delay's share and ends at the whole") {
  const Corrections scaled(parse_corrections("rate_by_delay"));
  const auto rate = [&](int delay, std::int64_t step) {
    OptimizerStep numbers;
    numbers.rate = 1;
    scaled.adjust(numbers, {delay, step, 400});
    return numbers.rate;
  };
  CHECK(rate(4, 0) == doctest::Approx(1.0 / 5));
  CHECK(rate(4, 50) == doctest::Approx(1 / std::sqrt(5.0)));
  CHECK(rate(4, 100) == 1);
  CHECK(rate(4, 399) == 1);
  CHECK(rate(0, 0) == 1);
}

TEST_CASE("every correction has a name, a source, and something to say") {
  for (const Correction* const one : corrections()) {
    CAPTURE(std::string(one->name));
    CHECK(!one->summary.empty());
    CHECK(one->source.find("arXiv") != std::string_view::npos);
    const bool says = one->rule || one->for_forward != nullptr || one->for_backward != nullptr ||
                      one->adjust != nullptr;
    CHECK(says);
    CHECK(parse_corrections(std::string(one->name)).at(0) == one);
  }
}

TEST_CASE("the learning rate warms up, and falls behind its milestones") {
  Recipe recipe;
  recipe.rate = 0.8;
  recipe.warm_up = 4;
  recipe.milestones = {10, 20};
  recipe.factor = 0.5;
  CHECK(rate_at(recipe, 0) == doctest::Approx(0.2));
  CHECK(rate_at(recipe, 3) == doctest::Approx(0.8));
  CHECK(rate_at(recipe, 9) == doctest::Approx(0.8));
  CHECK(rate_at(recipe, 10) == doctest::Approx(0.4));
  CHECK(rate_at(recipe, 20) == doctest::Approx(0.2));
  CHECK(print(recipe) == "rate 0.8, momentum 0.9, warm-up 4, ×0.5 at 10 20");
}

}  // namespace stageline::executor
