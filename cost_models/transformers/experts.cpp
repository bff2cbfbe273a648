// Kernels of a block's experts.
//
//   router ─► permute ─► (all-to-all) ─► sort ─► up ─► [ clamp ] ─► activation ─► down ─► [ bias ]
//   ─► sort ─► (all-to-all) ─► unpermute ─► add of the shared experts
//
// A dispatcher takes tokens unsorted, and brings one copy of each: what is received is permuted,
// and summed up by token before it is sent back.
//
//   router ─► (dispatch) ─► permute ─► up ─► activation ─► down ─► unpermute ─► (combine)
//
// Clamp and bias are kernels by themselves but where the whole step is a CUDA graph: then the CPU
// does not know how many rows each expert has, and one kernel of Transformer Engine does both
// beside its products (NVIDIA-NeMo/Megatron-Bridge v0.5.1, scripts/performance/configs, where
// cuda_graph_impl = "full_iteration" comes with cutedsl_fused_grouped_mlp; read 2026-11-30).
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

// The clamp of both halves of what the first product makes, which Megatron-Core runs before its
// fused activation, compiled or not (NVIDIA/Megatron-LM core_v0.15.0 to core_v0.18.0,
// core/fusions/fused_bias_geglu.py, weighted_bias_quick_geglu_impl, read 2026-11-30): forward two
// clamps, and a copy that joins them; backward two clamps that read what they have clamped, and a
// copy. In passes of one half.
constexpr TensorPasses clamp{8, 10};

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
  if (clamps_apart(config, form)) {
    add_elementwise(passes, "experts_clamp",
                    sizes.bytes(experts.padded_rows * experts.local * experts.ffn), clamp);
  }
  if (config.mlp_bias && !fuses_experts(form)) {
    add_elementwise(passes, "experts_bias",
                    single_bytes * experts.padded_rows * experts.local * sizes.hidden, output_bias);
  }
  if (sorts) add_moved(passes, "sort_to_send", sorted);
  add_moved(passes, "unpermute", permuted);
  if (experts.shared_ffn > 0) add_shared(passes, config, sizes, experts, traffic);
}

}  // namespace stageline
