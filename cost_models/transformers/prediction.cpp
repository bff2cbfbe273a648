// Kernels, kept bytes and collectives of a module that predicts one more token (multi-token
// prediction: DeepSeek-V3, arXiv 2412.19437, section 2.2; NVIDIA/Megatron-LM,
// megatron/core/transformer/multi_token_prediction.py, read 2026-11-29).
//
//   tokens ─► embedding ─► norm ─┐
//   hidden state ────────► norm ─┴─► product 2h × h ─► block ─► last norm ─► (the head's logits)
//
// The product is divided by columns, and its output gathered: the block reads the whole hidden
// state, or with sequence parallelism its part of it. Where the residual has several streams
// (DeepSeek-V4), embedding and streams have a product h × h each, whose sums are the block's
// streams, and what it makes is collapsed before the last norm.
#include <algorithm>

#include "cost_models/transformers/passes.hpp"
#include "cost_models/transformers/residual_streams.hpp"

namespace stageline {
namespace {

// Hidden states that the product reads: the embedding, and the residual.
double joined_states(const RankSizes& sizes) { return 1 + std::max(sizes.streams, 1.0); }

void add_joined_product(LayerKernels& passes, const RankSizes& sizes) {
  const double joined = joined_states(sizes);
  const double columns = sizes.hidden / sizes.tensor;
  if (sizes.streams == 0) {
    add_linear(passes, "joined_product", sizes.tokens, columns, joined * sizes.hidden);
    return;
  }
  const double n = sizes.streams;
  add_linear(passes, "joined_product", joined * sizes.tokens, columns, sizes.hidden);
  add_elementwise(passes, "joined_add", sizes.bytes(sizes.norm_elements()), {2 * n + 1, n + 1});
}

}  // namespace

LayerKernels prediction_kernels(const TransformerConfig& config, const LanguageForm& form) {
  const RankSizes sizes = rank_sizes(config, form);
  const BlockTraffic traffic = block_traffic(form);
  const double norm = sizes.bytes(sizes.norm_elements());
  const LayerKernels embedding = embedding_kernels(config, form);
  const LayerKernels block = block_kernels(config, form, config.layers);
  LayerKernels passes;
  add_elementwise(passes, "joined_norms", joined_states(sizes) * norm, traffic.norm);
  add_joined_product(passes, sizes);
  add_head_streams(passes, sizes);
  add_elementwise(passes, "prediction_norm", norm, traffic.norm);
  const int launches = static_cast<int>(passes.forward.size());
  const auto append = [](std::vector<Kernel>& all, const std::vector<Kernel>& more) {
    all.insert(all.end(), more.begin(), more.end());
  };
  for (const LayerKernels* const part : {&embedding, &block}) {
    append(passes.forward, part->forward);
    append(passes.input_grad, part->input_grad);
    append(passes.weight_grad, part->weight_grad);
  }
  passes.launches_forward = block.launches_forward + launches;
  passes.launches_input_grad = block.launches_input_grad + launches;
  passes.launches_weight_grad = block.launches_weight_grad + 1;
  passes.floor = block.floor * passes.launches_forward / std::max(block.launches_forward, 1);
  return passes;
}

// Kept besides the block's: both norms' inputs and outputs, which the product reads, and the last
// norm's input; its output the head keeps.
KeptBytes kept_by_prediction(const TransformerConfig& config, const LanguageForm& form) {
  const RankSizes sizes = rank_sizes(config, form);
  KeptBytes bytes = kept_by_block(config, form, config.layers);
  const double rows = joined_states(sizes) * sizes.bytes(sizes.norm_elements());
  bytes.input_grad += rows + kept_by_head_streams(sizes) + sizes.bytes(sizes.norm_elements());
  bytes.weight_grad += rows + kept_by_embedding(config, form).weight_grad;
  bytes.gradient +=
      sizes.bytes(std::max(sizes.streams, 1.0) * sizes.whole_elements() / sizes.tensor);
  return bytes;
}

std::vector<LayerCollective> prediction_collectives(const TransformerConfig& config,
                                                    const LanguageForm& form) {
  std::vector<LayerCollective> list = block_collectives(config, form, config.layers);
  for (const LayerCollective& one : embedding_collectives(config, form)) list.push_back(one);
  for (const LayerCollective& one : joined_collectives(config, form)) list.push_back(one);
  return list;
}

}  // namespace stageline
