#include "cost_models/transformers/hugging_face_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "cost_models/transformers/json_file.hpp"
#include "sim/base/errors.hpp"

namespace stageline {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t most_of_any_key = 1 << 24;

constexpr std::array<std::string_view, 60> neutral_keys = {
    "activation_function",
    "apply_residual_connection_post_layernorm",
    "attention_softmax_in_fp32",
    "attn_logit_softcapping",
    "auto_map",
    "aux_loss_alpha",
    "bad_words_ids",
    "begin_suppress_tokens",
    "bias_dropout_fusion",
    "cache_implementation",
    "chunk_size_feed_forward",
    "diversity_penalty",
    "do_sample",
    "ep_size",
    "final_logit_softcapping",
    "gradient_checkpointing",
    "hidden_act",
    "hidden_activation",
    "id2label",
    "initializer_range",
    "is_decoder",
    "label2id",
    "length_penalty",
    "masked_softmax_fusion",
    "max_length",
    "model_type",
    "n_ctx",
    "norm_topk_prob",
    "num_beams",
    "num_return_sequences",
    "offset_alibi",
    "output_attentions",
    "output_hidden_states",
    "output_router_logits",
    "partial_rotary_factor",
    "pretraining_tp",
    "query_pre_attn_scalar",
    "reorder_and_upcast_attn",
    "repetition_penalty",
    "return_dict",
    "rotary_emb_base",
    "rotary_pct",
    "routed_scaling_factor",
    "router_aux_loss_coef",
    "router_jitter_noise",
    "scale_attn_by_inverse_layer_idx",
    "scale_attn_weights",
    "scoring_func",
    "seq_aux",
    "skip_bias_add",
    "skip_bias_add_qkv",
    "slow_but_exact",
    "task_specific_params",
    "temperature",
    "top_k",
    "top_p",
    "transformers_version",
    "use_cache"};
constexpr std::array<std::string_view, 3> neutral_beginnings = {"_", "rope_", "summary_"};
constexpr std::array<std::string_view, 8> neutral_ends = {
    "_token_id", "_dropout", "_dropout_prob", "_pdrop",
    "_eps",      "_epsilon", "_dtype",        "_implementation"};

bool is_neutral(std::string_view key) {
  const auto is = [&](std::string_view one) { return key == one; };
  const auto begins = [&](std::string_view one) { return key.starts_with(one); };
  const auto ends = [&](std::string_view one) { return key.ends_with(one); };
  return key == "dtype" || std::any_of(neutral_keys.begin(), neutral_keys.end(), is) ||
         std::any_of(neutral_beginnings.begin(), neutral_beginnings.end(), begins) ||
         std::any_of(neutral_ends.begin(), neutral_ends.end(), ends);
}

std::string shown(const Json& value) {
  constexpr std::size_t longest = 40;
  const std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() <= longest ? text : text.substr(0, longest) + "…";
}

}  // namespace

struct HuggingFaceKeys::Document {
  Json root;

  // Null where it is missing or null.
  const Json* find(const std::string& key) const {
    const auto found = root.find(key);
    return found == root.end() || found->is_null() ? nullptr : &*found;
  }
};

HuggingFaceKeys::HuggingFaceKeys(const std::string& text, std::string file)
    : document_(std::make_unique<Document>()), file_(std::move(file)) {
  document_->root = json_in_file(text, file_, EqualKeys::last);
  if (!document_->root.is_object()) {
    refuse("", fmt::format("a config.json is an object, not {}", shown(document_->root)));
  }
}

HuggingFaceKeys::~HuggingFaceKeys() = default;

void HuggingFaceKeys::refuse(const std::string& key, const std::string& message) const {
  throw TraceError(file_, key.empty() ? "" : "/" + key, message);
}

void HuggingFaceKeys::refuse_rest() const {
  for (const auto& [key, value] : document_->root.items()) {
    if (key == "quantization_config") {
      refuse(key,
             "quantization_config gives the weights fewer bits than the cost model prices; remove "
             "it to price the model in the data type of the option dtype");
    }
    if (asked_.count(key) > 0 || is_neutral(key)) continue;
    const std::vector<std::string> known(asked_.begin(), asked_.end());
    refuse(key, fmt::format("the key \"{}\" is not known for model_type \"{}\" and may change "
                            "what is computed; remove it if it does not{}",
                            key, model_type(), did_you_mean(key, known)));
  }
}

bool HuggingFaceKeys::has(const std::string& key) const {
  asked_.insert(key);
  return document_->find(key) != nullptr;
}

bool HuggingFaceKeys::is_null(const std::string& key) const {
  return document_->root.contains(key) && !has(key);
}

std::string HuggingFaceKeys::model_type() const { return text_or("model_type", ""); }

std::int64_t HuggingFaceKeys::whole(const std::string& key) const {
  if (!has(key)) {
    refuse("", fmt::format("the key \"{}\" is missing, which a config.json of model_type \"{}\" "
                           "must have",
                           key, model_type()));
  }
  return whole_or(key, 0);
}

std::int64_t HuggingFaceKeys::whole_or(const std::string& key, std::int64_t fallback,
                                       std::int64_t least) const {
  if (!has(key)) return fallback;
  const Json& value = *document_->find(key);
  const bool whole = value.is_number_integer();
  const std::int64_t number = whole ? value.get<std::int64_t>() : 0;
  if (!whole || number < least || number > most_of_any_key) {
    refuse(key, fmt::format("{} must be a whole number from {} to {}, not {}", key, least,
                            most_of_any_key, shown(value)));
  }
  return number;
}

bool HuggingFaceKeys::flag_or(const std::string& key, bool fallback) const {
  if (!has(key)) return fallback;
  const Json& value = *document_->find(key);
  if (!value.is_boolean()) {
    refuse(key, fmt::format("{} must be true or false, not {}", key, shown(value)));
  }
  return value.get<bool>();
}

std::string HuggingFaceKeys::text_or(const std::string& key, const std::string& fallback) const {
  if (!has(key)) return fallback;
  const Json& value = *document_->find(key);
  if (!value.is_string()) refuse(key, fmt::format("{} must be a text, not {}", key, shown(value)));
  return value.get<std::string>();
}

std::vector<std::string> HuggingFaceKeys::texts(const std::string& key) const {
  std::vector<std::string> items;
  if (!has(key)) return items;
  const Json& value = *document_->find(key);
  const auto is_text = [](const Json& item) { return item.is_string(); };
  if (!value.is_array() || !std::all_of(value.begin(), value.end(), is_text)) {
    refuse(key, fmt::format("{} must be a list of texts, not {}", key, shown(value)));
  }
  return value.get<std::vector<std::string>>();
}

std::vector<std::int64_t> HuggingFaceKeys::wholes(const std::string& key) const {
  std::vector<std::int64_t> items;
  if (!has(key)) return items;
  const Json& value = *document_->find(key);
  const auto is_whole = [](const Json& item) { return item.is_number_integer(); };
  if (!value.is_array() || !std::all_of(value.begin(), value.end(), is_whole)) {
    refuse(key, fmt::format("{} must be a list of whole numbers, not {}", key, shown(value)));
  }
  return value.get<std::vector<std::int64_t>>();
}

std::int64_t HuggingFaceKeys::inner_whole(const std::string& key, const std::string& inner) const {
  if (!has(key)) return 0;
  const Json& object = *document_->find(key);
  if (!object.is_object() || !object.contains(inner)) return 0;
  const Json& value = object.at(inner);
  return value.is_number_integer() ? value.get<std::int64_t>() : 0;
}

}  // namespace stageline
