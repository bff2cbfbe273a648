// Kimi Delta Attention: a delta rule whose state decays each channel of its keys by itself. For the
// files of this folder only.
//
//   linear_in ─► convolution ─► ┐
//   linear_in ─► linear_decay ──┼─► scan ─► linear_norm (gated) ─► linear_out
//   linear_in ─► linear_gate ───┴──────────────┘
//
// Queries, keys, values, a rate of writing a head, and two vectors of low rank are one product of
// the hidden state here; the vectors make a decay of each channel and the output's gate (Kimi
// Linear, arXiv 2510.26692; transformers 5.24, models/kimi_linear).
#pragma once

#include "cost_models/transformers/passes.hpp"

namespace stageline {

/// The kernels of such a layer, on one rank of a tensor-parallel group, which has its heads and
/// both products with the hidden state of low rank. Adds linear_in, convolution, linear_decay,
/// linear_gate, scan, linear_norm and linear_out. `linear` is of the kind kimi_delta.
void add_kimi_delta(LayerKernels& passes, const LinearMixer& linear, const RankSizes& sizes,
                    const BlockTraffic& traffic);

/// Elements of the number format, of all tokens, beyond the hidden state: kept, kept since W reads
/// them, and gradients that W reads.
struct KimiDeltaKept {
  double kept = 0;
  double for_products = 0;
  double output_gradients = 0;
};
KimiDeltaKept kept_by_kimi_delta(const LinearMixer& linear, const RankSizes& sizes);

}  // namespace stageline
