// Kernels of the two ends of a language model: embedding and head.
//
// Traffic as fitted to measured steps in 16 bits: the embedding reads or writes the hidden state
// eight times, half of them forward (rows of the table, positions, dropout), half in W (the
// gradient, added to the table's); the loss, in fp32 whatever the number format, 24 bytes a logit,
// 16 forward and 8 in I. Their launches are few beside these and not counted. The loss is never
// fused with the product before it.
#include <algorithm>

#include "cost_models/transformers/passes.hpp"

namespace stageline {
namespace {

constexpr double lookup_passes = 4;  // over the hidden state, forward and in W each
constexpr double loss_forward_bytes = 16;
constexpr double loss_backward_bytes = 8;

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
  LayerKernels passes;
  add_elementwise(passes, "last_norm", sizes.bytes(sizes.norm_elements()),
                  block_traffic(form).norm);
  add_wide_linear(passes, "logits", sizes.tokens, sizes.padded_vocab, sizes.hidden);
  passes.forward.push_back(elementwise("loss", loss_forward_bytes * logits));
  passes.input_grad.push_back(elementwise("loss", loss_backward_bytes * logits));
  std::reverse(passes.input_grad.begin(), passes.input_grad.end());
  return passes;
}

}  // namespace stageline
