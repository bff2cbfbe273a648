// Checks the options of priced models and prices what does not depend on their layers.
#include "cost_models/pricing.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <vector>

#include "sim/base/errors.hpp"

namespace stageline {
namespace {

constexpr std::array<NumberFormat, 12> formats_and_recipes = {{
    {"fp32", 4, false, false},
    {"tf32", 4, false, false},
    {"fp16", 2, true, false},
    {"bf16", 2, true, false},
    {"fp8", 2, true, true},
    {"fp8-current", 2, true, true, "fp8"},
    {"fp8-delayed", 2, true, true, "fp8"},
    {"fp8-block", 2, true, true, "fp8"},
    {"fp8-tensorwise", 2, true, true, "fp8"},
    {"fp8-rowwise", 2, true, true, "fp8"},
    {"mxfp8", 2, true, true, "fp8", true},
    {"nvfp4", 2, true, true, "fp4", true},
}};
constexpr std::size_t recipes_from = 4;

constexpr std::array<Optimizer, 3> optimizers = {Optimizer::sgd, Optimizer::momentum,
                                                 Optimizer::adam};
constexpr std::array<Optimizer, 4> trained_optimizers = {Optimizer::sgd, Optimizer::momentum,
                                                         Optimizer::adam, Optimizer::muon};

// Bytes a weight that the optimizer keeps for itself.
std::int64_t state_bytes(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::sgd:
      return 0;
    case Optimizer::momentum:
    case Optimizer::muon:
      return 4;
    case Optimizer::adam:
      return 8;
  }
  return 0;  // unreachable; g++ wants it
}

template <typename Table, typename Name>
auto chosen(const std::string& what, const std::string& wanted, const Table& table, Name name_of) {
  std::vector<std::string> known;
  for (const auto& item : table) {
    known.emplace_back(name_of(item));
    if (known.back() == wanted) return item;
  }
  throw UsageError(fmt::format("no {} is called '{}' (there are {}){}", what, wanted,
                               fmt::join(known, ", "), did_you_mean(wanted, known)));
}

[[noreturn]] void too_large(const std::string& layer, std::string_view what) {
  throw UsageError(fmt::format(
      "layer \"{}\": {} do not fit in 64 bits; use a smaller batch or model", layer, what));
}

[[noreturn]] void refuse_format(const DeviceKind& device, const NumberFormat& format,
                                std::string_view missing) {
  std::vector<std::string> known;
  for (const PeakRate& p : device.peak) known.push_back(p.precision);
  const std::string needs =
      missing == format.name ? ""
      : format.scaled_by_hardware
          ? fmt::format(", whose scales are the work of chips with a peak rate for {}", missing)
          : fmt::format(", whose products have that of {}", missing);
  throw UsageError(fmt::format("device \"{}\" states no peak rate for dtype {}{}; it states {}",
                               device.name, format.name, needs,
                               known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", "))));
}

}  // namespace

std::span<const NumberFormat> number_formats() {
  return std::span(formats_and_recipes).first(recipes_from);
}

std::span<const NumberFormat> product_formats() { return formats_and_recipes; }

const PeakRate* peak_of(const DeviceKind& device, std::string_view precision) {
  for (const PeakRate& peak : device.peak) {
    if (peak.precision == precision) return &peak;
  }
  return nullptr;
}

Pricing pricing_of(const DeviceKind& device, const RooflineOptions& options,
                   std::span<const NumberFormat> formats, int batch, const std::string& optimizer) {
  Pricing pricing;
  std::string dtype = options.dtype;
  if (dtype.empty()) dtype = peak_of(device, "bf16") != nullptr ? "bf16" : "fp32";
  pricing.format = chosen("dtype", dtype, formats, [](const NumberFormat& f) { return f.name; });
  const std::string_view rated = pricing.format.peak_precision();
  const PeakRate* const peak = peak_of(device, rated);
  if (peak == nullptr) refuse_format(device, pricing.format, rated);
  if (pricing.format.scaled_by_hardware && peak_of(device, "fp4") == nullptr) {
    refuse_format(device, pricing.format, "fp4");
  }
  pricing.optimizer = optimizer_called(options.optimizer.empty() ? optimizer : options.optimizer);
  pricing.batch = options.batch == 0 ? batch : options.batch;
  if (pricing.batch < 1) {
    throw UsageError(fmt::format("batch must be at least 1, not {}", pricing.batch));
  }
  pricing.slices = options.slice.count;
  if (!(options.efficiency > 0 && options.efficiency <= 1)) {
    throw UsageError(
        fmt::format("efficiency must be above 0 and at most 1, not {:g}", options.efficiency));
  }
  if (options.overhead < Time{}) {
    throw UsageError(
        fmt::format("overhead must not be negative, as {} is", print(options.overhead)));
  }
  if (!(peak->flops > 0) || !std::isfinite(peak->flops) ||
      device.memory_bandwidth.bytes_per_second < 1) {
    throw UsageError(fmt::format(
        "device \"{}\" must state a positive {} rate and memory bandwidth, not {:g} FLOP/s and {}",
        device.name, dtype, peak->flops, print(device.memory_bandwidth)));
  }
  pricing.peak_flops = peak->flops;
  pricing.flops_per_second = peak->flops * options.efficiency;
  pricing.bytes_per_second =
      device.memory_bandwidth.is_unlimited()
          ? HUGE_VAL
          : static_cast<double>(device.memory_bandwidth.bytes_per_second) * options.efficiency;
  pricing.overhead = to_seconds(options.overhead);
  return pricing;
}

std::int64_t update_bytes(const NumberFormat& format, Optimizer optimizer) {
  return format.bytes + 8 + (format.master ? format.bytes : 0) + 2 * state_bytes(optimizer);
}

void set_state(Layer& layer, std::int64_t weights, const Pricing& pricing) {
  const auto bytes = [&](std::int64_t each) {
    return Bytes{fitting_product(layer.name, "its weights", weights, each)};
  };
  layer.weights = layer.gradients = bytes(pricing.format.bytes);
  layer.optimizer_state = bytes((pricing.format.master ? 4 : 0) + state_bytes(pricing.optimizer));
}

std::int64_t fitting_product(const std::string& layer, std::string_view what, std::int64_t a,
                             std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) too_large(layer, what);
  return result;
}

Bytes fitting_bytes(const std::string& layer, std::string_view what, double bytes) {
  if (!(bytes <= static_cast<double>(most_bytes_held.count))) too_large(layer, what);
  return {static_cast<std::int64_t>(std::ceil(bytes))};
}

std::int64_t fitting_flops(const std::string& layer, double flops) {
  constexpr double most = 4611686018427387904.0;  // 2^62
  if (!(flops <= most)) {
    throw UsageError(fmt::format("layer \"{}\" takes {:.3g} FLOPs; at most {:.3g} are counted",
                                 layer, flops, most));
  }
  return std::llround(flops);
}

Time fitting_time(const std::string& layer, double seconds) {
  if (!(seconds <= to_seconds(longest_input))) {
    throw UsageError(fmt::format("layer \"{}\" takes {:.3g} s; at most {:.0f} s are allowed", layer,
                                 seconds, to_seconds(longest_input)));
  }
  return from_seconds(seconds);
}

std::string tf32_note(const DeviceKind& device, const NumberFormat& format, bool convolutions) {
  if (format.name != "fp32" || peak_of(device, "tf32") == nullptr) return "";
  return fmt::format(
      "products are in fp32, not TF32: so are torch's by default since 1.12{}; dtype=tf32 prices it",
      convolutions ? ", but not its convolutions" : "");
}

std::string device_title(const DeviceKind& device) {
  return device.title.empty() ? device.name : device.title;
}

Optimizer optimizer_called(const std::string& text) {
  return chosen("optimizer", text, optimizers, [](Optimizer o) { return name(o); });
}

Optimizer trained_optimizer_called(const std::string& text) {
  return chosen("optimizer", text, trained_optimizers, [](Optimizer o) { return name(o); });
}

std::string_view name(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::sgd:
      return "sgd";
    case Optimizer::momentum:
      return "momentum";
    case Optimizer::adam:
      return "adam";
    case Optimizer::muon:
      return "muon";
  }
  return "";  // unreachable; g++ wants it
}

}  // namespace stageline
