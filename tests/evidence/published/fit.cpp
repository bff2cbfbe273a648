// Does the fit find known constants, whatever a few slow runs say, and does it say how well?
#include "tools/published/fit.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>
#include <random>
#include <stdexcept>

namespace stageline::fit_tests {
namespace {

using Values = std::vector<double>;

// A step as the cost model composes it: work at a share of the peak, a constant, traffic at a share
// of the bandwidth.
struct Step {
  double work, traffic;  // seconds at a share of 1
};

std::vector<Step> steps() {
  std::vector<Step> all;
  for (int i = 0; i < 20; ++i) all.push_back({0.3 + 0.4 * i, 0.1 + 0.15 * ((7 * i) % 20)});
  return all;
}

// Constants: share of the peak, seconds a step, share of the bandwidth, or the first of them.
Values times(const Values& constants) {
  Values result;
  for (const Step& step : steps()) {
    double time = step.work / constants[0];
    time += constants.size() > 1 ? constants[1] : 0.2;
    time += step.traffic / (constants.size() > 2 ? constants[2] : 1);
    result.push_back(time);
  }
  return result;
}

FreeConstant share_of_peak() { return {"gemm", 0.7, 0.5, 0.1, 0.95}; }
FreeConstant step_seconds() { return {"step", 0.05, 2, 1e-4, 10}; }
FreeConstant share_of_bandwidth() { return {"memory", 0.9, 1, 0.01, 10}; }

// Normally distributed, the same with every library (Box and Muller).
class Normal {
 public:
  double operator()() {
    return std::sqrt(-2 * std::log(uniform())) * std::cos(6.283185307179586 * uniform());
  }
  double uniform() { return (static_cast<double>(bits_()) + 0.5) / 4294967296.0; }

 private:
  std::mt19937 bits_{19};
};

double deviation(const Values& values) {
  const double count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / count);
}

double mean(const Values& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

TEST_CASE("the fit finds the constants that times were made with") {
  const Values truth = {0.84, 0.3, 0.6};
  const FitResult found =
      fit(times(truth), times, {share_of_peak(), step_seconds(), share_of_bandwidth()});
  CHECK(found.converged);
  REQUIRE(found.constants.size() == 3);
  for (std::size_t c = 0; c < truth.size(); ++c) {
    CHECK(found.constants[c].value == doctest::Approx(truth[c]).epsilon(5e-3));
    CHECK(found.constants[c].standard_error < 0.1);
    CHECK(std::abs(std::log(found.constants[c].value / truth[c])) <
          found.constants[c].standard_error);
    CHECK(!found.constants[c].at_bound);
  }
  CHECK(found.predicted ==
        times({found.constants[0].value, found.constants[1].value, found.constants[2].value}));
}

TEST_CASE("a few slow runs do not move the constants") {
  const Values clean = times({0.84});
  Values slow = clean;
  for (const std::size_t row : {3U, 9U, 15U}) slow[row] *= 1.6;
  const double without = fit(clean, times, {share_of_peak()}).constants[0].value;
  const double with = fit(slow, times, {share_of_peak()}).constants[0].value;
  CHECK(with == doctest::Approx(without).epsilon(0.01));
  CHECK(with < without);
  // A loss that is quadratic as far as these runs are away follows them.
  FitOptions quadratic;
  quadratic.scale = 10;
  FreeConstant loose = share_of_peak();
  loose.spread = 1e3;
  CHECK(fit(slow, times, {loose}, quadratic).constants[0].value < 0.96 * without);
}

TEST_CASE("a constant on which no point depends keeps its prior and the prior's width") {
  const FreeConstant unused{"network", 0.8, 0.3, 0.1, 2};
  const PredictPoints blind = [](const Values& constants) { return times({constants[0]}); };
  const FitResult hidden = fit(times({0.84}), blind, {share_of_peak(), unused});
  CHECK(hidden.constants[1].value == doctest::Approx(0.8).epsilon(1e-12));
  CHECK(hidden.constants[1].standard_error == doctest::Approx(0.3).epsilon(1e-9));
  CHECK(hidden.constants[0].standard_error < 0.01);
}

TEST_CASE("a constant beyond its bound stays there, and the others make up for it") {
  FreeConstant bounded = share_of_peak();
  bounded.most = 0.75;
  const FitResult found = fit(times({0.84, 0.3}), times, {bounded, step_seconds()});
  CHECK(found.converged);
  CHECK(found.constants[0].value == 0.75);
  CHECK(found.constants[0].at_bound);
  CHECK(!found.constants[1].at_bound);
  // The best that is left for the second alone.
  const PredictPoints at_bound = [](const Values& constants) {
    return times({0.75, constants[0]});
  };
  const FitResult alone = fit(times({0.84, 0.3}), at_bound, {step_seconds()});
  CHECK(found.constants[1].value == doctest::Approx(alone.constants[0].value).epsilon(1e-3));

  FreeConstant high = share_of_peak();
  high.least = 0.9;
  high.prior = 0.92;
  CHECK(fit(times({0.84}), times, {high}).constants[0].value == 0.9);
}

TEST_CASE("one point and one power: the weighted mean of prior and measurement") {
  // r = log(t/measured) with t = 1/v, measured = 1/0.8; quadratic, as the scale is wide.
  FitOptions wide;
  wide.scale = 3;
  wide.tolerance = 1e-9;
  const FreeConstant constant{"gemm", 0.7, 2, 1e-6, 1e6};
  const PredictPoints inverse = [](const Values& v) { return Values{1 / v[0]}; };
  const FitResult found = fit({1 / 0.8}, inverse, {constant}, wide);
  const double by_data = 1 / (3.0 * 3.0);
  const double by_prior = 1 / (2.0 * 2.0);
  const double expected =
      std::exp((by_data * std::log(0.8) + by_prior * std::log(0.7)) / (by_data + by_prior));
  CHECK(found.constants[0].value == doctest::Approx(expected).epsilon(1e-5));
  CHECK(found.constants[0].standard_error ==
        doctest::Approx(1 / std::sqrt(by_data + by_prior)).epsilon(1e-3));
}

TEST_CASE("the linear model's minimum is that of a search by grid") {
  Normal normal;
  for (int round = 0; round < 8; ++round) {
    const LocalModel model = [&] {
      LocalModel made{{1, 1}, Values(9), {Values(9), Values(9)}};
      for (std::size_t p = 0; p < 9; ++p) {
        made.predicted[p] = std::exp(0.2 * normal());
        made.slopes[0][p] = -normal.uniform();
        made.slopes[1][p] = normal.uniform();
      }
      return made;
    }();
    const std::vector<FreeConstant> constants = {{"a", 0.9, 0.3, 0.7, 1.2},
                                                 {"b", 1.1, 0.5, 0.5, 1.6}};
    const Values measured(9, 1.0);
    const FitResult found = fit_local(measured, model, constants);
    const auto loss_at = [&](double a, double b) {
      double sum = std::pow(std::log(a / 0.9) / 0.3, 2) + std::pow(std::log(b / 1.1) / 0.5, 2);
      for (std::size_t p = 0; p < 9; ++p) {
        const double r = std::log(model.predicted[p]) + model.slopes[0][p] * std::log(a) +
                         model.slopes[1][p] * std::log(b);
        sum += 2 * (std::sqrt(1 + r * r / (0.02 * 0.02)) - 1);
      }
      return sum;
    };
    double least = 1e300;
    for (int i = 0; i <= 250; ++i) {
      for (int j = 0; j <= 250; ++j) {
        least = std::min(least, loss_at(0.7 * std::pow(1.2 / 0.7, i / 250.0),
                                        0.5 * std::pow(1.6 / 0.5, j / 250.0)));
      }
    }
    CHECK(found.loss <= least * (1 + 1e-9));
    CHECK(found.loss ==
          doctest::Approx(loss_at(found.constants[0].value, found.constants[1].value)));
    CHECK(found.loss > 0.98 * least);
  }
}

TEST_CASE("standard errors are the scatter of the constants over repeated measurements") {
  // Residuals wider than the scale of the loss, with heavy tails, as published rows have them.
  const Values clean = times({0.8});
  Normal normal;
  Values logarithms;
  Values errors;
  for (int repeat = 0; repeat < 300; ++repeat) {
    Values measured = clean;
    for (double& time : measured) {
      const double size = -0.06 * std::log(normal.uniform());  // Laplace
      time *= std::exp(normal.uniform() < 0.5 ? size : -size);
    }
    const FitResult found = fit(measured, times, {share_of_peak()});
    logarithms.push_back(std::log(found.constants[0].value));
    errors.push_back(found.constants[0].standard_error);
  }
  CHECK(mean(errors) == doctest::Approx(deviation(logarithms)).epsilon(0.25));
}

TEST_CASE("points that are not kept count as absent") {
  Values measured = times({0.84});
  const LocalModel model = local_model(times, {share_of_peak()}, {0.8}, times({0.8}));
  std::vector<bool> kept(measured.size(), true);
  for (std::size_t i = 0; i < 8; ++i) {
    kept[i] = false;
    measured[i] *= 3;
  }
  LocalModel rest{model.at, {}, {{}}};
  Values measured_rest;
  for (std::size_t i = 8; i < measured.size(); ++i) {
    rest.predicted.push_back(model.predicted[i]);
    rest.slopes[0].push_back(model.slopes[0][i]);
    measured_rest.push_back(measured[i]);
  }
  const FitResult some = fit_local(measured, model, {share_of_peak()}, kept);
  const FitResult alone = fit_local(measured_rest, rest, {share_of_peak()});
  CHECK(some.constants[0].value == doctest::Approx(alone.constants[0].value).epsilon(1e-9));
  CHECK(some.constants[0].standard_error ==
        doctest::Approx(alone.constants[0].standard_error).epsilon(1e-9));
}

TEST_CASE("few predictions are asked for") {
  int calls = 0;
  const PredictPoints counted = [&](const Values& constants) {
    ++calls;
    return times(constants);
  };
  const FitResult found = fit(times({0.84, 0.3}), counted, {share_of_peak(), step_seconds()});
  CHECK(found.converged);
  CHECK(calls <= 1 + 8 * 3);
  calls = 0;
  FitOptions none;
  none.most_iterations = 1;
  CHECK(!fit(times({0.84, 0.3}), counted, {share_of_peak(), step_seconds()}, none).converged);
  calls = 0;
  const FitResult fixed = fit(times({0.84}), [&](const Values&) { return times({0.8}); }, {});
  CHECK(fixed.converged);
  CHECK(fixed.constants.empty());
  CHECK(fixed.predicted == times({0.8}));
}

TEST_CASE("values out of range are refused") {
  const PredictPoints zero = [](const Values&) { return Values(20, 0.0); };
  CHECK_THROWS_AS(fit(times({0.8}), zero, {share_of_peak()}), std::invalid_argument);
  CHECK_THROWS_AS(fit(Values(20, -1.0), times, {share_of_peak()}), std::invalid_argument);
  CHECK_THROWS_AS(fit(Values(3, 1.0), times, {share_of_peak()}), std::invalid_argument);
  FreeConstant none = share_of_peak();
  none.prior = 0;
  CHECK_THROWS_WITH_AS(fit(times({0.8}), times, {none}),
                       "gemm: prior 0, spread 0.5 and the bounds 0.1 and 0.95 must be above 0, and "
                       "the bounds in order",
                       std::invalid_argument);
}

}  // namespace stageline::fit_tests
