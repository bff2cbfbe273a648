// What every priced model shares: number formats, optimizers, peaks, and sums that fit in 64 bits.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "cost_models/roofline.hpp"
#include "sim/base/units.hpp"
#include "sim/cluster.hpp"
#include "sim/model.hpp"

namespace stageline {

struct NumberFormat {
  std::string_view name;
  std::int64_t bytes = 0;      // of an activation, a weight, a gradient
  bool master = false;         // whether the optimizer keeps the weights once more in 4 bytes
  bool products_only = false;  // fp8: of a product's operands; weights and gradients have 2 bytes
  std::string_view peak = "";  // whose peak of a device its products have; empty: its own name's
  bool scaled_by_hardware = false;  // mxfp8, nvfp4: chips that state a peak of fp4 do it

  std::string_view peak_precision() const { return peak.empty() ? name : peak; }
};
/// fp32, tf32, fp16, bf16.
std::span<const NumberFormat> number_formats();
/// These, fp8 and its recipes (transformers/product_recipes.hpp).
std::span<const NumberFormat> product_formats();

/// Null where the device states none at that precision.
const PeakRate* peak_of(const DeviceKind& device, std::string_view precision);

/// The options of a priced model, checked, with the rates that they make of a device's.
struct Pricing {
  NumberFormat format;
  Optimizer optimizer = Optimizer::adam;
  std::int64_t batch = 1;
  int slices = 1;               // of a micro-batch: what is priced is one of them
  double peak_flops = 0;        // per second, as the device states it
  double flops_per_second = 0;  // with the efficiency
  double bytes_per_second = 0;  // with the efficiency; infinite where the memory has no limit
  double overhead = 0;          // seconds an op
};
/// `batch` and `optimizer`: those of the model where the options have none. Throws as roofline().
Pricing pricing_of(const DeviceKind& device, const RooflineOptions& options,
                   std::span<const NumberFormat> formats, int batch, const std::string& optimizer);

/// Bytes of a weight that the optimizer's step moves: reads the gradient; reads and writes the
/// weights it works on (the master copy, then writes the other one too) and its own state.
std::int64_t update_bytes(const NumberFormat& format, Optimizer optimizer);

/// Weights, gradients and optimizer state of so many elements.
void set_state(Layer& layer, std::int64_t weights, const Pricing& pricing);

/// Throws UsageError, with the layer's name, where it does not fit in 64 bits. `what`: "its
/// weights".
std::int64_t fitting_product(const std::string& layer, std::string_view what, std::int64_t a,
                             std::int64_t b);
/// Rounds up to whole bytes; throws likewise.
Bytes fitting_bytes(const std::string& layer, std::string_view what, double bytes);

/// Rounds to whole operations. Throws UsageError, with the layer's name, above 2^62, the most
/// that a trace may have.
std::int64_t fitting_flops(const std::string& layer, double flops);

/// Rounds once. Throws UsageError, with the layer's name, where it is longer than longest_input.
Time fitting_time(const std::string& layer, double seconds);

/// "NVIDIA H100 SXM5 80 GB", or the kind's name.
std::string device_title(const DeviceKind& device);

/// That fp32 is not priced as TF32, where the device has both and a framework might take the one
/// for the other; else empty. `convolutions`: the model has them.
std::string tf32_note(const DeviceKind& device, const NumberFormat& format, bool convolutions);

/// In the notes of a model whose format keeps a master copy.
inline constexpr std::string_view master_copy_note =
    "optimizer state includes a copy of the weights in 4 bytes";

}  // namespace stageline
