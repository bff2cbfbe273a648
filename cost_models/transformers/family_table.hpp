// How the keys of a config.json make a model, for each model_type: data, which family_reader.cpp
// reads. For the files of this folder only.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "cost_models/transformers/config.hpp"

namespace stageline {

/// A whole number under one of several keys, "n_layer|num_layers", of which those that are there
/// must agree.
struct NumberKeys {
  std::string_view keys{};
  std::int64_t fallback = 0;  // where none is there; `needed`: the file is refused
};
inline constexpr std::int64_t needed = -2;

/// true or false under a key; `fallback` where it is missing, or where the type has none ("").
struct FlagKey {
  std::string_view key{};
  bool fallback = false;
};

/// What all blocks have but every so manyth: nothing, a window, a linear layer, one beside
/// attention, or one and no MLP (Mamba).
enum class Filling : std::uint8_t { none, window, linear, both, linear_alone };

/// Keys of experts.
struct ExpertKeys {
  NumberKeys count{"num_experts|num_local_experts", needed};
  NumberKeys chosen{"num_experts_per_tok", needed};
  NumberKeys ffn{"moe_intermediate_size", needed};
  NumberKeys shared{};      // experts that all tokens pass, each as wide as a routed one
  NumberKeys shared_ffn{};  // or their width together
  NumberKeys first{};       // blocks without experts at the start
  NumberKeys last{};        // index of the last block with experts; -1: of the last
  NumberKeys every{{}, 1};  // block i has experts where this divides i + 1
  NumberKeys at{};          // or where i over it leaves this remainder (Jamba)
  FlagKey correction{};
  bool shared_gate = false;
  bool groups = false;        // n_group, topk_group
  bool shared_alone = false;  // without experts the shared ones are the MLP (Granite 4)
};

/// A model_type, with Llama's keys where nothing else is said. Where a key is missing, the value is
/// that of the configuration classes of transformers 5.24
/// (src/transformers/models/*/configuration_*.py, read 2026-11-29); parameters were compared on its
/// meta device.
struct FamilyRow {
  std::string_view type{};
  std::string_view causal_class{};  // in "architectures"
  NumberKeys layers{"num_hidden_layers", needed};
  NumberKeys hidden{"hidden_size", needed};
  NumberKeys heads{"num_attention_heads", needed};
  NumberKeys kv_heads{"num_key_value_heads", 0};  // 0: as many as heads
  NumberKeys head_width{"head_dim", 0};           // 0: hidden / heads
  NumberKeys ffn{"intermediate_size", needed};    // 0: 4 · hidden
  NumberKeys vocab{"vocab_size", needed};
  NumberKeys longest{"max_position_embeddings", 8192};
  std::int64_t more_places = 0;  // rows of the table of positions beyond these
  FlagKey tied{"tie_word_embeddings", false};
  FlagKey qkv_bias{"attention_bias", false};
  FlagKey projection_bias{"attention_bias", false};
  FlagKey mlp_bias{};
  FlagKey head_bias{};
  FlagKey query_key_norm{};
  QueryKeyNorm norm_of_queries = QueryKeyNorm::head;
  bool gated = true;
  bool clamped = false;
  NormKind norm = NormKind::rms;
  bool norms_before = true;
  bool norms_behind = false;
  bool inner_norms = false;
  std::int64_t activation_parameters = 0;
  bool first_norm = true;
  bool encoder = false;  // tokens attend to all; a norm behind the embedding; a product in the head
  bool last_norm = true;
  NumberKeys token_types{};
  FlagKey parallel{};     // attention and MLP side by side
  bool one_norm = false;  // of both, where they are
  Positions positions = Positions::rotary;
  bool sinks = false;
  bool attention_gate = false;
  NumberKeys window{};  // 0: none
  Filling filling = Filling::none;
  NumberKeys but_every{{}, 0};  // block i is filled where this does not divide i + 1; 0: all are
  bool but_first = false;       // where it does not divide i (ModernBERT)
  bool rotary_in_windows_alone = false;
  NumberKeys rotary_but_every{{}, 0};  // as `but_every`, beside the list no_rope_layers
  bool chunked = false;
  bool latent = false;
  bool indexer = false;
  bool compressed = false;  // DeepSeek-V4: deepseek_v4.hpp reads it
  const ExpertKeys* experts = nullptr;
  LinearKind linear = LinearKind::delta_net;
  NumberKeys predictions{};
  std::string_view without_effect{};  // "key|key": on parameters and products of this type
  std::string_view must_be_false{};   // with an effect that is not modelled
};

std::span<const FamilyRow> family_rows();
/// Part of these: models with layers of constant state, and encoders (family_states.cpp).
std::span<const FamilyRow> state_and_encoder_rows();
/// And those that vary a better known type (family_variants.cpp).
std::span<const FamilyRow> variant_rows();
/// And those with a form of their own (own_forms.cpp).
std::span<const FamilyRow> own_form_rows();

/// A type that is refused, since its form is known and has parts that are not modelled.
struct RefusedType {
  std::string_view type;
  std::string_view why;  // "its blocks …"
};
std::span<const RefusedType> refused_types();

/// A type whose keys are those of another, "kimi_k2".
struct TypeAlias {
  std::string_view type;
  std::string_view as;
};
std::span<const TypeAlias> type_aliases();

}  // namespace stageline
