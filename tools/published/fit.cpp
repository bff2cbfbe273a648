// Gauss–Newton on expensive predictions; iteratively reweighted least squares on their linear
// model.
#include "tools/published/fit.hpp"

#include <fmt/core.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "sim/base/index.hpp"

namespace stageline {
namespace {

using Vector = Eigen::VectorXd;
using Matrix = Eigen::MatrixXd;

constexpr int most_halvings = 12;
constexpr int most_reweightings = 500;
constexpr double reweighting_tolerance = 1e-10;  // of the constants' logarithms

Eigen::Index rows_of(const std::vector<double>& values) {
  return static_cast<Eigen::Index>(values.size());
}

Vector logs(const std::vector<double>& values) {
  Vector result(rows_of(values));
  for (Eigen::Index i = 0; i < result.size(); ++i) result(i) = std::log(nth(values, i));
  return result;
}

bool positive(double value) { return value > 0 && std::isfinite(value); }

void check_positive(const std::vector<double>& values, const char* what) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (positive(values[i])) continue;
    throw std::invalid_argument(
        fmt::format("the {} of point {} is {}, not above 0", what, i, values[i]));
  }
}

void check_constants(const std::vector<FreeConstant>& constants) {
  for (const FreeConstant& one : constants) {
    if (positive(one.prior) && positive(one.spread) && positive(one.least) &&
        one.most > one.least) {
      continue;
    }
    throw std::invalid_argument(
        fmt::format("{}: prior {}, spread {} and the bounds {} and {} must be above 0, and the "
                    "bounds in order",
                    one.name, one.prior, one.spread, one.least, one.most));
  }
}

// The loss in x, the logarithms of the constants, with its priors and bounds.
class Loss {
 public:
  Loss(const std::vector<double>& measured, const std::vector<FreeConstant>& constants,
       const std::vector<bool>& kept, double scale)
      : measured_(logs(measured)), kept_(Vector::Ones(measured_.size())), scale_(scale) {
    for (std::size_t i = 0; i < kept.size(); ++i) {
      kept_(static_cast<Eigen::Index>(i)) = kept[i] ? 1 : 0;
    }
    const auto count = static_cast<Eigen::Index>(constants.size());
    for (Vector* of : {&prior_, &precision_, &least_, &most_}) of->resize(count);
    for (Eigen::Index c = 0; c < count; ++c) {
      const FreeConstant& one = nth(constants, c);
      prior_(c) = std::log(one.prior);
      precision_(c) = 1 / (one.spread * one.spread);
      least_(c) = std::log(one.least);
      most_(c) = std::log(one.most);
    }
  }

  Vector within_bounds(const Vector& x) const { return x.cwiseMax(least_).cwiseMin(most_); }
  Vector residuals(const Vector& log_predicted) const { return log_predicted - measured_; }
  const Vector& precision() const { return precision_; }

  double operator()(const Vector& x, const Vector& log_predicted) const {
    const Vector z = squares(log_predicted);
    const Vector from = x - prior_;
    return 2 * kept_.dot(((1 + z.array()).sqrt() - 1).matrix()) +
           from.cwiseProduct(from).dot(precision_);
  }

  // Weights of a quadratic function that is nowhere below half the loss and touches it here.
  Vector weights(const Vector& log_predicted) const {
    const Vector z = squares(log_predicted);
    return kept_.cwiseProduct((1 + z.array()).rsqrt().matrix()) / (scale_ * scale_);
  }
  // Second derivatives of half the loss by the residuals.
  Vector curvatures(const Vector& log_predicted) const {
    const Vector z = squares(log_predicted);
    return kept_.cwiseProduct((1 + z.array()).pow(-1.5).matrix()) / (scale_ * scale_);
  }
  // First derivatives of half the loss by the residuals.
  Vector influences(const Vector& log_predicted) const {
    return weights(log_predicted).cwiseProduct(residuals(log_predicted));
  }
  Vector gradient_of_priors(const Vector& x) const { return (x - prior_).cwiseProduct(precision_); }
  // Whether x is at a bound, and descent would leave it.
  bool blocked(Eigen::Index c, const Vector& x, const Vector& gradient) const {
    return (x(c) <= least_(c) && gradient(c) > 0) || (x(c) >= most_(c) && gradient(c) < 0);
  }
  bool at_bound(Eigen::Index c, const Vector& x) const {
    return x(c) <= least_(c) || x(c) >= most_(c);
  }

 private:
  Vector squares(const Vector& log_predicted) const {
    const Vector r = residuals(log_predicted) / scale_;
    return r.cwiseProduct(r);
  }

  Vector measured_;   // logarithms
  Vector kept_;       // 1 or 0, by point
  Vector prior_;      // logarithms, as those below
  Vector precision_;  // of the prior: 1/spread²
  Vector least_, most_;
  double scale_;
};

// LocalModel in logarithms.
struct LinearModel {
  Vector at;
  Vector predicted;
  Matrix slopes;  // point × constant

  explicit LinearModel(const LocalModel& model)
      : at(logs(model.at)), predicted(logs(model.predicted)), slopes(predicted.size(), at.size()) {
    for (Eigen::Index c = 0; c < at.size(); ++c) {
      for (Eigen::Index p = 0; p < predicted.size(); ++p) {
        slopes(p, c) = nth(nth(model.slopes, c), p);
      }
    }
  }
  Vector operator()(const Vector& x) const { return predicted + slopes * (x - at); }
};

// The step to the minimum of half a quadratic loss within the bounds: constants that would leave
// them stay, the others take what is left.
Vector bounded_step(const Loss& loss, const Vector& x, const Matrix& curvature,
                    const Vector& gradient) {
  std::vector<Eigen::Index> free;
  for (Eigen::Index c = 0; c < x.size(); ++c) {
    if (!loss.blocked(c, x, gradient)) free.push_back(c);
  }
  const auto count = static_cast<Eigen::Index>(free.size());
  Matrix inner(count, count);
  Vector slope(count);
  for (Eigen::Index i = 0; i < count; ++i) {
    slope(i) = gradient(nth(free, i));
    for (Eigen::Index j = 0; j < count; ++j) inner(i, j) = curvature(nth(free, i), nth(free, j));
  }
  const Vector solved = inner.ldlt().solve(-slope);
  Vector step = Vector::Zero(x.size());
  for (Eigen::Index i = 0; i < count; ++i) step(nth(free, i)) = solved(i);
  return step;
}

// The minimum of a convex function, found from above: each weighted least-squares loss is nowhere
// below it (Hunter and Lange 2004, doi 10.1198/0003130042836).
Vector minimum(const Loss& loss, const LinearModel& model, Vector x) {
  for (int i = 0; i < most_reweightings; ++i) {
    const Vector predicted = model(x);
    const Vector weights = loss.weights(predicted);
    Matrix curvature = model.slopes.transpose() * weights.asDiagonal() * model.slopes;
    curvature.diagonal() += loss.precision();
    const Vector gradient =
        model.slopes.transpose() * loss.influences(predicted) + loss.gradient_of_priors(x);
    const Vector step = bounded_step(loss, x, curvature, gradient);
    const double before = loss(x, predicted);
    Vector next = loss.within_bounds(x + step);
    for (double share = 0.5; share > 1e-6 && loss(next, model(next)) > before; share /= 2) {
      next = loss.within_bounds(x + share * step);  // a bound may turn the step
    }
    if (loss(next, model(next)) > before) return x;
    const double moved = (next - x).cwiseAbs().maxCoeff();
    x = next;
    if (moved < reweighting_tolerance) break;
  }
  return x;
}

Vector standard_errors(const Loss& loss, const LinearModel& model, const Vector& log_predicted) {
  const Vector curvatures = loss.curvatures(log_predicted);
  const Matrix data = model.slopes.transpose() * curvatures.asDiagonal() * model.slopes;
  Matrix whole = data;
  whole.diagonal() += loss.precision();
  const double allowed = curvatures.sum();
  const double scatter =
      allowed > 0 ? std::max(1.0, loss.influences(log_predicted).squaredNorm() / allowed) : 1.0;
  Matrix middle = scatter * data;
  middle.diagonal() += loss.precision();
  const Matrix inverse = whole.inverse();
  const Matrix covariance = inverse * middle * inverse;
  return covariance.diagonal().cwiseSqrt().cwiseMin(loss.precision().cwiseInverse().cwiseSqrt());
}

std::vector<double> values_of(const Vector& logarithms) {
  std::vector<double> values;
  for (Eigen::Index i = 0; i < logarithms.size(); ++i) values.push_back(std::exp(logarithms(i)));
  return values;
}

// exp(log(bound)) may be off by an ulp.
std::vector<double> constants_of(const Vector& x, const std::vector<FreeConstant>& constants) {
  std::vector<double> values = values_of(x);
  for (std::size_t c = 0; c < values.size(); ++c) {
    values[c] = std::clamp(values[c], constants[c].least, constants[c].most);
  }
  return values;
}

std::vector<FittedConstant> fitted(const Loss& loss, const LinearModel& model, const Vector& x,
                                   const Vector& log_predicted,
                                   const std::vector<FreeConstant>& constants) {
  if (constants.empty()) return {};
  const Vector errors = standard_errors(loss, model, log_predicted);
  const std::vector<double> values = constants_of(x, constants);
  std::vector<FittedConstant> found;
  for (Eigen::Index c = 0; c < x.size(); ++c) {
    found.push_back({nth(values, c), errors(c), loss.at_bound(c, x)});
  }
  return found;
}

std::vector<double> checked(const PredictPoints& predict, const std::vector<double>& values,
                            std::size_t points) {
  std::vector<double> predicted = predict(values);
  if (predicted.size() != points) {
    throw std::invalid_argument(
        fmt::format("{} predictions of {} points", predicted.size(), points));
  }
  check_positive(predicted, "prediction");
  return predicted;
}

}  // namespace

LocalModel local_model(const PredictPoints& predict, const std::vector<FreeConstant>& constants,
                       const std::vector<double>& values, const std::vector<double>& predicted,
                       const FitOptions& options) {
  LocalModel model{values, predicted, {}};
  for (std::size_t c = 0; c < constants.size(); ++c) {
    std::vector<double> beside = values;
    beside[c] *= std::exp(options.difference);
    if (beside[c] > constants[c].most) beside[c] = values[c] * std::exp(-options.difference);
    const double moved = std::log(beside[c] / values[c]);
    const std::vector<double> there = checked(predict, beside, predicted.size());
    std::vector<double> slopes;
    for (std::size_t p = 0; p < predicted.size(); ++p) {
      slopes.push_back(std::log(there[p] / predicted[p]) / moved);
    }
    model.slopes.push_back(std::move(slopes));
  }
  return model;
}

FitResult fit_local(const std::vector<double>& measured, const LocalModel& model,
                    const std::vector<FreeConstant>& constants, const std::vector<bool>& kept,
                    const FitOptions& options) {
  check_positive(measured, "measured value");
  check_constants(constants);
  if (model.predicted.size() != measured.size() || model.slopes.size() != constants.size() ||
      model.at.size() != constants.size() || (!kept.empty() && kept.size() != measured.size())) {
    throw std::invalid_argument("a local model of other points or constants");
  }
  const Loss loss(measured, constants, kept, options.scale);
  const LinearModel linear(model);
  const Vector x =
      constants.empty() ? Vector{} : minimum(loss, linear, loss.within_bounds(linear.at));
  const Vector predicted = linear(x);
  FitResult found;
  found.constants = fitted(loss, linear, x, predicted, constants);
  found.predicted = values_of(predicted);
  found.local = model;
  found.loss = loss(x, predicted);
  found.converged = true;
  return found;
}

FitResult fit(const std::vector<double>& measured, const PredictPoints& predict,
              const std::vector<FreeConstant>& constants, const FitOptions& options,
              const std::vector<double>& start) {
  check_positive(measured, "measured value");
  check_constants(constants);
  std::vector<double> values = start;
  if (values.empty()) {
    for (const FreeConstant& one : constants) values.push_back(one.prior);
  }
  if (values.size() != constants.size()) throw std::invalid_argument("a start of other constants");
  for (std::size_t c = 0; c < values.size(); ++c) {
    values[c] = std::clamp(values[c], constants[c].least, constants[c].most);
  }

  const Loss loss(measured, constants, {}, options.scale);
  std::vector<double> predicted = checked(predict, values, measured.size());
  FitResult found;
  found.local = {values, predicted, {}};
  found.converged = constants.empty();
  while (!found.converged && found.iterations < options.most_iterations) {
    ++found.iterations;
    found.local = local_model(predict, constants, values, predicted, options);
    const Vector x = logs(values);
    const double before = loss(x, logs(predicted));
    const Vector step = minimum(loss, LinearModel(found.local), x) - x;
    double share = 1;
    bool moved = false;
    for (int i = 0; i < most_halvings && !moved; ++i, share /= 2) {
      if ((share * step).cwiseAbs().maxCoeff() < options.tolerance) break;
      const std::vector<double> tried = constants_of(x + share * step, constants);
      const std::vector<double> there = checked(predict, tried, measured.size());
      moved = loss(logs(tried), logs(there)) < before;
      if (moved) {
        values = tried;
        predicted = there;
      }
    }
    found.converged = !moved;
  }
  const LinearModel linear(found.local);
  const Vector x = logs(values);
  found.constants = fitted(loss, linear, x, logs(predicted), constants);
  found.predicted = predicted;
  found.loss = loss(x, logs(predicted));
  return found;
}

}  // namespace stageline
