// Lists the kernels of each layer that differs from the one before.
#include "cost_models/transformers/kernel_times.hpp"

#include <algorithm>
#include <utility>

#include "cost_models/transformers/language_layers.hpp"

namespace stageline {
namespace {

void add(LayerKernelTimes& times, const std::vector<Kernel>& kernels, Pass pass,
         const LanguagePricing& pricing) {
  for (const Kernel& kernel : kernels) {
    const bool computes = kernel.kind != KernelKind::elementwise;
    times.kernels.push_back({kernel, pass, seconds_of(kernel, pricing),
                             computes ? peak_of_kernel(kernel, pricing) : 0});
  }
}

LayerKernelTimes times_of(const Layer& layer, const LayerKernels& kernels,
                          const LanguagePricing& pricing) {
  LayerKernelTimes times;
  times.name = layer.name;
  times.kind = layer.kind;
  add(times, kernels.forward, Pass::forward, pricing);
  add(times, kernels.input_grad, Pass::input_grad, pricing);
  add(times, kernels.weight_grad, Pass::weight_grad, pricing);
  times.forward = layer.forward;
  times.backward = layer.backward;
  return times;
}

bool are_alike(const LayerKernelTimes& a, const LayerKernelTimes& b) {
  return a.kind == b.kind && a.forward == b.forward && a.backward == b.backward &&
         std::equal(a.kernels.begin(), a.kernels.end(), b.kernels.begin(), b.kernels.end(),
                    [](const KernelTime& x, const KernelTime& y) {
                      return x.kernel.name == y.kernel.name && x.seconds == y.seconds;
                    });
}

// Blocks that are alike need not follow one another: those with a window take turns with others.
void add_layer(std::vector<LayerKernelTimes>& all, LayerKernelTimes times) {
  const auto same = std::find_if(
      all.begin(), all.end(), [&](const LayerKernelTimes& one) { return are_alike(one, times); });
  if (same != all.end()) {
    ++same->layers;
  } else {
    all.push_back(std::move(times));
  }
}

}  // namespace

std::string_view name(Pass pass) {
  switch (pass) {
    case Pass::forward:
      return "F";
    case Pass::input_grad:
      return "I";
    case Pass::weight_grad:
      return "W";
  }
  return "";  // unreachable; g++ wants it
}

double LayerKernelTimes::kernel_seconds() const {
  double sum = 0;
  for (const KernelTime& one : kernels) sum += one.seconds;
  return sum;
}

std::vector<LayerKernelTimes> language_kernels(const TransformerConfig& config,
                                               const LanguageForm& form, const DeviceKind& device,
                                               const RooflineOptions& options,
                                               const KernelRates& rates) {
  const LanguagePricing pricing = language_pricing(config, form, device, options, rates);
  std::vector<LayerKernelTimes> all;
  all.push_back(
      times_of(embedding_layer(pricing), embedding_kernels(pricing.config, pricing.form), pricing));
  for (std::int64_t i = 0; i < pricing.config.layers; ++i) {
    const LanguagePricing own = pricing_of_block(pricing, i);
    add_layer(all, times_of(block_layer(pricing, i), block_kernels(own.config, own.form, i), own));
  }
  for (int i = 0; i < pricing.form.predictions; ++i) {
    add_layer(all, times_of(prediction_layer(pricing, i),
                            prediction_kernels(pricing.config, pricing.form), pricing));
  }
  all.push_back(times_of(head_layer(pricing), head_kernels(pricing.config, pricing.form), pricing));
  return all;
}

}  // namespace stageline
