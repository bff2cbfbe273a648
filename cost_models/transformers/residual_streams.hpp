// Several residual streams, mixed before and behind each half of a block: hyper-connections
// (arXiv 2409.19606), of which DeepSeek-V4 has the manifold-constrained form (arXiv 2512.24880).
//
//   n streams ─┬─► weights of a token: collapse, expand, mix (n × n)
//              ├─► collapse ─► norm ─► attention or MLP ─► expand ─┐
//              └─► mix ────────────────────────────────────────────┴─► add ─► n streams
//
// What passes from block to block, and from stage to stage, is n hidden states. For the files of
// this folder only.
#pragma once

#include "cost_models/transformers/passes.hpp"

namespace stageline {

/// Parameters of one half of a block: the product that makes a token's weights of its streams, a
/// number added to each, and three scales. 0 with one residual.
std::int64_t stream_parameters(const TransformerConfig& config);
/// Those of the product alone.
std::int64_t stream_weights(const TransformerConfig& config);
/// Parameters of the collapse before the head.
std::int64_t head_stream_parameters(const TransformerConfig& config);

/// Kernels before and behind a half, as fused (arXiv 2512.24880, section 4.3): the weights' product
/// and norm read the streams once, collapse once more; one kernel mixes, expands and adds.
/// None with one residual.
void add_streams_before(LayerKernels& passes, const RankSizes& sizes);
void add_streams_behind(LayerKernels& passes, const RankSizes& sizes);
/// The collapse before the head.
void add_head_streams(LayerKernels& passes, const RankSizes& sizes);

/// Bytes that a half keeps beside those of a block with one residual: its streams, the output that
/// is expanded, and the weights in fp32. Nothing of it is recomputed.
struct StreamBytes {
  double kept = 0;
  double weight_grad_inputs = 0;  // part of `kept`: the streams
  double output_gradients = 0;
};
StreamBytes kept_by_streams(const RankSizes& sizes);
/// Before the head.
double kept_by_head_streams(const RankSizes& sizes);

}  // namespace stageline
