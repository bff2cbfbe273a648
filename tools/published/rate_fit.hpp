// Chooses, by cross-validation, how many constants of a chip measured steps determine, and fits
// them.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cost_models/transformers/kernel_rates.hpp"
#include "tools/published/fit.hpp"

namespace stageline {

struct MeasuredStep {
  std::string group;   // points of one group are left out together
  double seconds = 0;  // above 0
};

/// Seconds of a step by these rates. Called by several threads at once.
using PredictStep = std::function<double(std::size_t step, const KernelRates& rates)>;

/// Figures of |predicted/measured − 1|. All are shares.
struct StepErrors {
  double mean = 0;
  double median = 0;
  double p95 = 0;  // by linear interpolation, as NumPy's percentile
  double worst = 0;
  std::size_t worst_step = 0;
  double bias = 0;  // mean of predicted/measured − 1
};
/// The errors of at least one step.
StepErrors step_errors(const std::vector<double>& measured, const std::vector<double>& predicted);

/// A set of free constants, fitted to all steps.
struct RateSet {
  std::vector<std::string> free;
  std::vector<FreeConstant> priors;  // in the order of `free`
  FitResult fit;
  /// Errors of every step, predicted with the constants fitted to the steps of the other groups.
  /// Empty for fewer than two groups, as is `left_out`: the same predictions, in seconds by step.
  std::optional<StepErrors> cross_validated;
  std::vector<double> left_out;
};

struct RateFit {
  std::vector<RateSet> sets;      // in the order tried
  std::size_t chosen = 0;         // of the sets
  std::vector<std::string> idle;  // constants that were to be free, on which no step depends
  KernelRates rates;              // those of the priors, but the chosen set's free ones
  StepErrors before;              // with the priors
  StepErrors after;               // with `rates`, on the steps that they are fitted to
  int groups = 0;
  int simulations = 0;  // calls of PredictStep
};

struct RateFitRequest {
  std::vector<MeasuredStep> steps;  // at least one
  PredictStep predict;
  KernelRates prior;              // every rate that may be free is above 0
  std::vector<double> at_prior;   // the steps by these rates, where they are known; else empty
  std::vector<std::string> free;  // exactly these; empty: chosen from default_free()
  bool every = false;  // all that a step depends on, however few steps: their priors hold them
  double scale = FitOptions{}.scale;  // of the loss, in log(predicted/measured)
  int threads = 1;                    // the result does not depend on it
  /// FitInterrupted is thrown where it is set.
  const std::atomic<bool>* interrupted = nullptr;
  /// Called on the caller's thread; may be empty.
  std::function<void(const std::string& doing, int simulations)> progress{};
};

/// Constants in the order in which they are set free: gemm, step, network, nvlink, kernel,
/// layer_floor.
std::vector<std::string> default_free();

/// Sets of 1, 2, … constants are fitted; the search ends behind two that do not lower the
/// cross-validated mean error. The set chosen is the smallest one that the set with the least mean
/// does not beat by more than one standard error of their difference over groups. With one group,
/// the first constant alone is free. For the cross-validation of a set its constants are fitted to
/// the linear model at its optimum, and where they move out of its reach (half a percent of a step,
/// in the mean) to one nearer by; the steps left out are simulated. Throws UsageError for a name
/// that is none of kernel_constants(), and what `predict` throws for the first step for which it
/// does.
RateFit fit_rates(const RateFitRequest& request);

}  // namespace stageline
