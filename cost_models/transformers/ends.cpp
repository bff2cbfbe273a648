// Kernels of the two ends of a language model: embedding and head.
//
// Traffic as fitted to measured steps in 16 bits: the embedding reads or writes the hidden state
// eight times, half of them forward (rows of the table, positions, dropout), half in W (the
// gradient, added to the table's); the loss, in fp32 whatever the number format, 24 bytes a logit,
// 16 forward and 8 in I. Their launches are few beside these and not counted. The loss is never
// fused with the product before it. A fused loss
// (transformer_engine/common/triton/cross_entropy.py, read 2026-11-29) reads the logits of the
// number format for the maximum and the sum, then once more to write the gradients in their place,
// and I multiplies these by the loss's gradient.
#include <algorithm>

#include "cost_models/transformers/passes.hpp"
#include "cost_models/transformers/residual_streams.hpp"

namespace stageline {
namespace {

constexpr double lookup_passes = 4;  // over the hidden state, forward and in W each
constexpr double loss_forward_bytes = 16;
constexpr double loss_backward_bytes = 8;
constexpr double fused_loss_forward = 3;  // times that the logits are read or written
constexpr double fused_loss_backward = 2;

}  // namespace

LayerKernels embedding_kernels(const TransformerConfig& config, const LanguageForm& form) {
  const RankSizes sizes = rank_sizes(config, form);
  const Kernel lookup =
      elementwise("embedding", lookup_passes * sizes.bytes(sizes.whole_elements()));
  LayerKernels passes;
  passes.forward.push_back(lookup);
  passes.weight_grad.push_back(lookup);
  return passes;
}

LayerKernels head_kernels(const TransformerConfig& config, const LanguageForm& form) {
  const RankSizes sizes = rank_sizes(config, form);
  const double logits = sizes.tokens * sizes.padded_vocab;
  const double forward =
      form.fused_loss ? sizes.bytes(fused_loss_forward * logits) : loss_forward_bytes * logits;
  const double backward =
      form.fused_loss ? sizes.bytes(fused_loss_backward * logits) : loss_backward_bytes * logits;
  LayerKernels passes;
  const double hidden = sizes.bytes(sizes.norm_elements());
  const BlockTraffic traffic = block_traffic(form);
  add_head_streams(passes, sizes);
  if (config.last_norm) add_elementwise(passes, "last_norm", hidden, traffic.norm);
  if (config.head_dense) {  // each tensor-parallel rank makes it of all of its tokens
    add_linear(passes, "head_dense", sizes.norm_tokens, sizes.hidden, sizes.hidden);
    add_elementwise(passes, "head_activation", hidden, traffic.activation);
    add_elementwise(passes, "head_norm", hidden, traffic.norm);
  }
  for (int token = 0; token <= form.predictions; ++token) {
    add_wide_linear(passes, "logits", sizes.tokens, sizes.padded_vocab, sizes.hidden);
    passes.forward.push_back(elementwise("loss", forward));
    passes.input_grad.push_back(elementwise("loss", backward));
  }
  std::reverse(passes.input_grad.begin(), passes.input_grad.end());
  return passes;
}

}  // namespace stageline
