#include "cost_models/roofline.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "sim/errors.hpp"

namespace stageline {
namespace {

struct Dtype {
  std::string_view name;
  std::int64_t bytes;  // of an activation, a weight, a gradient
  bool master;         // whether the optimizer keeps the weights once more in 4 bytes
};
constexpr std::array<Dtype, 4> dtypes = {
    {{"fp32", 4, false}, {"tf32", 4, false}, {"fp16", 2, true}, {"bf16", 2, true}}};

constexpr std::array<Optimizer, 3> optimizers = {Optimizer::sgd, Optimizer::momentum,
                                                 Optimizer::adam};

// Bytes a weight that the optimizer keeps for itself.
std::int64_t state_bytes(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::sgd:
      return 0;
    case Optimizer::momentum:
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

// All that a layer is priced with.
struct Price {
  Dtype dtype;
  Optimizer optimizer;
  std::int64_t batch;
  double flops_per_second;
  double bytes_per_second;
  double overhead;  // seconds
};

[[noreturn]] void too_large(const std::string& layer, std::string_view what) {
  throw UsageError(fmt::format(
      "layer \"{}\": {} do not fit in 64 bits; use a smaller batch or model", layer, what));
}

std::int64_t product(const std::string& layer, std::string_view what, std::int64_t a,
                     std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) too_large(layer, what);
  return result;
}

double seconds(const Price& price, double flops, double bytes) {
  if (flops == 0 && bytes == 0) return 0;
  return std::max(flops / price.flops_per_second, bytes / price.bytes_per_second) + price.overhead;
}

Time rounded(const std::string& layer, double seconds) {
  if (!(seconds <= to_seconds(longest_input))) {
    throw UsageError(fmt::format("layer \"{}\" takes {:.3g} s; at most {:.0f} s are allowed", layer,
                                 seconds, to_seconds(longest_input)));
  }
  return from_seconds(seconds);
}

Time time_of(const LayerShape& layer, Work Primitive::*pass, const Price& price) {
  double sum = 0;
  const auto batch = static_cast<double>(price.batch);
  for (const Primitive& op : layer.ops) {
    const Work& work = op.*pass;
    const double elements = batch * static_cast<double>(work.reads + work.writes) +
                            static_cast<double>(work.reads_once + work.writes_once);
    sum += seconds(price, batch * static_cast<double>(work.flops),
                   elements * static_cast<double>(price.dtype.bytes));
  }
  return rounded(layer.name, sum);
}

// Reads the gradient; reads and writes the weights it works on (the master copy, then writes the
// other one too) and its own state.
Time update_time(const LayerShape& layer, const Price& price) {
  const std::int64_t bytes = price.dtype.bytes + 8 + (price.dtype.master ? price.dtype.bytes : 0) +
                             2 * state_bytes(price.optimizer);
  return rounded(
      layer.name,
      seconds(price, 0, static_cast<double>(layer.weights) * static_cast<double>(bytes)));
}

Layer priced(const LayerShape& shape, const Price& price) {
  Layer layer;
  layer.name = shape.name;
  layer.kind = shape.kind;
  layer.forward = time_of(shape, &Primitive::forward, price);
  layer.input_grad = time_of(shape, &Primitive::input_grad, price);
  layer.weight_grad = time_of(shape, &Primitive::weight_grad, price);
  layer.backward = layer.input_grad + layer.weight_grad;
  layer.update = update_time(shape, price);
  const auto weight_bytes = [&](std::int64_t each) {
    return Bytes{product(shape.name, "its weights", shape.weights, each)};
  };
  layer.weights = layer.gradients = weight_bytes(price.dtype.bytes);
  layer.optimizer_state = weight_bytes((price.dtype.master ? 4 : 0) + state_bytes(price.optimizer));
  const auto tensor_bytes = [&](std::int64_t elements) {
    return Bytes{product(shape.name, "its activations", elements,
                         product(shape.name, "its activations", price.batch, price.dtype.bytes))};
  };
  layer.output = tensor_bytes(output_elements(shape));
  layer.stash_input_grad = tensor_bytes(shape.stash_input_grad);
  layer.stash_weight_grad = tensor_bytes(shape.stash_weight_grad);
  layer.stash_gradient = tensor_bytes(shape.stash_gradient);
  layer.parameters = shape.parameters;
  return layer;
}

const PeakRate* peak_of(const DeviceKind& device, std::string_view precision) {
  for (const PeakRate& peak : device.peak) {
    if (peak.precision == precision) return &peak;
  }
  return nullptr;
}

Price price_of(const ModelShape& shape, const DeviceKind& device, const RooflineOptions& options) {
  Price price{};
  std::string dtype = options.dtype;
  if (dtype.empty()) dtype = peak_of(device, "bf16") != nullptr ? "bf16" : "fp32";
  price.dtype = chosen("dtype", dtype, dtypes, [](const Dtype& d) { return d.name; });
  const PeakRate* peak = peak_of(device, dtype);
  if (peak == nullptr) {
    std::vector<std::string> known;
    for (const PeakRate& p : device.peak) known.push_back(p.precision);
    throw UsageError(
        fmt::format("device \"{}\" states no peak rate for dtype {}; it states {}", device.name,
                    dtype, known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", "))));
  }
  price.optimizer =
      optimizer_called(options.optimizer.empty() ? shape.usual_optimizer : options.optimizer);
  price.batch = options.batch == 0 ? shape.usual_batch : options.batch;
  if (price.batch < 1) {
    throw UsageError(fmt::format("batch must be at least 1, not {}", price.batch));
  }
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
  price.flops_per_second = peak->flops * options.efficiency;
  price.bytes_per_second =
      device.memory_bandwidth.is_unlimited()
          ? HUGE_VAL
          : static_cast<double>(device.memory_bandwidth.bytes_per_second) * options.efficiency;
  price.overhead = to_seconds(options.overhead);
  return price;
}

Provenance provenance_of(const ModelShape& shape, const DeviceKind& device, const Price& price,
                         const RooflineOptions& options) {
  Provenance p;
  p.origin = Origin::estimated;
  p.device = device.title.empty() ? device.name : device.title;
  const bool bound = options.efficiency == 1 && options.overhead == Time{};
  p.method = fmt::format(
      "estimated: roofline{}, {}, {}, efficiency {:g}{}", bound ? ", a lower bound" : "",
      price.dtype.name, name(price.optimizer), options.efficiency,
      options.overhead == Time{} ? std::string{}
                                 : fmt::format(", {} an op", print(options.overhead)));
  p.source = fmt::format("shapes: {}; peaks: {}", shape.source,
                         device.source.empty() ? "unknown" : device.source);
  p.notes = shape.notes;
  if (price.dtype.master) {
    p.notes.push_back("optimizer state includes a copy of the weights in 4 bytes");
  }
  return p;
}

}  // namespace

Optimizer optimizer_called(const std::string& text) {
  return chosen("optimizer", text, optimizers, [](Optimizer o) { return name(o); });
}

std::string_view name(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::sgd:
      return "sgd";
    case Optimizer::momentum:
      return "momentum";
    case Optimizer::adam:
      return "adam";
  }
  return "";  // unreachable; g++ wants it
}

Model roofline(const ModelShape& shape, const DeviceKind& device, const RooflineOptions& options) {
  const Price price = price_of(shape, device, options);
  Model model;
  model.name = shape.name;
  model.batch = static_cast<int>(price.batch);
  model.sample = shape.sample;
  for (const LayerShape& layer : shape.layers) model.layers.push_back(priced(layer, price));
  model.edges = shape.edges;
  std::sort(model.edges.begin(), model.edges.end());
  model.input = Bytes{product("the input", "its bytes", shape.input,
                              product("the input", "its bytes", price.batch, price.dtype.bytes))};
  model.provenance = provenance_of(shape, device, price, options);
  return model;
}

}  // namespace stageline
