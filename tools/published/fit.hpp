// Robust least squares of few positive constants on measured values, with log-normal priors.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace stageline {

/// A constant to fit. Its logarithm has a normal prior.
struct FreeConstant {
  std::string name;
  double prior = 1;   // median of the prior, above 0
  double spread = 1;  // standard deviation of the logarithm, above 0
  double least = 0;   // bounds of the value, 0 < least < most
  double most = 0;
  friend bool operator==(const FreeConstant&, const FreeConstant&) = default;
};

/// The predictions of all points, in the unit of the measured values and above 0, for values of the
/// constants in their order. It is taken for expensive: fit() calls it once for the start, and once
/// a constant and once or more in each of few iterations.
using PredictPoints = std::function<std::vector<double>(const std::vector<double>& values)>;

struct FitOptions {
  double scale = 0.02;       // of the soft-L1 loss, in log(predicted/measured)
  double difference = 1e-3;  // of a constant's logarithm, by which slopes are taken
  double tolerance = 1e-3;   // of the constants' logarithms, at which the fit has converged
  int most_iterations = 20;
};

/// Predictions near a set of values, to first order in logarithms:
///   log t[p] = log predicted[p] + Σ slopes[c][p] · log(value[c] / at[c])
struct LocalModel {
  std::vector<double> at;                   // by constant
  std::vector<double> predicted;            // by point, at `at`
  std::vector<std::vector<double>> slopes;  // by constant and point
};

struct FittedConstant {
  double value = 0;
  double standard_error = 0;  // of the logarithm; at most the prior's spread
  bool at_bound = false;
};

struct FitResult {
  std::vector<FittedConstant> constants;  // in the order of the free ones
  std::vector<double> predicted;          // by point, at these values
  LocalModel local;                       // there, or where the last slopes were taken
  double loss = 0;
  int iterations = 0;
  bool converged = false;
};

/// Minimizes
///   Σ over points of 2(√(1 + (r/scale)²) − 1)  +  Σ over constants of (log(value/prior)/spread)²
/// with r = log(predicted/measured): the loss is quadratic for small r and linear for large ones,
/// so that few slow runs do not move the constants.
///
/// The method is Gauss–Newton for convex-composite functions (Burke and Ferris 1995,
/// doi 10.1007/BF01585997): predictions are linearized in logarithms by forward differences, the
/// loss of the linear model, which is convex, is minimized within the bounds without further
/// predictions, and the step is halved until the loss of true predictions decreases.
///
/// Standard errors: with H the second derivative of half the loss at the optimum, P the priors'
/// part of it, and φ ≥ 1 the ratio of the residuals' scatter to that which the scale allows for,
/// the covariance is H⁻¹(φ(H − P) + P)H⁻¹. A constant on which no prediction depends keeps its
/// prior and its spread.
///
/// `start`: values to begin with; empty: the priors. Throws std::invalid_argument where a measured
/// value, a prediction, a prior, a spread or a bound is out of its range, or counts differ.
FitResult fit(const std::vector<double>& measured, const PredictPoints& predict,
              const std::vector<FreeConstant>& constants, const FitOptions& options = {},
              const std::vector<double>& start = {});

/// The slopes at `values`, of which the predictions are `predicted`.
LocalModel local_model(const PredictPoints& predict, const std::vector<FreeConstant>& constants,
                       const std::vector<double>& values, const std::vector<double>& predicted,
                       const FitOptions& options = {});

/// fit() of a local model alone: exact where predictions are powers of the constants. Points that
/// are not `kept` count as if they were absent; empty: all are kept.
FitResult fit_local(const std::vector<double>& measured, const LocalModel& model,
                    const std::vector<FreeConstant>& constants, const std::vector<bool>& kept = {},
                    const FitOptions& options = {});

}  // namespace stageline
