// Kernels of an MLP, gated or not.
#include "cost_models/transformers/passes.hpp"

namespace stageline {

void add_mlp(LayerKernels& passes, const MlpNames& names, const RankSizes& sizes, bool gated,
             double width, double rows, const BlockTraffic& traffic, double count) {
  const auto add = [&](std::string_view name, double columns, double inner) {
    if (count > 1) {
      add_grouped(passes, name, sizes, rows, columns, inner, count);
    } else {
      add_linear(passes, name, rows, columns, inner);
    }
  };
  add(names.up, gated ? 2 * width : width, sizes.hidden);
  add_elementwise(passes, names.activation, sizes.bytes(count * rows * width),
                  gated ? traffic.gated : traffic.activation);
  add(names.down, sizes.hidden, width);
}

}  // namespace stageline
