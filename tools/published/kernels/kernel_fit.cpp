#include "tools/published/kernels/kernel_fit.hpp"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <tuple>

#include "cost_models/pricing.hpp"
#include "cost_models/transformers/kernels.hpp"
#include "sim/base/errors.hpp"

namespace stageline {
namespace {

constexpr std::int64_t large = 256 << 20;  // bytes
constexpr std::size_t fewest_products = 6;
constexpr double least_launches = 3;  // of a product, as long as so many launches
constexpr std::size_t unknowns = 3;   // of the curve of products

struct Estimate {
  double value = 0;
  double standard_error = 0;  // of its logarithm
  std::size_t rows = 0;
};

// The geometric mean of positive values. The error is that of the mean of the logarithms.
std::optional<Estimate> geometric_mean(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  const auto count = static_cast<double>(values.size());
  double mean = 0;
  for (const double value : values) mean += std::log(value) / count;
  double squares = 0;
  for (const double value : values) squares += std::pow(std::log(value) - mean, 2);
  const double error = values.size() < 2 ? 0 : std::sqrt(squares / (count - 1) / count);
  return Estimate{std::exp(mean), error, values.size()};
}

std::optional<Estimate> median(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  const std::optional<Estimate> spread = geometric_mean(values);
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  const double value =
      values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
  return Estimate{value, spread->standard_error, values.size()};
}

bool is_aligned(const TimedKernel& one) {
  return fills_tiles(static_cast<double>(one.columns), static_cast<double>(one.inner));
}

// (1, 1/m, 1/n + 1/k) times the curve is t·peak/2mnk.
std::array<double, unknowns> terms(const TimedKernel& one) {
  return {1, 1 / static_cast<double>(one.rows),
          1 / static_cast<double>(one.columns) + 1 / static_cast<double>(one.inner)};
}

double along(const std::array<double, unknowns>& curve, const TimedKernel& one) {
  const std::array<double, unknowns> of = terms(one);
  double sum = 0;
  for (std::size_t i = 0; i < unknowns; ++i) sum += curve[i] * of[i];
  return sum;
}

struct ProductCurve {
  std::array<double, unknowns> curve{};
  std::array<double, unknowns> error{};  // of the logarithms of gemm, gemm_rows, gemm_columns
};

// Least squares of relative errors with these of the unknowns free, the others 0.
std::optional<ProductCurve> fitted_with(const std::vector<TimedKernel>& products, double peak,
                                        std::span<const std::size_t> free, double& squares) {
  const auto rows = static_cast<Eigen::Index>(products.size());
  const auto columns = static_cast<Eigen::Index>(free.size());
  Eigen::MatrixXd system(rows, columns);
  for (Eigen::Index r = 0; r < rows; ++r) {
    const TimedKernel& one = products[static_cast<std::size_t>(r)];
    const double measured = one.seconds * peak / one.flops;
    for (Eigen::Index c = 0; c < columns; ++c) {
      system(r, c) = terms(one)[free[static_cast<std::size_t>(c)]] / measured;
    }
  }
  const Eigen::VectorXd target = Eigen::VectorXd::Ones(rows);
  const Eigen::ColPivHouseholderQR<Eigen::MatrixXd> solver(system);
  if (solver.rank() < columns) return std::nullopt;
  const Eigen::VectorXd solved = solver.solve(target);
  if (solved.minCoeff() < 0) return std::nullopt;
  squares = (system * solved - target).squaredNorm();
  const double variance = squares / static_cast<double>(std::max<Eigen::Index>(1, rows - columns));
  const Eigen::MatrixXd covariance = variance * (system.transpose() * system).inverse();
  ProductCurve found;
  for (Eigen::Index c = 0; c < columns; ++c) {
    const std::size_t at = free[static_cast<std::size_t>(c)];
    found.curve[at] = solved(c);
    // A length is this unknown over the first, so both vary.
    double relative = covariance(c, c) / (solved(c) * solved(c));
    if (c > 0) {
      relative += covariance(0, 0) / (solved(0) * solved(0)) -
                  2 * covariance(0, c) / (solved(0) * solved(c));
    }
    found.error[at] = std::sqrt(std::max(0.0, relative));
  }
  return found;
}

ProductCurve fitted_products(const std::vector<TimedKernel>& products, double peak) {
  constexpr std::array<std::size_t, unknowns> all{0, 1, 2};
  constexpr std::array<std::size_t, 2> by_rows{0, 1};
  constexpr std::array<std::size_t, 2> by_columns{0, 2};
  constexpr std::array<std::size_t, 1> none{0};
  const std::array<std::span<const std::size_t>, 4> sets{all, by_rows, by_columns, none};
  std::optional<ProductCurve> best;
  double least = 0;
  for (const std::span<const std::size_t> free : sets) {
    double squares = 0;
    std::optional<ProductCurve> found = fitted_with(products, peak, free, squares);
    if (!found || (best && squares >= least)) continue;
    best = found;
    least = squares;
  }
  return *best;  // one unknown alone always goes: shares are above 0
}

class KernelFit {
 public:
  KernelFit(const KernelTable& table, const DeviceKind& kind)
      : table_(table), kind_(kind), bandwidth_(bandwidth_of(kind)) {
    rates_ = built_in_ = rates_of(kind.name).rates;
  }

  KernelsFit result() {
    issue();
    products();
    other_products();
    attention();
    elementwise();
    for (const KernelConstant& constant : kernel_constants()) place(constant);
    fit_.calibration.kind = kind_.name;
    fit_.calibration.rates = rates_;
    fit_.calibration.date = table_.date;
    fit_.calibration.source = fmt::format("{} kernels timed on {} with PyTorch {}",
                                          table_.rows.size(), table_.device, table_.torch);
    grouped_curve();
    attention_curve();
    return std::move(fit_);
  }

 private:
  static double bandwidth_of(const DeviceKind& kind) {
    if (kind.memory_bandwidth.is_unlimited()) {
      throw UsageError(
          fmt::format("{} states no bandwidth of its memory, of which kernels reach a "
                      "share",
                      kind.name));
    }
    return static_cast<double>(kind.memory_bandwidth.bytes_per_second);
  }

  double peak(const std::string& precision) const {
    const PeakRate* const stated = peak_of(kind_, precision);
    if (stated == nullptr) {
      throw UsageError(fmt::format("{} states no peak in {}, of which kernels reach a share",
                                   kind_.name, precision));
    }
    return stated->flops;
  }

  // Those rows, with the seconds of their work alone: the cost model adds that of a launch. What is
  // hardly more than a launch is left out.
  template <class Wanted>
  std::vector<TimedKernel> worked(const std::string& what, Wanted&& wanted) const {
    std::vector<TimedKernel> found;
    for (const TimedKernel& one : table_.rows) {
      if (one.what != what || !wanted(one) || one.seconds < least_launches * launch_) continue;
      found.push_back(one);
      found.back().seconds -= launch_;
    }
    return found;
  }

  void found(std::string_view name, const std::optional<Estimate>& estimate, std::string from) {
    if (!estimate) return;
    KernelFitted one;
    one.value = estimate->value;
    one.standard_error = estimate->standard_error;
    one.from = std::move(from);
    found_.emplace(name, one);
  }

  void products() {
    const std::vector<TimedKernel> of = worked("product", [](const TimedKernel& one) {
      return one.precision == "bf16" && !one.cast && is_aligned(one);
    });
    if (of.size() < fewest_products) {
      throw UsageError(fmt::format(
          "the table has {} product{} in bf16 whose extents fill their tiles; the curve of three "
          "constants needs at least {}",
          of.size(), of.size() == 1 ? "" : "s", fewest_products));
    }
    const double flops = peak("bf16");
    const ProductCurve fitted = fitted_products(of, flops);
    curve_ = fitted.curve;
    const std::string from = fmt::format("{} products in bf16", of.size());
    const double share = 1 / curve_[0];
    found("gemm", Estimate{share, fitted.error[0], of.size()}, from);
    found("gemm_rows", Estimate{curve_[1] * share, fitted.error[1], of.size()}, from);
    found("gemm_columns", Estimate{curve_[2] * share, fitted.error[2], of.size()}, from);
    for (const TimedKernel& one : of) {
      const double measured = one.seconds + launch_;
      const double predicted = along(curve_, one) * one.flops / flops + launch_;
      fit_.calibration.residuals.push_back({one.id, measured, predicted});
      const double error = std::abs(predicted / measured - 1);
      fit_.mean_error += error / static_cast<double>(of.size());
      if (error > fit_.worst_error) {
        fit_.worst_error = error;
        fit_.worst_row = one.id;
      }
    }
  }

  // How many times the curve each takes.
  std::vector<double> over_curve(const std::vector<TimedKernel>& of, double flops) const {
    std::vector<double> times;
    for (const TimedKernel& one : of) {
      times.push_back(one.seconds * flops / one.flops / along(curve_, one));
    }
    return times;
  }

  void other_products() {
    const std::vector<TimedKernel> uneven = worked("product", [](const TimedKernel& one) {
      return one.precision == "bf16" && !one.cast && !is_aligned(one);
    });
    found("misaligned", geometric_mean(over_curve(uneven, peak("bf16"))),
          fmt::format("{} products in bf16 of other extents", uneven.size()));
    if (peak_of(kind_, "fp8") == nullptr) return;
    for (const bool cast : {true, false}) {
      const std::vector<TimedKernel> eight = worked("product", [&](const TimedKernel& one) {
        return one.precision == "fp8" && one.cast == cast && !one.fast_accum && is_aligned(one);
      });
      if (eight.empty()) continue;
      // Over a curve whose large products reach the whole peak.
      std::vector<double> shares = over_curve(eight, peak("fp8"));
      for (double& share : shares) share = 1 / (share * curve_[0]);
      found("gemm_8bit", geometric_mean(shares),
            fmt::format("{} products in fp8{}", eight.size(),
                        cast ? " with eager casts" : ", no casts"));
      return;
    }
  }

  using Shape = std::tuple<std::int64_t, std::int64_t, std::int64_t>;  // heads, width, sequence

  // The fastest fused kernel of each shape.
  std::map<Shape, TimedKernel> fastest(const std::string& pass) const {
    std::map<Shape, TimedKernel> best;
    for (const TimedKernel& one : table_.rows) {
      if (one.what != "attention" || one.pass != pass || one.how == "math") continue;
      const Shape shape{one.heads, one.width, one.sequence};
      const auto known = best.find(shape);
      if (known == best.end() ||
          one.seconds / one.flops < known->second.seconds / known->second.flops) {
        best[shape] = one;
      }
    }
    return best;
  }

  void attention() {
    const std::map<Shape, TimedKernel> backward = fastest("backward");
    std::vector<double> shares;
    for (const auto& [shape, forward] : fastest("forward")) {
      const auto back = backward.find(shape);
      if (back == backward.end()) continue;
      shares.push_back((forward.flops + back->second.flops) / peak("bf16") /
                       (forward.seconds + back->second.seconds));
    }
    found("attention_flash", geometric_mean(shares),
          fmt::format("{} shapes, forward and backward", shares.size()));
  }

  void elementwise() {
    std::vector<double> shares;
    for (const TimedKernel& one : table_.rows) {
      if (one.what != "elementwise" || one.size_bytes < large) continue;
      shares.push_back(one.bytes / bandwidth_ / one.seconds);
    }
    found("memory", median(shares),
          fmt::format("{} elementwise kernels on {} MiB or more", shares.size(), large >> 20));
    std::vector<double> steps;
    for (const TimedKernel& one : table_.rows) {
      if (one.what != "optimizer" || one.how != "fused" || one.parameters == 0) continue;
      steps.push_back(one.seconds / static_cast<double>(one.parameters));
    }
    found("optimizer", geometric_mean(steps), fmt::format("{} steps of fused AdamW", steps.size()));
  }

  void issue() {
    for (const TimedKernel& one : table_.rows) {
      if (one.how != "eager") continue;
      const Estimate alone{one.seconds, (std::log(one.high) - std::log(one.low)) / 2, 1};
      if (one.what == "launch" && one.side == "device" && !one.per_launch) {
        launch_ = one.seconds;
        found("kernel", alone, "a kernel that does next to nothing, on the device");
      }
      if (one.what == "block_issue" && one.pass == "forward") {
        found("layer_floor", alone, "a small block of plain PyTorch, issued eagerly");
      }
    }
  }

  void place(const KernelConstant& constant) {
    const auto told = found_.find(constant.name);
    if (told == found_.end()) {
      fit_.untold.emplace_back(constant.name);
      return;
    }
    KernelFitted one = told->second;
    one.constant = &constant;
    one.built_in = built_in_.*constant.member;
    const double bounded = std::clamp(one.value, constant.least, constant.most);
    one.at_bound = bounded != one.value;
    one.value = bounded;
    one.taken =
        constant.member != &KernelRates::layer_floor && constant.member != &KernelRates::gemm_8bit;
    if (one.taken) {
      rates_.*constant.member = one.value;
      fit_.calibration.fitted.push_back(
          {std::string(constant.name), one.value, one.standard_error});
    }
    fit_.constants.push_back(std::move(one));
  }

  std::string share(const TimedKernel& one) const {
    return fmt::format("{:.3f}", one.flops / one.seconds / peak("bf16"));
  }

  void grouped_curve() {
    // By experts, n, k and rows: forward, data, weight, and weight into fp32.
    std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>,
             std::array<std::string, 4>>
        cells;
    for (const TimedKernel& one : table_.rows) {
      if (one.what != "grouped" || one.how != "grouped_mm") continue;
      const std::size_t at = one.pass == "forward" ? 0
                             : one.pass == "data"  ? 1
                             : one.accumulate      ? 3
                                                   : 2;
      cells[{one.experts, one.columns, one.inner, one.rows}][at] = share(one);
    }
    KernelCurve curve{
        "Grouped products, share of the bf16 peak",
        {"experts", "n", "k", "rows an expert", "forward", "data gradient", "weight gradient",
         "into fp32"},
        {},
        "Published, of 2,250 TFLOP/s of a B200 (MooreThreads/SimuMax, "
        "configs/system/b200_bf16_ceperm.json), weight gradients into fp32: at 128 rows "
        "0.193 forward, 0.189 data, 0.079 weight; at 512 0.397, 0.349, 0.217; at 1,024 "
        "0.421, 0.433, 0.282; at 2,460 0.491, 0.470, 0.410."};
    for (const auto& [at, passes] : cells) {
      const auto& [experts, columns, inner, rows] = at;
      curve.rows.push_back({fmt::format("{}", experts), fmt::format("{}", columns),
                            fmt::format("{}", inner), fmt::format("{}", rows), passes[0], passes[1],
                            passes[2], passes[3]});
    }
    if (!curve.rows.empty()) fit_.curves.push_back(std::move(curve));
  }

  void attention_curve() {
    KernelCurve curve{
        "Causal attention, share of the bf16 peak, pairs below the diagonal",
        {"heads", "width", "sequence", "forward", "kernel", "backward", "kernel"},
        {},
        "Published forward on an H100, width 128, TFLOP/s of 989 at 512, 1k, 2k, 4k, 8k "
        "and 16k tokens (arXiv 2407.08608): FlashAttention-2 191, 260, 298, 319, 333, "
        "335; cuDNN 315, 410, 484, 518, 529, 539; FlashAttention-3 292, 423, 521, 579, "
        "602, 616."};
    const std::map<Shape, TimedKernel> backward = fastest("backward");
    for (const auto& [shape, forward] : fastest("forward")) {
      const auto back = backward.find(shape);
      const bool both = back != backward.end();
      curve.rows.push_back({fmt::format("{}", forward.heads), fmt::format("{}", forward.width),
                            fmt::format("{}", forward.sequence), share(forward), forward.how,
                            both ? share(back->second) : "", both ? back->second.how : ""});
    }
    if (!curve.rows.empty()) fit_.curves.push_back(std::move(curve));
  }

  const KernelTable& table_;
  const DeviceKind& kind_;
  double bandwidth_;   // bytes a second
  double launch_ = 0;  // seconds of a kernel beyond its work; 0: no row tells
  KernelRates built_in_;
  KernelRates rates_;
  std::array<double, unknowns> curve_{};
  std::map<std::string_view, KernelFitted> found_;
  KernelsFit fit_;
};

}  // namespace

KernelsFit fit_kernels(const KernelTable& table, const DeviceKind& kind) {
  return KernelFit(table, kind).result();
}

}  // namespace stageline
