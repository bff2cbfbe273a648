// Kernels of an MLP, gated or not.
#include "cost_models/transformers/passes.hpp"

namespace stageline {

void add_mlp(LayerKernels& passes, const MlpNames& names, const RankSizes& sizes, bool gated,
             double width, double rows, const BlockTraffic& traffic, double count) {
  add_linear(passes, names.up, rows, gated ? 2 * width : width, sizes.hidden, count);
  add_elementwise(passes, names.activation, sizes.bytes(count * rows * width),
                  gated ? traffic.gated : traffic.activation);
  add_linear(passes, names.down, rows, sizes.hidden, width, count);
}

}  // namespace stageline
