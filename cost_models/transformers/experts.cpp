// Kernels of a block's experts.
//
//   router ─► permute ─► (all-to-all) ─► sort ─► up ─► activation ─► down ─► bias ─► sort
//   ─► (all-to-all) ─► unpermute ─► add of the shared experts
//
// A dispatcher takes tokens unsorted, and brings one copy of each: what is received is permuted,
// and summed up by token before it is sent back.
//
//   router ─► (dispatch) ─► permute ─► up ─► activation ─► down ─► unpermute ─► (combine)
//
// The products of a rank's experts are one grouped kernel each: as many products side by side as
// it has experts, on equally many rows. A rank of an expert-parallel group gets rows from all of
// the group's tokens, as many as it has itself in the mean (and as those that share its experts
// have), and more by the form's imbalance. It sorts by expert what it receives, unless it has one
// expert.
#include "cost_models/transformers/passes.hpp"

namespace stageline {
namespace {

// Softmax and choice: logits and probabilities, each read and written in fp32, backward as well.
constexpr double routing_passes = 4;

// The bias of the experts' output in fp32, as Megatron-Core adds it expert by expert, compiled or
// not (NVIDIA/Megatron-LM, core/transformer/moe/experts.py, _apply_bias, read 2026-11-29). Forward
// writes bias · probability, adds it, concatenates and casts: 28 bytes an element. Backward casts
// twice, concatenates, and reduces two products: 40 bytes. Both in passes of 4 bytes.
constexpr TensorPasses output_bias{7, 10};

// A kernel that moves rows, whose backward moves them back.
void add_moved(LayerKernels& passes, std::string_view name, double bytes) {
  add_elementwise(passes, name, bytes, {1, 1});
  passes.forward.back().memory_share = permutation_memory;
  passes.input_grad.back().memory_share = permutation_memory;
}

void add_shared(LayerKernels& passes, const TransformerConfig& config, const RankSizes& sizes,
                const RankExperts& experts, const BlockTraffic& traffic) {
  add_mlp(passes, {"shared_up", "shared_activation", "shared_down"}, sizes, config.gated,
          experts.shared_ffn, sizes.tokens, traffic);
  if (config.experts->shared_gate) {
    add_wide_linear(passes, "shared_gate", sizes.norm_tokens, 1, sizes.hidden);
    add_elementwise(passes, "shared_weighing", sizes.bytes(sizes.norm_elements()), {2, 3});
  }
  add_elementwise(passes, "shared_add", sizes.bytes(sizes.norm_elements()), {3, 0});
}

}  // namespace

void add_experts(LayerKernels& passes, const TransformerConfig& config, const LanguageForm& form) {
  const RankSizes sizes = rank_sizes(config, form);
  const RankExperts experts = rank_experts(config, form, sizes);
  const BlockTraffic traffic = block_traffic(form);
  const double logits = sizes.norm_tokens * experts.count;
  const bool dispatcher = experts.received > 0;
  const double permuted =
      sizes.bytes(dispatcher ? (experts.received + experts.routed_rows) * sizes.hidden
                             : experts.permuted_tokens * (1 + experts.chosen) * sizes.hidden);
  const double sorted = sizes.bytes(2 * experts.routed_rows * sizes.hidden);
  const bool receives = sizes.dispatches() && sizes.expert * sizes.expert_tensor > 1;
  passes.experts = static_cast<int>(experts.local);
  const bool sorts = receives && experts.local > 1 && !dispatcher;
  add_wide_linear(passes, "router", sizes.norm_tokens, experts.count, sizes.hidden);
  add_elementwise(passes, "routing", single_bytes * logits, {routing_passes, routing_passes});
  add_moved(passes, "permute", permuted);
  if (sorts) add_moved(passes, "sort_received", sorted);
  add_mlp(passes, {"experts_up", "experts_activation", "experts_down"}, sizes, config.gated,
          experts.ffn, experts.padded_rows, traffic, experts.local);
  if (config.mlp_bias) {
    add_elementwise(passes, "experts_bias",
                    single_bytes * experts.padded_rows * experts.local * sizes.hidden, output_bias);
  }
  if (sorts) add_moved(passes, "sort_to_send", sorted);
  add_moved(passes, "unpermute", permuted);
  if (experts.shared_ffn > 0) add_shared(passes, config, sizes, experts, traffic);
}

}  // namespace stageline
