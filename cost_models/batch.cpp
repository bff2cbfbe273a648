#include "cost_models/batch.hpp"

#include <fmt/core.h>

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include "cost_models/microbatch_fields.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"

namespace stageline {
namespace {

constexpr double most_bytes = 4611686018427387904.0;  // 2^62
constexpr double most_flops = most_bytes;

constexpr std::array<Time Layer::*, 2> update_times{&Layer::update, &Layer::update_spread};

Time to_time(double picoseconds, const std::string& name) {
  if (picoseconds > static_cast<double>(longest_input.count())) {
    throw UsageError(
        fmt::format("layer \"{}\" would take {:.3g} s at that batch size; at most {:.0f} s "
                    "can be simulated",
                    name, picoseconds / 1e12, to_seconds(longest_input)));
  }
  return Time{std::llround(picoseconds)};
}

Bytes to_bytes(double bytes, const std::string& name) {
  if (bytes > most_bytes) {
    throw UsageError(fmt::format(
        "\"{}\" would need {:.3g} bytes at that batch size; at most 2^62 can be simulated", name,
        bytes));
  }
  return Bytes{std::llround(bytes)};
}

std::int64_t to_flops(double count, const std::string& name) {
  if (count > most_flops) {
    throw UsageError(
        fmt::format("\"{}\" would do {:.3g} FLOPs at that batch size; at most 2^62 can be counted",
                    name, count));
  }
  return std::llround(count);
}

void check_same_layers(const std::vector<Model>& measured) {
  const Model& first = measured[0];
  for (const Model& model : measured) {
    if (model.batch < 1) {
      throw UsageError(
          fmt::format("the trace \"{}\" does not say its batch size, so its costs at another one "
                      "are not known; "
                      "give its own size with --batch when it is imported",
                      model.name));
    }
    bool same = model.layers.size() == first.layers.size() && model.edges == first.edges &&
                model.sharding == first.sharding;
    for (std::size_t i = 0; same && i < first.layers.size(); ++i) {
      same = model.layers[i].name == first.layers[i].name &&
             model.layers[i].weights == first.layers[i].weights &&
             model.layers[i].collectives.size() == first.layers[i].collectives.size();
    }
    if (!same) {
      throw UsageError(
          fmt::format("\"{}\" at batch {} and \"{}\" at batch {} are not the same layers",
                      first.name, first.batch, model.name, model.batch));
    }
    if (std::count_if(measured.begin(), measured.end(),
                      [&](const Model& other) { return other.batch == model.batch; }) > 1) {
      throw UsageError(fmt::format("\"{}\" has two measurements at batch {}; one is enough",
                                   model.name, model.batch));
    }
  }
}

// Rounding apart must not make a backward that is the sum of its halves anything else.
void keep_sum(const std::vector<Model>& measured, std::size_t i, Layer& layer) {
  const bool is_sum = std::all_of(measured.begin(), measured.end(), [&](const Model& model) {
    const Layer& was = model.layers[i];
    return was.backward == was.input_grad + was.weight_grad;
  });
  if (is_sum) layer.backward = layer.input_grad + layer.weight_grad;
}

constexpr std::string_view batch_note = "Batch ";

Origin estimated(Origin origin) {
  return origin == Origin::synthetic ? Origin::synthetic : Origin::estimated;
}

Model in_proportion(const std::vector<Model>& measured, int batch) {
  Model model = measured[0];
  const double factor = static_cast<double>(batch) / model.batch;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    Layer& layer = model.layers[i];
    for (const auto field : microbatch_times) {
      layer.*field = to_time(static_cast<double>((layer.*field).count()) * factor, layer.name);
    }
    for (const auto field : microbatch_sizes) {
      layer.*field = to_bytes(static_cast<double>((layer.*field).count) * factor, layer.name);
    }
    for (const auto field : microbatch_flops) {
      layer.*field = to_flops(static_cast<double>(layer.*field) * factor, layer.name);
    }
    const auto enlarge = [&](std::vector<LayerCollective>& collectives) {
      for (LayerCollective& one : collectives) {
        one.bytes = to_bytes(static_cast<double>(one.bytes.count) * factor, layer.name);
      }
    };
    enlarge(layer.collectives);
    for (LayerModule& module : layer.modules) {
      module.forward = to_time(static_cast<double>(module.forward.count()) * factor, layer.name);
      module.stash = to_bytes(static_cast<double>(module.stash.count) * factor, layer.name);
      module.flops = to_flops(static_cast<double>(module.flops) * factor, layer.name);
      enlarge(module.collectives);
    }
    keep_sum(measured, i, layer);
  }
  model.input = to_bytes(static_cast<double>(model.input.count) * factor, model.name);
  model.provenance.notes.push_back(
      fmt::format("{}{} is estimated: times and activations of batch {} in proportion; what a "
                  "layer costs at any size is not known from one.",
                  batch_note, batch, model.batch));
  model.batch = batch;
  model.whole = {};  // nobody ran it at that size
  return model;
}

// The line a + b·x nearest to the points in the sense of least squares, a and b not negative. The
// sum of squares is convex, so where the free line has a negative a or b, the best lies on that
// border.
class LineFit {
 public:
  explicit LineFit(const std::vector<Model>& measured)
      : x_(static_cast<Eigen::Index>(measured.size())) {
    for (Eigen::Index i = 0; i < x_.size(); ++i) {
      x_[i] = nth(measured, i).batch;
    }
    // In units of the largest size, the columns of the matrix are of one magnitude.
    scale_ = x_.maxCoeff();
    x_ /= scale_;
    Eigen::MatrixXd columns(x_.size(), 2);
    columns << Eigen::VectorXd::Ones(x_.size()), x_;
    solver_.compute(columns);
  }

  /// Value of the line at batch size `at`.
  double operator()(const Eigen::VectorXd& y, double at) const {
    const Eigen::Vector2d line = solver_.solve(y);
    double a = line[0];
    double b = line[1];
    if (a < 0) {
      a = 0;
      b = x_.dot(y) / x_.squaredNorm();
    } else if (b < 0) {
      a = y.mean();
      b = 0;
    }
    return a + b * (at / scale_);
  }

 private:
  Eigen::VectorXd x_;
  double scale_ = 1;
  Eigen::ColPivHouseholderQR<Eigen::MatrixXd> solver_;
};

template <class Get>
Eigen::VectorXd collect(const std::vector<Model>& measured, Get get) {
  Eigen::VectorXd y(static_cast<Eigen::Index>(measured.size()));
  for (Eigen::Index i = 0; i < y.size(); ++i) {
    y[i] = static_cast<double>(get(nth(measured, i)));
  }
  return y;
}

Model fitted(const std::vector<Model>& measured, const LineFit& fit, int batch) {
  Model model = measured[0];
  model.batch = batch;
  model.whole = {};  // nobody ran it at that size
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    Layer& layer = model.layers[i];
    for (const auto field : microbatch_times) {
      const auto y =
          collect(measured, [&](const Model& m) { return (m.layers[i].*field).count(); });
      layer.*field = to_time(fit(y, batch), layer.name);
    }
    for (const auto field : microbatch_sizes) {
      const auto y = collect(measured, [&](const Model& m) { return (m.layers[i].*field).count; });
      layer.*field = to_bytes(fit(y, batch), layer.name);
    }
    for (const auto field : microbatch_flops) {
      const auto y = collect(measured, [&](const Model& m) { return m.layers[i].*field; });
      layer.*field = to_flops(fit(y, batch), layer.name);
    }
    for (std::size_t c = 0; c < layer.collectives.size(); ++c) {
      const auto y =
          collect(measured, [&](const Model& m) { return m.layers[i].collectives[c].bytes.count; });
      layer.collectives[c].bytes = to_bytes(fit(y, batch), layer.name);
    }
    layer.modules.clear();  // traces of several sizes have none
    for (const auto field : update_times) {
      const auto y =
          collect(measured, [&](const Model& m) { return (m.layers[i].*field).count(); });
      layer.*field = to_time(y.mean(), layer.name);
    }
    keep_sum(measured, i, layer);
  }
  model.input = to_bytes(
      fit(collect(measured, [](const Model& m) { return m.input.count; }), batch), model.name);
  return model;
}

// How far the fitted lines are from what was measured.
struct Residuals {
  double median = 0;  // of the layers' worst relative residuals
  double worst = 0;   // of all layers
  std::string worst_layer;
  std::size_t layers = 0;  // that were looked at
};

// Residuals of forward and backward together, over the layers that take more than 1 % of the time,
// or over all when none does.
Residuals residuals_of(const std::vector<Model>& measured, const LineFit& fit) {
  std::vector<Model> refitted;
  refitted.reserve(measured.size());
  for (const Model& model : measured) refitted.push_back(fitted(measured, fit, model.batch));
  double total = 0;
  for (const Model& model : measured) total += to_seconds(forward_backward(model));
  const auto seconds = [](const Layer& layer) {
    return to_seconds(layer.forward + layer.backward);
  };
  for (const double share : {0.01, 0.0}) {
    Residuals result;
    std::vector<double> all;
    for (std::size_t i = 0; i < measured[0].layers.size(); ++i) {
      double sum = 0;
      double worst = 0;
      for (std::size_t k = 0; k < measured.size(); ++k) {
        const double was = seconds(measured[k].layers[i]);
        sum += was;
        if (was > 0) worst = std::max(worst, std::abs(seconds(refitted[k].layers[i]) / was - 1));
      }
      if (sum <= share * total) continue;
      all.push_back(worst);
      if (worst >= result.worst) {
        result.worst = worst;
        result.worst_layer = measured[0].layers[i].name;
      }
    }
    if (all.empty()) continue;
    std::sort(all.begin(), all.end());
    result.layers = all.size();
    result.median = (all[(all.size() - 1) / 2] + all[all.size() / 2]) / 2;
    return result;
  }
  return {};
}

std::string fit_note(const std::vector<Model>& measured, const LineFit& fit, int batch) {
  int least = std::numeric_limits<int>::max();
  int most = 0;
  std::string list;
  for (const Model& model : measured) {
    least = std::min(least, model.batch);
    most = std::max(most, model.batch);
    list += fmt::format("{}{}", list.empty() ? "" : ", ", model.batch);
  }
  const Residuals residuals = residuals_of(measured, fit);
  std::string note = fmt::format(
      "{}{} is {}: the least-squares line a + b·batch of every quantity over the batch sizes "
      "{}; "
      "relative residual of forward and backward over {} layer{}: median {:.2f} %, worst {:.2f} "
      "%{}",
      batch_note, batch, batch < least || batch > most ? "extrapolated" : "interpolated", list,
      residuals.layers, residuals.layers == 1 ? "" : "s", residuals.median * 100,
      residuals.worst * 100,
      residuals.worst_layer.empty() ? "" : fmt::format(" (\"{}\")", residuals.worst_layer));
  if (measured.size() == 2) note += "; two sizes fix a line, so this says little";
  return note + ".";
}

}  // namespace

Model at_batch(const std::vector<Model>& measured, int batch) {
  if (batch < 1) throw UsageError(fmt::format("a batch size must be at least 1 (it is {})", batch));
  if (measured.empty()) throw UsageError("there is no measured model to scale");
  check_same_layers(measured);
  for (const Model& model : measured) {
    if (model.batch == batch) return model;
  }
  if (measured.size() == 1) {
    Model model = in_proportion(measured, batch);
    model.provenance.origin = estimated(model.provenance.origin);
    return model;
  }
  const LineFit fit(measured);
  Model model = fitted(measured, fit, batch);
  model.provenance.notes.push_back(fit_note(measured, fit, batch));
  model.provenance.origin = estimated(model.provenance.origin);
  return model;
}

bool is_on_batch(const std::string& note) { return note.starts_with(batch_note); }

}  // namespace stageline
