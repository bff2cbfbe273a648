// The parts of a block that recomputation may repeat alone, as Megatron-Core names them
// (--recompute-modules; NVIDIA/Megatron-LM, megatron/core/transformer, commit 003b4ce, read
// 2026-11-29), and what torch's selective policy by ops repeats of a dense block.
//
//   core_attn       attention, whose output the projection keeps: frees the scores, or with a fused
//                   kernel the logarithms of its sums alone
//   layernorm       both norms: frees their outputs, which products read
//   mla_up_proj     products from the low ranks, rotary embedding: frees queries, keys and values
//                   (of a slice queries alone: later ones attend to its keys and values)
//   mlp             a dense MLP with its last product: frees its inner tensors
//   moe_act         the activation of the experts, with its clamp: frees its output, which the last
//                   product reads, and the clamp's
//   moe             router, exchange, experts and shared experts: frees all but their input
//   shared_experts  as mlp
//   ops             of products every second one, and all but products and attention (torchtitan's
//                   selective_ac_option "op": torchtitan/models/llama3/infra/parallelize.py, 2025;
//                   its counter keeps the products with odd numbers). Queries, keys and values are
//                   three products, and a gated MLP's first ones two
//
// What is rebuilt of a module for its own backward alone costs as its forward does: kernels,
// launches, and the collectives inside it.
#include <algorithm>
#include <utility>

#include "cost_models/transformers/rank_sizes.hpp"

namespace stageline {
namespace {

std::vector<ModuleKernel> whole(std::initializer_list<std::string_view> names) {
  std::vector<ModuleKernel> kernels;
  for (const std::string_view name : names) kernels.push_back({name, 1});
  return kernels;
}

std::vector<LayerCollective> forward_alone(std::vector<LayerCollective> list) {
  std::erase_if(list, [](const LayerCollective& one) { return one.forward == 0; });
  for (LayerCollective& one : list) one.input_grad = one.weight_grad = 0;
  return list;
}

double inner_bytes(const RankSizes& sizes, bool gated, double width) {
  return sizes.bytes(sizes.tokens * (gated ? 3 : 2) * width);
}

// With the keys and values of the other context-parallel ranks.
BlockModule core_attention(const TransformerConfig& config, const LanguageForm& form,
                           std::int64_t block, const RankSizes& sizes, const KeptBytes& kept) {
  const bool flash = form.attention == AttentionKernel::flash;
  const double stash = flash ? log_sum_exp_bytes * sizes.tokens * sizes.heads : kept.selective;
  BlockModule module{
      "core_attn", whole({"scores", "softmax", "context", "attention", "ring_sums"}), stash, {}};
  module.attention = true;
  module.collectives = forward_alone(block_collectives(config, form, block));
  std::erase_if(module.collectives,
                [](const LayerCollective& one) { return one.group != Dimension::context; });
  return module;
}

BlockModule latent_products(const TransformerConfig& config, const LanguageForm& form,
                            const RankSizes& sizes) {
  const double for_later = form.slice.count > 1 ? 0 : sizes.keys() + sizes.values();
  const double vectors = sizes.tokens * (sizes.queries() + for_later);
  return {"mla_up_proj", whole({"query_up", "query", "key_value_up", "rotary", "keys"}),
          sizes.bytes(vectors), forward_alone(gather_before_attention(config, form))};
}

// Numbers the products of a block as they run, and says which of them are kept.
class ProductPolicy {
 public:
  bool keeps_next() { return ++number_ % 2 == 1; }

 private:
  int number_ = 0;
};

BlockModule ops(const TransformerConfig& config, const LanguageForm& form, const RankSizes& sizes,
                const KeptBytes& kept, bool values_are_keys) {
  BlockModule module{
      "ops",
      whole({"attention_norm", "query_key_norm", "rotary", "softmax", "attention_norm_behind",
             "attention_add", "mlp_norm", "mlp_activation"}),
      0,
      {}};
  ProductPolicy policy;
  double held = sizes.norm_elements();  // the block's input
  const auto share_again = [&](std::initializer_list<double> widths) {
    double all = 0;
    double again = 0;
    for (const double width : widths) {
      all += width;
      (policy.keeps_next() ? held : again) += sizes.tokens * width;
    }
    return again / (sizes.tokens * all);
  };
  module.kernels.push_back(
      {"qkv", values_are_keys ? share_again({sizes.queries(), sizes.keys()})
                              : share_again({sizes.queries(), sizes.keys(), sizes.values()})});
  if (form.slice.count > 1) held += sizes.tokens * sizes.keys();  // the second of three products
  held += sizes.tokens * sizes.attended();
  module.kernels.push_back({"projection", share_again({sizes.hidden})});
  module.kernels.push_back(
      {"mlp_up", config.gated ? share_again({sizes.ffn, sizes.ffn}) : share_again({sizes.ffn})});
  // Nothing needs the last product again.
  if (policy.keeps_next()) held += sizes.tokens * sizes.hidden;
  double bytes = sizes.bytes(held) + log_sum_exp_bytes * sizes.tokens * sizes.heads;
  const bool scattered = sizes.tensor > 1 && sizes.sequence;
  if (scattered) bytes += sizes.bytes(2 * sizes.norm_elements());  // sums of ranks are kept
  module.stash = std::max(0.0, kept.input_grad + kept.weight_grad - bytes);
  module.collectives = forward_alone(block_collectives(config, form, 0));
  std::erase_if(module.collectives, [&](const LayerCollective& one) {
    return one.group != Dimension::tensor ||
           (scattered && one.kind == CollectiveKind::reduce_scatter);
  });
  if (!scattered) {
    for (LayerCollective& one : module.collectives) one.forward = 1;  // that of attention
  }
  return module;
}

}  // namespace

std::vector<BlockModule> block_modules(const TransformerConfig& config, const LanguageForm& form,
                                       std::int64_t block) {
  const RankSizes sizes = rank_sizes(config, form, block);
  const KeptBytes kept = kept_by_block(config, form, block);
  const BlockKind kind = config.kind(block);
  const bool attends = kind.attends();
  std::vector<BlockModule> modules;
  if (attends) modules.push_back(core_attention(config, form, block, sizes, kept));
  if (config.norms_before) {
    modules.push_back({"layernorm",
                       whole({"attention_norm", "mlp_norm"}),
                       sizes.bytes((config.one_norm ? 1 : kind.halves()) * sizes.norm_elements()),
                       {}});
  }
  if (config.latent && attends) modules.push_back(latent_products(config, form, sizes));
  if (kind.feed == Feed::experts) {
    const RankExperts experts = rank_experts(config, form, sizes);
    modules.push_back(
        {"moe_act",
         whole({"experts_clamp", "experts_activation"}),
         sizes.bytes((clamps_apart(config, form) ? 3 : 1) * experts.routed_rows * experts.ffn),
         {}});
    modules.push_back({"moe",
                       whole({"router", "routing", "permute", "sort_received", "experts_up",
                              "experts_clamp", "experts_activation", "experts_down", "experts_bias",
                              "sort_to_send", "unpermute", "shared_up", "shared_activation",
                              "shared_down", "shared_gate", "shared_weighing", "shared_add"}),
                       kept_by_experts(config, form),
                       forward_alone(experts_collectives(config, form))});
    if (experts.shared_ffn > 0) {
      modules.push_back({"shared_experts", whole({"shared_up", "shared_activation", "shared_down"}),
                         inner_bytes(sizes, config.gated, experts.shared_ffn),
                         forward_alone(mlp_collectives(config, form))});
    }
  } else if (kind.feed == Feed::dense) {
    modules.push_back({"mlp", whole({"mlp_up", "mlp_activation", "mlp_down"}),
                       inner_bytes(sizes, config.gated, sizes.ffn),
                       forward_alone(mlp_collectives(config, form))});
    const bool fused = form.attention == AttentionKernel::flash;
    if (attends && !config.latent && fused) {
      modules.push_back(ops(config, form, sizes, kept, config.heads_of(kind).values_are_keys));
    }
  }
  return modules;
}

}  // namespace stageline
