// What each kernel of a language model takes on a chip.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/roofline.hpp"
#include "cost_models/transformers/kernels.hpp"

namespace stageline {

enum class Pass : std::uint8_t { forward, input_grad, weight_grad };
/// "F", "I", "W".
std::string_view name(Pass pass);

/// A kernel of one pass of one layer, for one micro-batch of one rank.
struct KernelTime {
  Kernel kernel;
  Pass pass = Pass::forward;
  double seconds = 0;  // without its launch
  double peak = 0;     // FLOPs a second of the data type that its products are in; 0: elementwise
};

/// Equal layers: the kernels of one of them.
struct LayerKernelTimes {
  std::string name;  // of the first: "block.0"
  std::string kind;  // as Layer::kind
  int layers = 1;    // that are so
  std::vector<KernelTime> kernels;
  Time forward{};   // of the layer: with launches, and waits for the CPU
  Time backward{};  // B, both halves at once

  /// Seconds of all kernels.
  double kernel_seconds() const;
};

/// The layers of language_model() with the same arguments, in their order. Throws as it
/// does.
std::vector<LayerKernelTimes> language_kernels(const TransformerConfig& config,
                                               const LanguageForm& form, const DeviceKind& device,
                                               const RooflineOptions& options,
                                               const KernelRates& rates);

/// The kernels of a language model that is spelled as priced_model() takes it; empty where another
/// model is. Throws as priced_model().
std::vector<LayerKernelTimes> priced_kernels(const std::string& spec,
                                             const std::vector<DeviceKind>& kinds,
                                             const Sharding& sharding = {},
                                             const LanguageInputs& language = {});

}  // namespace stageline
