// Rows of models with layers of constant state (Mamba, short convolutions) and of encoders, and the
// types that are refused: see FamilyRow.
#include <array>

#include "cost_models/transformers/family_table.hpp"

namespace stageline {
namespace {

constexpr ExpertKeys granite4_experts{.count = {"num_local_experts", 8},
                                      .chosen = {"num_experts_per_tok", 2},
                                      .ffn = {"intermediate_size", needed},
                                      .shared_ffn = {"shared_intermediate_size", 1024},
                                      .shared_alone = true};
constexpr ExpertKeys nemotron_experts{.count = {"n_routed_experts", 8},
                                      .chosen = {"num_experts_per_tok", 2},
                                      .ffn = {"moe_intermediate_size", 7688},
                                      .shared_ffn = {"moe_shared_expert_intermediate_size", 7688},
                                      .correction = {"", true},
                                      .groups = true};
constexpr ExpertKeys lfm2_experts{.first = {"num_dense_layers", 2},
                                  .correction = {"use_expert_bias", true}};
constexpr ExpertKeys jamba_experts{.count = {"num_experts", 16},
                                   .chosen = {"num_experts_per_tok", 2},
                                   .ffn = {"intermediate_size", needed},
                                   .every = {"expert_layer_period", 2},
                                   .at = {"expert_layer_offset", 1}};

constexpr FlagKey has_none{"", false};
constexpr FlagKey has_always{"", true};

constexpr std::array state_rows{
    FamilyRow{.type = "bamba",
              .causal_class = "BambaForCausalLM",
              .kv_heads = {"num_key_value_heads", 8},
              .mlp_bias = {"mlp_bias", false},
              .filling = Filling::linear,
              .linear = LinearKind::mamba},
    FamilyRow{.type = "granitemoehybrid",
              .causal_class = "GraniteMoeHybridForCausalLM",
              .filling = Filling::linear,
              .experts = &granite4_experts,
              .linear = LinearKind::mamba,
              .without_effect = "init_method|normalization_function"},
    FamilyRow{.type = "nemotron_h",
              .causal_class = "NemotronHForCausalLM",
              .kv_heads = {"num_key_value_heads", 8},
              .head_width = {"head_dim|attention_head_dim", 128},
              .tied = has_none,
              .gated = false,
              .positions = Positions::none,
              .experts = &nemotron_experts,
              .linear = LinearKind::mamba,
              .without_effect = "mamba_hidden_act|mamba_ssm_cache_dtype|mlp_hidden_act|"
                                "rescale_prenorm_residual|residual_in_fp32|use_mamba_kernels|"
                                "num_logits_to_keep|chunk_size|expand|moe_shared_expert_overlap|"
                                "use_fp32_residual|is_hybrid|norm_before_gate|"
                                "n_shared_experts|tie_word_embeddings|mtp_layers_block_type|"
                                "mtp_hybrid_override_pattern",
              .must_be_false = "mlp_bias"},
    FamilyRow{.type = "bert",
              .causal_class = "BertForMaskedLM",
              .kv_heads = {},
              .head_width = {},
              .longest = {"max_position_embeddings", 512},
              .tied = {"tie_word_embeddings", true},
              .qkv_bias = has_always,
              .projection_bias = has_always,
              .mlp_bias = has_always,
              .head_bias = has_always,
              .gated = false,
              .norm = NormKind::layer,
              .norms_before = false,
              .norms_behind = true,
              .encoder = true,
              .last_norm = false,
              .token_types = {"type_vocab_size", 2},
              .positions = Positions::learned,
              .without_effect = "pooler_fc_size|pooler_num_attention_heads|pooler_num_fc_layers|"
                                "pooler_size_per_head|pooler_type|directionality|"
                                "task_type_vocab_size",
              .must_be_false = "is_decoder|add_cross_attention|use_task_id"},
    FamilyRow{.type = "falcon_h1",
              .causal_class = "FalconH1ForCausalLM",
              .kv_heads = {"num_key_value_heads", 8},
              .mlp_bias = {"mlp_bias", false},
              .filling = Filling::both,
              .linear = LinearKind::mamba,
              .without_effect =
                  "attention_in_multiplier|attention_out_multiplier|key_multiplier|"
                  "lm_head_multiplier|mlp_multipliers|ssm_multipliers|ssm_in_multiplier|"
                  "ssm_out_multiplier|mamba_norm_before_gate|mamba_use_mlp|num_logits_to_keep|"
                  "attn_layer_indices|mlp_expansion_factor"},
    FamilyRow{.type = "falcon_mamba",
              .causal_class = "FalconMambaForCausalLM",
              .heads = {{}, 1},
              .kv_heads = {},
              .head_width = {{}, 1},
              .ffn = {{}, 1},
              .longest = {{}, 8192},
              .tied = {"tie_word_embeddings", true},
              .filling = Filling::linear_alone,
              .linear = LinearKind::selective,
              .without_effect = "residual_in_fp32|rescale_prenorm_residual|use_mambapy|"
                                "use_falcon_mambapy|use_associative_scan|intermediate_size"},
    FamilyRow{.type = "jamba",
              .causal_class = "JambaForCausalLM",
              .kv_heads = {"num_key_value_heads", 8},
              .head_width = {},
              .qkv_bias = has_none,
              .projection_bias = has_none,
              .positions = Positions::none,
              .filling = Filling::linear,
              .experts = &jamba_experts,
              .linear = LinearKind::selective,
              .without_effect = "use_mamba_kernels|use_mambapy|use_associative_scan|"
                                "num_logits_to_keep|calc_logits_for_entire_prompt|"
                                "mamba_inner_layernorms|sliding_window"},
    FamilyRow{.type = "lfm2",
              .causal_class = "Lfm2ForCausalLM",
              .kv_heads = {"num_key_value_heads", 8},
              .head_width = {},
              .ffn = {"block_ff_dim|intermediate_size", 12288},
              .tied = {"tie_embedding|tie_word_embeddings", true},
              .qkv_bias = has_none,
              .projection_bias = has_none,
              .query_key_norm = has_always,
              .filling = Filling::linear,
              .linear = LinearKind::convolution,
              .without_effect =
                  "conv_dim|conv_dim_out|conv_use_xavier_init|block_dim|"
                  "block_mlp_init_scale|block_norm_eps|block_out_init_scale|"
                  "block_use_swiglu|block_use_xavier_init|num_heads|use_pos_enc|theta"},
    FamilyRow{.type = "lfm2_moe",
              .causal_class = "Lfm2MoeForCausalLM",
              .kv_heads = {"num_key_value_heads", 8},
              .head_width = {},
              .tied = {"tie_embedding|tie_word_embeddings", true},
              .qkv_bias = has_none,
              .projection_bias = has_none,
              .query_key_norm = has_always,
              .filling = Filling::linear,
              .experts = &lfm2_experts,
              .linear = LinearKind::convolution},
    FamilyRow{.type = "mamba",
              .causal_class = "MambaForCausalLM",
              .heads = {{}, 1},
              .kv_heads = {},
              .head_width = {{}, 1},
              .ffn = {{}, 1},
              .longest = {{}, 2048},
              .tied = {"tie_word_embeddings", true},
              .filling = Filling::linear_alone,
              .linear = LinearKind::selective,
              .without_effect = "residual_in_fp32|rescale_prenorm_residual|use_mambapy|"
                                "use_associative_scan|intermediate_size|d_inner|d_model|n_layer|"
                                "fused_add_norm|pad_vocab_size_multiple|rms_norm|ssm_cfg"},
    FamilyRow{.type = "mamba2",
              .causal_class = "Mamba2ForCausalLM",
              .heads = {{}, 1},
              .kv_heads = {},
              .head_width = {{}, 1},
              .ffn = {{}, 1},
              .longest = {{}, 2048},
              .filling = Filling::linear_alone,
              .linear = LinearKind::mamba,
              .without_effect = "residual_in_fp32|rescale_prenorm_residual|chunk_size|"
                                "time_step_rank|norm_before_gate|rms_norm"},
    FamilyRow{.type = "modernbert",
              .causal_class = "ModernBertForMaskedLM",
              .kv_heads = {},
              .head_width = {},
              .tied = {"tie_word_embeddings", true},
              .mlp_bias = {"mlp_bias", false},
              .head_bias = {"decoder_bias", true},
              .norm = NormKind::layer_weight,
              .first_norm = false,
              .encoder = true,
              .window = {"local_attention", 128},
              .filling = Filling::window,
              .but_every = {"global_attn_every_n_layers", 3},
              .but_first = true,
              .without_effect =
                  "classifier_activation|classifier_pooling|cls_token_id|sep_token_id|"
                  "global_rope_theta|local_rope_theta|initializer_cutoff_factor|"
                  "deterministic_flash_attn|reference_compile|repad_logits_with_grad|"
                  "sparse_pred_ignore_index|position_embedding_type|layer_norm_eps",
              .must_be_false = "norm_bias|classifier_bias|mlp_bias|sparse_prediction"},
    FamilyRow{.type = "roberta",
              .causal_class = "RobertaForMaskedLM",
              .kv_heads = {},
              .head_width = {},
              .longest = {"max_position_embeddings", 512},
              .tied = {"tie_word_embeddings", true},
              .qkv_bias = has_always,
              .projection_bias = has_always,
              .mlp_bias = has_always,
              .head_bias = has_always,
              .gated = false,
              .norm = NormKind::layer,
              .norms_before = false,
              .norms_behind = true,
              .encoder = true,
              .last_norm = false,
              .token_types = {"type_vocab_size", 2},
              .positions = Positions::learned,
              .must_be_false = "is_decoder|add_cross_attention"},
};

constexpr std::string_view two_chains =
    "it is an encoder and a decoder that attends to its output, two chains of blocks, and one chain "
    "is priced; price either one as \"transformer\" with its sizes, the decoder's cross attention "
    "as one more attention a block";
constexpr std::string_view image_tower =
    "it reads images and has no vocabulary; price its blocks as \"transformer\" with its sizes, as "
    "--encoder takes them";

constexpr std::array known_refusals{
    RefusedType{"bart", two_chains},
    RefusedType{"bigbird_pegasus", two_chains},
    RefusedType{"blenderbot", two_chains},
    RefusedType{"blenderbot-small", two_chains},
    RefusedType{"diffllama", "each head is the difference of two softmaxes over shared values"},
    RefusedType{
        "gemma3n",
        "its blocks predict and correct several streams (AltUp), have low-rank residuals, a "
        "table of inputs each, and share keys and values"},
    RefusedType{
        "gemma3n_text",
        "its blocks predict and correct several streams (AltUp), have low-rank residuals, a "
        "table of inputs each, and share keys and values"},
    RefusedType{"led", two_chains},
    RefusedType{"longt5", two_chains},
    RefusedType{"m2m_100", two_chains},
    RefusedType{"marian", two_chains},
    RefusedType{"mbart", two_chains},
    RefusedType{"mt5", two_chains},
    RefusedType{"mvp", two_chains},
    RefusedType{"nllb-moe", two_chains},
    RefusedType{"pegasus", two_chains},
    RefusedType{"plbart", two_chains},
    RefusedType{"prophetnet", two_chains},
    RefusedType{"qwen4_exp",
                "its residual is several streams that are mixed, and blocks look up "
                "n-grams of tokens"},
    RefusedType{"qwen4_exp_text",
                "its residual is several streams that are mixed, and blocks look "
                "up n-grams of tokens"},
    RefusedType{"recurrent_gemma", "its blocks have a gated linear recurrence (RG-LRU)"},
    RefusedType{"rwkv", "its blocks mix tokens by a decay a channel, without attention (RWKV)"},
    RefusedType{"siglip_vision_model", image_tower},
    RefusedType{"switch_transformers", two_chains},
    RefusedType{"t5", two_chains},
    RefusedType{"t5gemma", two_chains},
    RefusedType{"umt5", two_chains},
    RefusedType{"vit", image_tower},
    RefusedType{"whisper", two_chains},
    RefusedType{"xlstm", "its blocks have a matrix memory with exponential gates (xLSTM)"},
    RefusedType{"zamba", "blocks of attention share their weights, and read the embedding beside"},
    RefusedType{"zamba2", "blocks of attention share their weights, with an adapter at each place"},
};

}  // namespace

std::span<const FamilyRow> state_and_encoder_rows() { return state_rows; }

std::span<const RefusedType> refused_types() { return known_refusals; }

}  // namespace stageline
