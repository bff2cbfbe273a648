// Recognises the model of a row.
#include "tools/published/point_model.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <string_view>
#include <utility>

namespace stageline {
namespace {

constexpr std::int64_t usual_vocab = 51200;  // GPT-2's of 50,257, as Megatron-LM's papers pad it

// In lower case, without what is neither a letter nor a digit.
std::string key_of(std::string_view name) {
  std::string key;
  for (const char letter : name) {
    const auto byte = static_cast<unsigned char>(letter);
    if (std::isalnum(byte) != 0) key += static_cast<char>(std::tolower(byte));
  }
  return key;
}

// Without a remark in brackets or on what was cut off.
std::string_view without_remark(std::string_view model) {
  return model.substr(0, std::min(model.find(" ("), model.find(" cut to")));
}

bool starts_with(const std::string& text, std::string_view word) {
  return text.rfind(word, 0) == 0;
}

void set(std::int64_t& size, std::int64_t printed) {
  if (printed > 0) size = printed;
}

// Two thirds of the parameters of most models with experts are the experts': three matrices each,
// where they are gated, instead of two.
bool are_gated(TransformerConfig config, double printed) {
  if (printed <= 0) return false;
  const auto off = [&](bool gated) {
    config.gated = gated;
    return std::abs(std::log(static_cast<double>(parameters(config)) / printed));
  };
  return off(true) < off(false);
}

TransformerConfig gpt_of(const Point& point, const PrintedSizes& printed) {
  TransformerConfig config;
  config.name = point.model;
  config.family = "gpt";
  config.layers = printed.layers;
  config.hidden = printed.hidden;
  config.heads = printed.heads;
  config.kv_heads = printed.kv_heads > 0 ? printed.kv_heads : printed.heads;
  config.head_width = printed.heads > 0 ? printed.hidden / printed.heads : 0;
  config.ffn = printed.ffn > 0 ? printed.ffn : 4 * printed.hidden;
  config.vocab = printed.vocab > 0 ? printed.vocab : usual_vocab;
  if (printed.experts > 1 && printed.topk > 0) {
    config.experts = Experts{.count = printed.experts, .chosen = printed.topk, .ffn = config.ffn};
  }
  config.norm = NormKind::layer;
  // The script of the Zero Bubble paper has --untie-embeddings-and-output-weights.
  config.tied = !starts_with(point.source, "Zero Bubble");
  // Closed forms count 12·h² parameters a block.
  const bool closed = point.kind.find("closed form") != std::string::npos;
  if (closed) config.norm = NormKind::rms;
  const bool biases = !closed && !starts_with(point.model, "mpt-");
  config.query_key_value_bias = biases;
  config.projection_bias = biases;
  config.mlp_bias = biases;
  const bool bloom = starts_with(point.source, "BigScience");
  config.positions = bloom ? Positions::alibi : Positions::learned;
  config.places = bloom ? 0 : point.seq;
  config.seq = point.seq;
  config.source = point.source;
  if (config.experts) config.gated = are_gated(config, printed.parameters);
  // Gated experts come with Mixtral's form: no biases, RMS norms, rotary places.
  if (config.gated) {
    config.query_key_value_bias = config.projection_bias = config.mlp_bias = false;
    config.norm = NormKind::rms;
    config.positions = Positions::rotary;
    config.places = 0;
  }
  return config;
}

std::string yes_or_no(bool yes) { return yes ? "yes" : "no"; }

std::string_view word(Positions positions) {
  switch (positions) {
    case Positions::learned:
      return "learned";
    case Positions::rotary:
      return "rotary";
    case Positions::none:
      return "none";
    case Positions::alibi:
      return "alibi";
  }
  return "";  // unreachable; g++ wants it
}

}  // namespace

const FamilyMember* family_of(const Point& point) {
  const std::string_view named = without_remark(point.model);
  std::string other{named};  // Llama 3.1 has the sizes of Llama 3
  const std::size_t minor = other.find("3.1");
  if (minor != std::string::npos) other.replace(minor, 3, "3");
  for (const std::string& key : {key_of(named), key_of(other)}) {
    for (const FamilyMember& member : families()) {
      if (key_of(member.config.name) == key) return &member;
    }
  }
  return nullptr;
}

TransformerConfig config_of(const Point& point, const PrintedSizes& printed) {
  const FamilyMember* const member = family_of(point);
  if (!member) return gpt_of(point, printed);
  TransformerConfig config = member->config;
  set(config.layers, printed.layers);
  set(config.hidden, printed.hidden);
  set(config.heads, printed.heads);
  if (!config.latent) set(config.kv_heads, printed.kv_heads);
  set(config.ffn, printed.ffn);
  set(config.vocab, printed.vocab);
  if (config.experts) {
    set(config.experts->count, printed.experts);
    set(config.experts->chosen, printed.topk);
    // The memory of SimuMax's runs shows experts in all blocks but one, where one and three blocks
    // of the whole models are dense.
    if (config.layers < member->config.layers) {
      config.experts->dense_blocks = std::min<std::int64_t>(config.experts->dense_blocks, 1);
    }
  }
  config.seq = point.seq;
  return config;
}

SpelledModel spelled_model(const Point& point) {
  const TransformerConfig& config = point.config;
  SpelledModel spelled;
  const auto add = [&spelled](std::string_view key, const auto& value) {
    spelled.options += fmt::format(",{}={}", key, value);
  };
  if (const FamilyMember* const member = family_of(point)) {
    const TransformerConfig& whole = member->config;
    spelled.name = whole.name;
    const auto differs = [&add](std::string_view key, std::int64_t is, std::int64_t was) {
      if (is != was) add(key, is);
    };
    differs("layers", config.layers, whole.layers);
    differs("hidden", config.hidden, whole.hidden);
    differs("heads", config.heads, whole.heads);
    differs("kv_heads", config.kv_heads, whole.kv_heads);
    differs("ffn", config.ffn, whole.ffn);
    differs("vocab", config.vocab, whole.vocab);
    if (config.experts && whole.experts) {
      differs("experts", config.experts->count, whole.experts->count);
      differs("topk", config.experts->chosen, whole.experts->chosen);
      differs("dense_blocks", config.experts->dense_blocks, whole.experts->dense_blocks);
    }
    return spelled;
  }
  spelled.name = "transformer";
  add("layers", config.layers);
  add("hidden", config.hidden);
  add("heads", config.heads);
  if (config.kv_heads != config.heads) add("kv_heads", config.kv_heads);
  if (config.hidden % config.heads != 0) add("head_width", config.head_width);
  add("ffn", config.ffn);
  if (config.experts) {
    add("experts", config.experts->count);
    add("topk", config.experts->chosen);
    add("expert_ffn", config.experts->ffn);
  }
  add("gated", yes_or_no(config.gated));
  add("vocab", config.vocab);
  add("tied", yes_or_no(config.tied));
  add("norm", config.norm == NormKind::layer ? "layer" : "rms");
  add("qkv_bias", yes_or_no(config.query_key_value_bias));
  add("bias", yes_or_no(config.projection_bias));
  add("positions", word(config.positions));
  return spelled;
}

}  // namespace stageline
