// Seconds of one kernel of a language model.
#include <cmath>

#include "cost_models/transformers/kernels.hpp"

namespace stageline {
namespace {

constexpr double tile = 64;  // extents that are multiples of it fill the tiles of a product

double product_seconds(const Kernel& kernel, const KernelRates& rates, double peak_flops,
                       bool alignment) {
  const double rows = kernel.kind == KernelKind::grouped ? 0 : rates.gemm_rows / kernel.rows;
  const double curve = 1 + rows + rates.gemm_columns * (1 / kernel.columns + 1 / kernel.inner);
  const bool filled = fills_tiles(kernel.columns, kernel.inner);
  const double factor = alignment && !filled ? rates.misaligned : 1;
  return kernel.flops / (peak_flops * rates.gemm) * curve * factor;
}

}  // namespace

bool fills_tiles(double columns, double inner) {
  return std::fmod(columns, tile) == 0 && std::fmod(inner, tile) == 0;
}

double seconds(const Kernel& kernel, const KernelRates& rates, double peak_flops,
               double bytes_per_second, bool alignment) {
  switch (kernel.kind) {
    case KernelKind::gemm:
      return product_seconds(kernel, rates, peak_flops, alignment);
    case KernelKind::grouped:
      return product_seconds(kernel, rates, peak_flops, alignment) +
             kernel.bytes / (bytes_per_second * grouped_memory);
    case KernelKind::attention_plain:
      return kernel.flops / (peak_flops * rates.attention_plain);
    case KernelKind::attention_flash:
      return kernel.flops / (peak_flops * rates.attention_flash);
    case KernelKind::elementwise:
      return kernel.bytes /
             (bytes_per_second * (kernel.memory_share > 0 ? kernel.memory_share : rates.memory));
  }
  return 0;
}

}  // namespace stageline
