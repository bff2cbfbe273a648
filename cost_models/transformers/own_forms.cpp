// Rows of model_types with a form of their own, beyond which a reader of theirs says more: see
// FamilyRow.
#include <array>

#include "cost_models/transformers/family_table.hpp"

namespace stageline {
namespace {

constexpr ExpertKeys mimo_experts{.count = {"n_routed_experts|num_local_experts", 256},
                                  .chosen = {"num_experts_per_tok", 8},
                                  .ffn = {"moe_intermediate_size", 2048},
                                  .first = {"", 1},
                                  .correction = {"", true},
                                  .groups = true};

constexpr ExpertKeys kimi_experts{.count = {"num_experts|num_local_experts", 256},
                                  .chosen = {"num_experts_per_token|num_experts_per_tok", 8},
                                  .ffn = {"moe_intermediate_size", 1024},
                                  .shared = {"num_shared_experts|n_shared_experts", 1},
                                  .first = {"first_k_dense_replace", 1},
                                  .correction = {"", true}};
constexpr ExpertKeys longcat_experts{.count = {"n_routed_experts", 512},
                                     .chosen = {"moe_topk|num_experts_per_tok", 12},
                                     .ffn = {"expert_ffn_hidden_size|moe_intermediate_size", 2048},
                                     .correction = {"", true}};

constexpr std::array own_rows{
    FamilyRow{.type = "kimi_linear",
              .causal_class = "KimiLinearForCausalLM",
              .layers = {"num_hidden_layers", 27},
              .hidden = {"hidden_size", 2304},
              .heads = {"num_attention_heads", 32},
              .head_width = {},
              .ffn = {"intermediate_size", 9216},
              .vocab = {"vocab_size", 163840},
              .longest = {"model_max_length|max_position_embeddings", 1048576},
              .qkv_bias = {"", false},
              .projection_bias = {"", false},
              .filling = Filling::linear,
              .but_every = {"", 4},
              .but_first = true,
              .latent = true,
              .experts = &kimi_experts,
              .linear = LinearKind::kimi_delta,
              .predictions = {"num_nextn_predict_layers", 0},
              .without_effect = "head_dim|qk_head_dim|moe_renormalize|moe_router_activation_func|"
                                "use_grouped_topk",
              .must_be_false = "attention_bias|tie_word_embeddings"},
    FamilyRow{.type = "longcat_flash",
              .causal_class = "LongcatFlashForCausalLM",
              .layers = {"num_layers", 28},
              .hidden = {"hidden_size", 6144},
              .heads = {"num_attention_heads", 64},
              .head_width = {},
              .ffn = {"ffn_hidden_size|intermediate_size", 12288},
              .vocab = {"vocab_size", 131072},
              .longest = {"max_position_embeddings", 131072},
              .qkv_bias = {"", false},
              .projection_bias = {"", false},
              .latent = true,
              .experts = &longcat_experts,
              .predictions = {"num_nextn_predict_layers", 0},
              .without_effect = "head_dim|qk_head_dim|mla_scale_q_lora|mla_scale_kv_lora",
              .must_be_false = "attention_bias|router_bias"},
    FamilyRow{.type = "mimo_v2_flash",
              .causal_class = "MiMoV2FlashForCausalLM",
              .layers = {"num_hidden_layers", 48},
              .hidden = {"hidden_size", 4096},
              .heads = {"num_attention_heads", 64},
              .kv_heads = {"num_key_value_heads", 4},
              .head_width = {"head_dim", 192},
              .ffn = {"intermediate_size", 16384},
              .vocab = {"vocab_size", 152576},
              .longest = {"max_position_embeddings", 131072},
              .projection_bias = {"", false},
              .window = {"sliding_window", 129},
              .filling = Filling::window,
              .but_every = {"", 6},
              .experts = &mimo_experts,
              .predictions = {"num_nextn_predict_layers", 0},
              .without_effect = "attention_chunk_size|attention_value_scale|hybrid_block_size|"
                                "swa_rope_theta|topk_method"},
};

}  // namespace

std::span<const FamilyRow> own_form_rows() { return own_rows; }

}  // namespace stageline
