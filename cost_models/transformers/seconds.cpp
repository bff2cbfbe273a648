// Seconds of one kernel of a language model.
#include <cmath>

#include "cost_models/transformers/kernels.hpp"

namespace stageline {
namespace {

constexpr double tile = 64;  // extents that are multiples of it fill the tiles of a product

bool is_aligned(double extent) { return std::fmod(extent, tile) == 0; }

double product_seconds(const Kernel& kernel, const KernelRates& rates, double peak_flops,
                       bool alignment) {
  const double curve = 1 + rates.gemm_rows / kernel.rows +
                       rates.gemm_columns * (1 / kernel.columns + 1 / kernel.inner);
  const bool aligned = is_aligned(kernel.columns) && is_aligned(kernel.inner);
  const double factor = alignment && !aligned ? rates.misaligned : 1;
  return kernel.flops / (peak_flops * rates.gemm) * curve * factor;
}

}  // namespace

double seconds(const Kernel& kernel, const KernelRates& rates, double peak_flops,
               double bytes_per_second, bool alignment) {
  switch (kernel.kind) {
    case KernelKind::gemm:
      return product_seconds(kernel, rates, peak_flops, alignment);
    case KernelKind::attention_plain:
      return kernel.flops / (peak_flops * rates.attention_plain);
    case KernelKind::attention_flash:
      return kernel.flops / (peak_flops * rates.attention_flash);
    case KernelKind::elementwise:
      return kernel.bytes / (bytes_per_second * rates.memory);
  }
  return 0;
}

}  // namespace stageline
