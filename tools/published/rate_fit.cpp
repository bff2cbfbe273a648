// Fits sets of constants of a chip to simulated steps, on several threads.
#include "tools/published/rate_fit.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "sim/base/errors.hpp"
#include "tools/published/on_threads.hpp"

namespace stageline {
namespace {

constexpr int patience = 2;    // sets in a row that do not lower it
constexpr double far = 0.005;  // mean error of a linear model, of a logarithm: out of its reach
constexpr int most_relocations = 3;  // of a linear model for one group left out
constexpr double widest = 6;         // spreads below the prior, where there is no other bound

const KernelConstant& constant_called(const std::string& name) {
  std::vector<std::string> known;
  for (const KernelConstant& one : kernel_constants()) {
    if (one.name == name) return one;
    known.emplace_back(one.name);
  }
  throw UsageError(fmt::format("there is no constant \"{}\"{}; those of a chip are {}", name,
                               did_you_mean(name, known), fmt::join(known, ", ")));
}

std::vector<double> all_of(const KernelRates& rates) {
  std::vector<double> values;
  for (const KernelConstant& one : kernel_constants()) values.push_back(rates.*one.member);
  return values;
}

FreeConstant prior_of(const KernelConstant& constant, const KernelRates& rates) {
  const double prior = rates.*constant.member;
  const std::string name(constant.name);
  if (!(prior > 0)) {
    throw UsageError(fmt::format(
        "{} cannot be fitted: the built-in value is {}, and the fit is of its logarithm", name,
        prior));
  }
  // A bound of 0 has no logarithm.
  const double least = std::max(constant.least, prior * std::exp(-widest * constant.spread));
  return {name, prior, constant.spread, least, constant.most};
}

// Simulated steps, each once for the same rates.
class Simulations {
 public:
  explicit Simulations(const RateFitRequest& request) : request_(request) {
    for (std::size_t i = 0; i < request.at_prior.size(); ++i) {
      known_[all_of(request.prior)][i] = request.at_prior[i];
    }
  }

  // Seconds of the steps `which`, in their order.
  std::vector<double> operator()(const std::vector<std::size_t>& which, const KernelRates& rates) {
    std::map<std::size_t, double>& known = known_[all_of(rates)];
    std::vector<std::size_t> missing;
    for (const std::size_t step : which) {
      if (known.count(step) == 0) missing.push_back(step);
    }
    const std::vector<double> seconds = simulate(missing, rates);
    for (std::size_t i = 0; i < missing.size(); ++i) known[missing[i]] = seconds[i];
    std::vector<double> result;
    for (const std::size_t step : which) result.push_back(known.at(step));
    return result;
  }

  void say(const std::string& doing) { doing_ = doing; }
  int count() const { return count_; }

 private:
  std::vector<double> simulate(const std::vector<std::size_t>& missing, const KernelRates& rates) {
    std::vector<double> seconds(missing.size());
    on_threads(
        missing.size(), request_.threads, request_.interrupted,
        [&](std::size_t i) { seconds[i] = request_.predict(missing[i], rates); },
        [&](std::size_t begun) {
          if (request_.progress) request_.progress(doing_, count_ + static_cast<int>(begun));
        });
    count_ += static_cast<int>(missing.size());
    return seconds;
  }

  const RateFitRequest& request_;
  std::map<std::vector<double>, std::map<std::size_t, double>> known_;  // by rates and step
  std::string doing_;
  int count_ = 0;
};

class Fitting {
 public:
  explicit Fitting(const RateFitRequest& request) : request_(request), simulations_(request) {
    options_.scale = request.scale;
    for (std::size_t i = 0; i < request.steps.size(); ++i) {
      measured_.push_back(request.steps[i].seconds);
      groups_[request.steps[i].group].push_back(i);
      all_.push_back(i);
    }
  }

  RateFit run() {
    RateFit found;
    found.groups = static_cast<int>(groups_.size());
    simulations_.say("simulating with the built-in constants");
    found.before = step_errors(measured_, simulations_(all_, request_.prior));
    if (request_.every) {
      found.sets.push_back(fitted(dependent(), nullptr));
    } else if (!request_.free.empty()) {
      found.sets.push_back(fitted(request_.free, nullptr));
    } else {
      try_sets(found);
    }
    const RateSet& chosen = found.sets[found.chosen];
    found.rates = rates_with(chosen, values_of(chosen));
    found.after = step_errors(measured_, chosen.fit.predicted);
    found.simulations = simulations_.count();
    return found;
  }

 private:
  // The constants above 0 on which a step depends; the first of all where there is none.
  std::vector<std::string> dependent() {
    RateSet all;
    std::vector<double> values;
    for (const KernelConstant& one : kernel_constants()) {
      if (!(request_.prior.*one.member > 0)) continue;  // its logarithm is fitted
      all.free.emplace_back(one.name);
      all.priors.push_back(prior_of(one, request_.prior));
      values.push_back(all.priors.back().prior);
    }
    simulations_.say("looking for constants that steps depend on");
    const PredictPoints predict = predictions(all, all_);
    const LocalModel local = local_model(predict, all.priors, values, predict(values), options_);
    std::vector<std::string> found;
    for (std::size_t c = 0; c < all.free.size(); ++c) {
      if (depends(local.slopes[c])) found.push_back(all.free[c]);
    }
    if (found.empty()) found = {default_free().front()};
    return found;
  }

  void try_sets(RateFit& found) {
    double least = 0;
    int worse = 0;
    for (const std::string& name : default_free()) {
      const RateSet* const smaller = found.sets.empty() ? nullptr : &found.sets.back();
      std::vector<std::string> free = smaller ? smaller->free : std::vector<std::string>{};
      free.push_back(name);
      RateSet set = fitted(free, smaller);
      if (smaller && !matters(set)) {
        found.idle.push_back(name);
        continue;
      }
      found.sets.push_back(std::move(set));
      const std::optional<StepErrors>& errors = found.sets.back().cross_validated;
      if (!errors) return;  // of one group
      if (found.sets.size() == 1 || errors->mean < least) {
        least = errors->mean;
        worse = 0;
      } else if (++worse == patience) {
        break;
      }
    }
    const auto best = std::min_element(found.sets.begin(), found.sets.end(),
                                       [](const RateSet& a, const RateSet& b) {
                                         return a.cross_validated->mean < b.cross_validated->mean;
                                       });
    while (beats(*best, found.sets[found.chosen])) ++found.chosen;
  }

  // Whether errors of one set are less than those of another by more than a standard error, of
  // which a group is a sample: rows of one group err together.
  bool beats(const RateSet& one, const RateSet& other) const {
    const auto error = [this](const RateSet& set, std::size_t step) {
      return std::abs(set.left_out[step] / measured_[step] - 1);
    };
    std::vector<double> gains;
    for (const auto& [name, steps] : groups_) {
      double gain = 0;
      for (const std::size_t step : steps) gain += error(other, step) - error(one, step);
      gains.push_back(gain);
    }
    const auto count = static_cast<double>(gains.size());
    const double sum = std::accumulate(gains.begin(), gains.end(), 0.0);
    double squares = 0;
    for (const double gain : gains) squares += (gain - sum / count) * (gain - sum / count);
    return sum > std::sqrt(squares * count / (count - 1));
  }

  // Whether a step depends on the constant added last.
  static bool matters(const RateSet& set) { return depends(set.fit.local.slopes.back()); }

  static bool depends(const std::vector<double>& slopes) {
    return std::any_of(slopes.begin(), slopes.end(),
                       [](double slope) { return std::abs(slope) > 1e-6; });
  }

  RateSet fitted(const std::vector<std::string>& free, const RateSet* smaller) {
    simulations_.say(fmt::format("fitting {}", fmt::join(free, ", ")));
    RateSet set;
    set.free = free;
    for (const std::string& name : free) {
      set.priors.push_back(prior_of(constant_called(name), request_.prior));
    }
    std::vector<double> start = smaller ? values_of(*smaller) : std::vector<double>{};
    if (smaller) start.push_back(set.priors.back().prior);
    set.fit = fit(measured_, predictions(set, all_), set.priors, options_, start);
    if (groups_.size() > 1) {
      set.left_out = predicted_left_out(set);
      set.cross_validated = step_errors(measured_, set.left_out);
    }
    return set;
  }

  std::vector<double> predicted_left_out(const RateSet& set) {
    simulations_.say(fmt::format("leaving groups out, {}", fmt::join(set.free, ", ")));
    std::vector<double> predicted(all_.size());
    for (const auto& [name, left_out] : groups_) {
      const std::vector<double> values = without(set, left_out);
      const std::vector<double> there = simulations_(left_out, rates_with(set, values));
      for (std::size_t i = 0; i < left_out.size(); ++i) predicted[left_out[i]] = there[i];
    }
    return predicted;
  }

  // The constants fitted to all steps but these, on the linear model at the set's optimum; where a
  // constant leaves its reach, on one nearer by.
  std::vector<double> without(const RateSet& set, const std::vector<std::size_t>& left_out) {
    std::vector<bool> kept(all_.size(), true);
    for (const std::size_t step : left_out) kept[step] = false;
    std::vector<double> values =
        values_of(fit_local(measured_, set.fit.local, set.priors, kept, options_));
    if (reaches(set.fit.local, values)) return values;
    std::vector<std::size_t> rest;
    std::vector<double> measured;
    for (const std::size_t step : all_) {
      if (!kept[step]) continue;
      rest.push_back(step);
      measured.push_back(measured_[step]);
    }
    const PredictPoints predict = predictions(set, rest);
    for (int i = 0; i < most_relocations; ++i) {
      const LocalModel nearer = local_model(predict, set.priors, values, predict(values), options_);
      values = values_of(fit_local(measured, nearer, set.priors, {}, options_));
      if (reaches(nearer, values)) break;
    }
    return values;
  }

  // Whether the model is as good at `values`: in logarithms, a time with a term proportional to a
  // constant departs from its tangent by up to slope·Δ²/2.
  static bool reaches(const LocalModel& model, const std::vector<double>& values) {
    double departure = 0;
    for (std::size_t c = 0; c < values.size(); ++c) {
      const double moved = std::log(values[c] / model.at[c]);
      for (const double slope : model.slopes[c]) departure += std::abs(slope) * moved * moved / 2;
    }
    return departure <= far * static_cast<double>(model.predicted.size());
  }

  PredictPoints predictions(const RateSet& set, const std::vector<std::size_t>& steps) {
    return [this, &set, &steps](const std::vector<double>& values) {
      return simulations_(steps, rates_with(set, values));
    };
  }

  KernelRates rates_with(const RateSet& set, const std::vector<double>& values) const {
    KernelRates rates = request_.prior;
    for (std::size_t c = 0; c < values.size(); ++c) {
      rates.*constant_called(set.free[c]).member = values[c];
    }
    return rates;
  }

  static std::vector<double> values_of(const FitResult& fit) {
    std::vector<double> values;
    for (const FittedConstant& one : fit.constants) values.push_back(one.value);
    return values;
  }
  static std::vector<double> values_of(const RateSet& set) { return values_of(set.fit); }

  const RateFitRequest& request_;
  Simulations simulations_;
  FitOptions options_;
  std::vector<double> measured_;
  std::map<std::string, std::vector<std::size_t>> groups_;  // steps, by name
  std::vector<std::size_t> all_;
};

double quantile(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - std::floor(place)) * (sorted[above] - sorted[below]);
}

}  // namespace

StepErrors step_errors(const std::vector<double>& measured, const std::vector<double>& predicted) {
  StepErrors found;
  std::vector<double> sizes;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    const double error = predicted[i] / measured[i] - 1;
    sizes.push_back(std::abs(error));
    found.bias += error;
    found.mean += std::abs(error);
    if (sizes[i] > sizes[found.worst_step]) found.worst_step = i;
  }
  found.mean /= static_cast<double>(sizes.size());
  found.bias /= static_cast<double>(sizes.size());
  std::sort(sizes.begin(), sizes.end());
  found.median = quantile(sizes, 0.5);
  found.p95 = quantile(sizes, 0.95);
  found.worst = sizes.back();
  return found;
}

std::vector<std::string> default_free() {
  return {"gemm", "step", "network", "nvlink", "kernel", "layer_floor"};
}

RateFit fit_rates(const RateFitRequest& request) {
  std::set<std::string> seen;
  for (const std::string& name : request.free) {
    constant_called(name);
    if (!seen.insert(name).second) throw UsageError(fmt::format("{} is named twice", name));
  }
  return Fitting(request).run();
}

}  // namespace stageline
