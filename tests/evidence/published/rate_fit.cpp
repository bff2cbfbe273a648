// Are as many constants set free as the steps determine, and are they those of the truth?
#include "tools/published/rate_fit.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <mutex>
#include <set>
#include <utility>

#include "sim/base/errors.hpp"
#include "tools/published/on_threads.hpp"

namespace stageline::rate_fit_tests {
namespace {

constexpr std::size_t groups = 6;
constexpr std::size_t in_group = 4;

// A step of a group: products, a constant and, of the last three groups, traffic between nodes.
double seconds_of(std::size_t step, const KernelRates& rates) {
  const std::size_t group = step / in_group;
  const double work = 0.4 + 0.7 * static_cast<double>(step % in_group) +
                      0.9 * static_cast<double>((5 * group) % groups);
  const double traffic = group < 3 ? 0 : 0.2 + 0.1 * static_cast<double>(step % in_group);
  return work / rates.gemm + rates.step + traffic / rates.network;
}

// Deviations of single runs, the same always: at most `size`, either way.
double deviation(std::size_t step, double size) {
  return 1 + size * std::sin(12.9898 * static_cast<double>(step + 1));
}

KernelRates rates_of(double gemm, double step, double network) {
  KernelRates rates;
  rates.gemm = gemm;
  rates.step = step;
  rates.network = network;
  return rates;
}

RateFitRequest measured_with(const KernelRates& truth, double deviates) {
  RateFitRequest request;
  request.prior = rates_of(0.75, 0.05, 1);
  for (std::size_t i = 0; i < groups * in_group; ++i) {
    request.steps.push_back(
        {"group " + std::to_string(i / in_group), seconds_of(i, truth) * deviation(i, deviates)});
  }
  request.predict = seconds_of;
  return request;
}

}  // namespace

TEST_CASE("one constant is free where one explains the steps") {
  const RateFit found = fit_rates(measured_with(rates_of(0.84, 0.05, 1), 0.02));
  REQUIRE(!found.sets.empty());
  CHECK(found.sets[found.chosen].free == std::vector<std::string>{"gemm"});
  CHECK(found.rates.gemm == doctest::Approx(0.84).epsilon(0.01));
  CHECK(found.rates.step == 0.05);
  CHECK(found.rates.network == 1);
  CHECK(found.groups == 6);
  CHECK(found.before.mean > 0.08);
  CHECK(found.after.mean < 0.02);
  CHECK(found.sets[0].cross_validated->mean < 0.02);
}

TEST_CASE("as many constants are free as the steps need") {
  const RateFit found = fit_rates(measured_with(rates_of(0.84, 0.6, 0.6), 0.005));
  CHECK(found.sets[found.chosen].free == std::vector<std::string>{"gemm", "step", "network"});
  CHECK(found.rates.gemm == doctest::Approx(0.84).epsilon(0.02));
  CHECK(found.rates.step == doctest::Approx(0.6).epsilon(0.05));
  CHECK(found.rates.network == doctest::Approx(0.6).epsilon(0.05));
  CHECK(found.sets[found.chosen].cross_validated->mean < 0.8 * found.sets[0].cross_validated->mean);
  // No step depends on these.
  CHECK(found.idle == std::vector<std::string>{"nvlink", "kernel", "layer_floor"});
}

TEST_CASE("errors are of rows whose group was left out of the fit") {
  RateFitRequest request = measured_with(rates_of(0.84, 0.5, 0.7), 0.05);
  request.free = {"gemm", "step"};
  const RateFit found = fit_rates(request);
  REQUIRE(found.sets.size() == 1);
  REQUIRE(found.sets[0].cross_validated);
  // The same by hand, each group left out of a fit of its own.
  std::vector<double> measured;
  std::vector<double> predicted;
  for (std::size_t left_out = 0; left_out < groups; ++left_out) {
    RateFitRequest rest = request;
    rest.steps.clear();
    std::vector<std::size_t> kept;
    for (std::size_t i = 0; i < request.steps.size(); ++i) {
      if (i / in_group == left_out) continue;
      kept.push_back(i);
      rest.steps.push_back({"all", request.steps[i].seconds});
    }
    rest.predict = [&kept](std::size_t step, const KernelRates& rates) {
      return seconds_of(kept[step], rates);
    };
    const KernelRates rates = fit_rates(rest).rates;
    for (std::size_t i = left_out * in_group; i < (left_out + 1) * in_group; ++i) {
      measured.push_back(request.steps[i].seconds);
      predicted.push_back(seconds_of(i, rates));
    }
  }
  const StepErrors by_hand = step_errors(measured, predicted);
  CHECK(found.sets[0].cross_validated->mean == doctest::Approx(by_hand.mean).epsilon(0.01));
  CHECK(found.sets[0].cross_validated->bias == doctest::Approx(by_hand.bias).epsilon(0.05));
  CHECK(found.sets[0].cross_validated->worst_step == by_hand.worst_step);
  CHECK(found.sets[0].cross_validated->mean > found.after.mean);
}

TEST_CASE("of one group, the first constant alone is free") {
  RateFitRequest request = measured_with(rates_of(0.84, 0.6, 1), 0.01);
  for (MeasuredStep& step : request.steps) step.group = "the only one";
  const RateFit found = fit_rates(request);
  REQUIRE(found.sets.size() == 1);
  CHECK(found.groups == 1);
  CHECK(found.sets[0].free == std::vector<std::string>{"gemm"});
  CHECK(!found.sets[0].cross_validated);
}

TEST_CASE("threads do not change the result, and no step is simulated twice by the same rates") {
  RateFitRequest request = measured_with(rates_of(0.84, 0.4, 0.8), 0.03);
  int said = 0;
  request.progress = [&](const std::string& doing, int simulations) {
    CHECK(!doing.empty());
    CHECK(simulations >= said);
    said = simulations;
  };
  const RateFit alone = fit_rates(request);
  CHECK(said > 0);  // among several threads it is said when the first one has done a task, if any
  said = 0;
  std::mutex lock;
  std::set<std::pair<std::size_t, std::vector<double>>> seen;
  int calls = 0;
  request.predict = [&](std::size_t step, const KernelRates& rates) {
    const std::lock_guard guard(lock);
    ++calls;
    CHECK(seen.insert({step,
                       {rates.gemm, rates.step, rates.network, rates.nvlink, rates.kernel,
                        rates.layer_floor}})
              .second);
    return seconds_of(step, rates);
  };
  request.threads = 4;
  const RateFit together = fit_rates(request);
  CHECK(together.rates == alone.rates);
  CHECK(together.chosen == alone.chosen);
  CHECK(together.sets.back().cross_validated->mean == alone.sets.back().cross_validated->mean);
  CHECK(together.simulations == alone.simulations);
  CHECK(together.simulations == calls);
}

TEST_CASE("known predictions are not asked for again") {
  RateFitRequest request = measured_with(rates_of(0.84, 0.05, 1), 0.02);
  const RateFit before = fit_rates(request);
  for (std::size_t i = 0; i < request.steps.size(); ++i) {
    request.at_prior.push_back(seconds_of(i, request.prior));
  }
  const RateFit after = fit_rates(request);
  CHECK(after.rates == before.rates);
  CHECK(after.simulations == before.simulations - static_cast<int>(request.steps.size()));
}

TEST_CASE("a constant that cannot be fitted is refused by name") {
  RateFitRequest request = measured_with(rates_of(0.84, 0.05, 1), 0.02);
  request.free = {"gem"};
  CHECK_THROWS_WITH_AS(
      fit_rates(request),
      doctest::Contains("there is no constant \"gem\" (did you mean \"gemm\"?); those of a chip "
                        "are gemm, "),
      UsageError);
  request.free = {"gemm", "step", "gemm"};
  CHECK_THROWS_WITH_AS(fit_rates(request), "gemm is named twice", UsageError);
  request.free = {"optimizer"};
  request.prior.optimizer = 0;
  CHECK_THROWS_WITH_AS(
      fit_rates(request),
      "optimizer cannot be fitted: the built-in value is 0, and the fit is of its logarithm",
      UsageError);
}

TEST_CASE("an error of the first step that has one ends the fit, and so does an interrupt") {
  RateFitRequest request = measured_with(rates_of(0.84, 0.05, 1), 0.02);
  request.threads = 4;
  request.predict = [](std::size_t step, const KernelRates& rates) {
    if (step == 7 || step == 3) throw UsageError("step " + std::to_string(step));
    return seconds_of(step, rates);
  };
  CHECK_THROWS_WITH_AS(fit_rates(request), "step 3", UsageError);

  std::atomic<bool> interrupted{false};
  std::atomic<int> calls{0};
  request.interrupted = &interrupted;
  request.predict = [&](std::size_t step, const KernelRates& rates) {
    if (++calls == 30) interrupted = true;  // behind the first round of all steps
    return seconds_of(step, rates);
  };
  CHECK_THROWS_AS(fit_rates(request), FitInterrupted);
  CHECK(calls < 30 + 4);
}

TEST_CASE("errors of steps") {
  const StepErrors errors = step_errors({1, 2, 4, 10}, {1.1, 1.8, 4, 13});
  CHECK(errors.mean == doctest::Approx((0.1 + 0.1 + 0 + 0.3) / 4));
  CHECK(errors.median == doctest::Approx(0.1));
  CHECK(errors.p95 == doctest::Approx(0.1 + 0.85 * 0.2));  // place 2.85 of 0, 0.1, 0.1, 0.3
  CHECK(errors.worst == doctest::Approx(0.3));
  CHECK(errors.worst_step == 3);
  CHECK(errors.bias == doctest::Approx((0.1 - 0.1 + 0 + 0.3) / 4));
  CHECK(step_errors({2}, {1}).p95 == doctest::Approx(0.5));
}

}  // namespace stageline::rate_fit_tests
