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

constexpr std::array<std::string_view, 90> neutral_keys = {
    "activation_function",
    "apply_residual_connection_post_layernorm",
    "attention_multiplier",
    "attention_softmax_in_fp32",
    "attn_logit_softcapping",
    "auto_map",
    "aux_loss_alpha",
    "bad_words_ids",
    "begin_suppress_tokens",
    "bias_dropout_fusion",
    "cache_implementation",
    "chunk_size_feed_forward",
    "clip_qkv",
    "decoder_start_token_id",
    "diversity_penalty",
    "do_sample",
    "dropout",
    "early_stopping",
    "embedding_multiplier",
    "encoder_no_repeat_ngram_size",
    "ep_size",
    "final_logit_softcapping",
    "finetuning_task",
    "forced_bos_token_id",
    "gradient_checkpointing",
    "hidden_act",
    "hidden_activation",
    "id2label",
    "image_token_index",
    "initializer_range",
    "is_decoder",
    "is_encoder_decoder",
    "label2id",
    "length_penalty",
    "logit_scale",
    "logits_scaling",
    "masked_softmax_fusion",
    "max_length",
    "max_sequence_length",
    "min_length",
    "model_max_length",
    "model_type",
    "mtp_loss_scaling_factor",
    "n_ctx",
    "no_repeat_ngram_size",
    "norm_eps",
    "norm_topk_prob",
    "num_beam_groups",
    "num_beams",
    "num_return_sequences",
    "offset_alibi",
    "output_attentions",
    "output_hidden_states",
    "output_past",
    "output_router_logits",
    "partial_rotary_factor",
    "pretraining_tp",
    "problem_type",
    "query_pre_attn_scalar",
    "reorder_and_upcast_attn",
    "repetition_penalty",
    "residual_multiplier",
    "return_dict",
    "return_dict_in_generate",
    "rotary_emb_base",
    "rotary_emb_dim",
    "rotary_pct",
    "routed_scaling_factor",
    "router_aux_loss_coef",
    "router_jitter_noise",
    "router_z_loss_coef",
    "scale_attn_by_inverse_layer_idx",
    "scale_attn_weights",
    "scoring_func",
    "seq_aux",
    "skip_bias_add",
    "skip_bias_add_qkv",
    "slow_but_exact",
    "suppress_tokens",
    "task_specific_params",
    "temperature",
    "tie_encoder_decoder",
    "tokenizer_class",
    "top_k",
    "top_p",
    "transformers_version",
    "typical_p",
    "use_cache",
    "use_flash_attn",
    "z_loss_coefficient"};
constexpr std::array<std::string_view, 5> neutral_beginnings = {"_", "rope_", "summary_",
                                                                "time_step_", "unsloth_"};
constexpr std::array<std::string_view, 8> neutral_ends = {
    "_token_id", "_dropout", "_dropout_prob", "_pdrop",
    "_eps",      "_epsilon", "_dtype",        "_implementation"};

// Said in notes(), or of a tower that is left out.
bool is_left_out(std::string_view key) {
  return key == "quantization_config" || key == "vision_config";
}

bool is_neutral(std::string_view key) {
  const auto is = [&](std::string_view one) { return key == one; };
  const auto begins = [&](std::string_view one) { return key.starts_with(one); };
  const auto ends = [&](std::string_view one) { return key.ends_with(one); };
  return key == "dtype" || std::any_of(neutral_keys.begin(), neutral_keys.end(), is) ||
         std::any_of(neutral_beginnings.begin(), neutral_beginnings.end(), begins) ||
         std::any_of(neutral_ends.begin(), neutral_ends.end(), ends);
}

// Python's writer puts Infinity, -Infinity and NaN in a file, which are no JSON: null instead, so
// that none is a size. Texts are left as they are.
std::string without_infinity(const std::string& text) {
  constexpr std::array<std::string_view, 3> words{"-Infinity", "Infinity", "NaN"};
  std::string copy = text;
  bool quoted = false;
  for (std::size_t i = 0; i < copy.size(); ++i) {
    if (quoted && copy[i] == '\\') {
      ++i;
    } else if (copy[i] == '"') {
      quoted = !quoted;
    }
    for (const std::string_view word : words) {
      if (quoted || copy.compare(i, word.size(), word) != 0) continue;
      copy.replace(i, word.size(), "null");
      break;
    }
  }
  return copy;
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
  document_->root = json_in_file(without_infinity(text), file_, EqualKeys::last);
  if (!document_->root.is_object()) {
    refuse("", fmt::format("a config.json is an object, not {}", shown(document_->root)));
  }
}

HuggingFaceKeys::HuggingFaceKeys(std::unique_ptr<Document> document, std::string file,
                                 std::string prefix)
    : document_(std::move(document)), file_(std::move(file)), prefix_(std::move(prefix)) {}

HuggingFaceKeys::~HuggingFaceKeys() = default;

void HuggingFaceKeys::refuse(const std::string& key, const std::string& message) const {
  throw TraceError(file_, key.empty() ? prefix_ : prefix_ + "/" + key, message);
}

bool HuggingFaceKeys::says_nothing(const std::string& key, bool norms) const {
  if (asked_.count(key) > 0 || is_neutral(key) || is_left_out(key)) return true;
  const Json& value = document_->root.at(key);
  if (value.is_null() || value.empty()) return true;
  if (value.is_boolean()) {
    const bool states_norms =
        key == "use_qk_norm" || key == "qk_layernorm" || key == "use_qk_layernorm";
    return !value.get<bool>() || (norms && states_norms);
  }
  if (value.is_number()) return value.get<double>() == 0;
  return value.is_string() && value.get_ref<const std::string&>().empty();
}

std::string HuggingFaceKeys::unknown_keys(const std::vector<std::string>& keys) const {
  const std::vector<std::string> known(asked_.begin(), asked_.end());
  if (keys.size() == 1) {
    return fmt::format(
        "the key \"{}\" is not known for model_type \"{}\" and may change what is "
        "computed; remove it if it does not{}",
        keys[0], model_type(), did_you_mean(keys[0], known));
  }
  std::string list;
  for (const std::string& key : keys) {
    list += fmt::format("{}\"{}\"{}", list.empty() ? "" : ", ", key, did_you_mean(key, known));
  }
  return fmt::format(
      "the keys {} are not known for model_type \"{}\" and may change what is "
      "computed; remove those that do not",
      list, model_type());
}

void HuggingFaceKeys::refuse_rest(bool norms) const {
  std::vector<std::string> unknown;
  for (const auto& [key, value] : document_->root.items()) {
    if (!says_nothing(key, norms)) unknown.push_back(key);
  }
  if (unknown.empty()) return;
  refuse(unknown.size() == 1 ? unknown[0] : "", unknown_keys(unknown));
}

std::vector<std::string> HuggingFaceKeys::notes() const {
  std::vector<std::string> notes;
  if (const Json* const quantized = document_->find("quantization_config")) {
    const bool named = quantized->is_object() && quantized->contains("quant_method") &&
                       quantized->at("quant_method").is_string();
    notes.push_back(fmt::format(
        "the file's weights are stored quantized{}: parameters are counted and priced as if they "
        "were not, in the data type of the option dtype",
        named ? fmt::format(" ({})", quantized->at("quant_method").get<std::string>()) : ""));
  }
  const Json* const text = document_->find("text_config");  // of which a note of its own says it
  if (document_->find("vision_config") != nullptr && (text == nullptr || !text->is_object())) {
    notes.emplace_back("what reads images (vision_config) is left out");
  }
  return notes;
}

std::unique_ptr<HuggingFaceKeys> HuggingFaceKeys::inside(const std::string& key) const {
  auto document = std::make_unique<Document>();
  document->root = document_->root.at(key);
  return std::unique_ptr<HuggingFaceKeys>(
      new HuggingFaceKeys(std::move(document), file_, prefix_ + "/" + key));
}

bool HuggingFaceKeys::is_text(const std::string& key) const {
  return has(key) && document_->find(key)->is_string();
}

bool HuggingFaceKeys::is_list(const std::string& key) const {
  return has(key) && document_->find(key)->is_array();
}

bool HuggingFaceKeys::is_object(const std::string& key) const {
  return has(key) && document_->find(key)->is_object();
}

bool HuggingFaceKeys::holds(const std::string& key) const {
  return document_->find(key) != nullptr;
}

bool HuggingFaceKeys::has(const std::string& key) const {
  asked_.insert(key);
  return document_->find(key) != nullptr;
}

bool HuggingFaceKeys::is_null(const std::string& key) const {
  return document_->root.contains(key) && !has(key);
}

std::string HuggingFaceKeys::model_type() const { return text_or("model_type", ""); }

std::string HuggingFaceKeys::type() const { return type_.empty() ? model_type() : type_; }

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

double HuggingFaceKeys::real_or(const std::string& key, double fallback) const {
  if (!has(key)) return fallback;
  const Json& value = *document_->find(key);
  const double number = value.is_number() ? value.get<double>() : 0;
  if (number <= 0 || number > static_cast<double>(most_of_any_key)) {
    refuse(key, fmt::format("{} must be a number above 0, at most {}, not {}", key, most_of_any_key,
                            shown(value)));
  }
  return number;
}

bool HuggingFaceKeys::flag_or(const std::string& key, bool fallback) const {
  const bool present = has(key);
  if (is_null(key)) return false;
  if (!present) return fallback;
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

std::vector<HuggingFaceKeys::Repeated> HuggingFaceKeys::repeated_texts(
    const std::string& key) const {
  std::vector<Repeated> items;
  if (!has(key)) return items;
  const Json& value = *document_->find(key);
  const auto is_text = [](const Json& item) { return item.is_string(); };
  const auto is_one = [&](const Json& item) {
    return item.is_array() && item.size() == 2 && item[0].is_array() &&
           std::all_of(item[0].begin(), item[0].end(), is_text) && item[1].is_number_unsigned();
  };
  if (!value.is_array() || !std::all_of(value.begin(), value.end(), is_one)) {
    refuse(key, fmt::format("{} must be a list of [[texts], times], not {}", key, shown(value)));
  }
  for (const Json& item : value) {
    items.push_back({item[0].get<std::vector<std::string>>(),
                     std::min(item[1].get<std::int64_t>(), most_of_any_key)});
  }
  return items;
}

std::int64_t HuggingFaceKeys::inner_whole(const std::string& key, const std::string& inner) const {
  if (!has(key)) return 0;
  const Json& object = *document_->find(key);
  if (!object.is_object() || !object.contains(inner)) return 0;
  const Json& value = object.at(inner);
  return value.is_number_integer() ? value.get<std::int64_t>() : 0;
}

}  // namespace stageline
