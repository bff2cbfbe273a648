// A language model by its sizes: "transformer,layers=24,hidden=2048,heads=16", and the same options
// as changes to a published model.
#include <fmt/core.h>

#include <algorithm>

#include "cost_models/spec.hpp"
#include "cost_models/transformers/config.hpp"
#include "sim/base/errors.hpp"

namespace stageline {
namespace {

constexpr std::int64_t most_of_any_size = 1 << 24;  // check() has the limit of each
constexpr std::int64_t usual_vocab = 51200;         // GPT-2's, padded for 8 tensor-parallel ranks
constexpr std::int64_t ffn_step = 256;              // Llama's multiple_of

bool yes(const std::string& key, const std::string& value) {
  if (value != "yes" && value != "no") {
    throw UsageError(fmt::format("{} must be yes or no, not '{}'", key, value));
  }
  return value == "yes";
}

NormKind norm_called(const std::string& value) {
  if (value == "layer") return NormKind::layer;
  if (value == "rms") return NormKind::rms;
  throw UsageError(fmt::format("norm must be layer or rms, not '{}'", value));
}

Positions positions_called(const std::string& value) {
  if (value == "learned") return Positions::learned;
  if (value == "rotary") return Positions::rotary;
  if (value == "alibi") return Positions::alibi;
  throw UsageError(fmt::format("positions must be learned, rotary or alibi, not '{}'", value));
}

// Two of a gated MLP's matrices do the work of one, so that it is narrower by a third.
std::int64_t usual_ffn(const TransformerConfig& config) {
  if (!config.gated) return 4 * config.hidden;
  const std::int64_t width = 8 * config.hidden / 3;
  return (width + ffn_step - 1) / ffn_step * ffn_step;
}

// Sets to 0, for completed(), the sizes that follow from that of `key`.
void forget_followers(TransformerConfig& config, const std::string& key,
                      const std::vector<std::string>& given) {
  const auto free = [&](const char* other) {
    return std::find(given.begin(), given.end(), other) == given.end();
  };
  const bool width = key == "hidden" || key == "heads";
  const bool ffn = key == "hidden" || key == "gated";
  if (width && free("head_width") && !config.latent && !config.compressed &&
      config.head_width * config.heads == config.hidden) {
    config.head_width = 0;
  }
  if (key == "heads" && free("kv_heads") && config.kv_heads == config.heads) config.kv_heads = 0;
  const std::int64_t before = config.ffn;
  if (ffn && free("ffn") && config.ffn == usual_ffn(config)) config.ffn = 0;
  const bool changed = config.ffn != before || key == "ffn";
  if (changed && free("expert_ffn") && config.experts && config.experts->ffn == before) {
    config.experts->ffn = 0;
  }
}

std::int64_t* size_called(TransformerConfig& config, const std::string& key) {
  if (key == "layers") return &config.layers;
  if (key == "hidden") return &config.hidden;
  if (key == "heads") return &config.heads;
  if (key == "kv_heads") return &config.kv_heads;
  if (key == "head_width") return &config.head_width;
  if (key == "ffn") return &config.ffn;
  if (key == "vocab") return &config.vocab;
  return nullptr;
}

bool set_expert_option(TransformerConfig& config, const std::string& key, const std::string& value,
                       const std::vector<std::string>& given) {
  const auto free = [&](const char* other) {
    return std::find(given.begin(), given.end(), other) == given.end();
  };
  std::int64_t Experts::*size = nullptr;
  if (key == "experts") size = &Experts::count;
  if (key == "topk") size = &Experts::chosen;
  if (key == "expert_ffn") size = &Experts::ffn;
  if (key == "shared_ffn") size = &Experts::shared_ffn;
  if (key == "dense_blocks") size = &Experts::dense_blocks;
  if (key == "expert_groups") size = &Experts::groups;
  if (key == "topk_groups") size = &Experts::chosen_groups;
  if (size == nullptr) return false;
  const bool may_be_none = key == "experts" || key == "shared_ffn" || key == "dense_blocks";
  const std::int64_t least = may_be_none ? 0 : 1;
  const std::int64_t number = whole_number(key, value, most_of_any_size, least);
  if (key == "experts" && number == 0) {
    config.experts.reset();
    return true;
  }
  if (!config.experts) config.experts.emplace();
  (*config.experts).*size = number;
  // Groups are of the experts that a model is published with.
  if (key == "experts" && free("expert_groups") && free("topk_groups")) {
    config.experts->groups = config.experts->chosen_groups = 1;
  }
  if (key == "shared_ffn" && number == 0) config.experts->shared_gate = false;
  return true;
}

bool set_form(TransformerConfig& config, const std::string& key, const std::string& value,
              const std::vector<std::string>& given) {
  if (key == "gated") {
    config.gated = yes(key, value);
  } else if (key == "tied") {
    config.tied = yes(key, value);
  } else if (key == "norm") {
    config.norm = norm_called(value);
  } else if (key == "qkv_bias") {
    config.query_key_value_bias = yes(key, value);
  } else if (key == "bias") {
    const bool bias = yes(key, value);
    config.projection_bias = bias;
    config.mlp_bias = bias;
    if (std::find(given.begin(), given.end(), "qkv_bias") == given.end()) {
      config.query_key_value_bias = bias;
    }
  } else if (key == "positions") {
    config.positions = positions_called(value);
  } else if (key == "window") {
    config.window = whole_number(key, value, most_of_any_size, 0);
  } else {
    return false;
  }
  return true;
}

// An option that says which blocks are what, of a model whose blocks are listed.
void refuse_listed(const TransformerConfig& config, const std::string& key) {
  const bool windows = std::any_of(config.pattern.begin(), config.pattern.end(),
                                   [](const BlockKind& kind) { return kind.window; });
  if (config.pattern.empty() || (key != "dense_blocks" && (key != "window" || windows))) return;
  throw UsageError(fmt::format("{}: its blocks are listed one by one, and {} does not change them",
                               config.name, key));
}

}  // namespace

std::vector<std::string> transformer_options() {
  return {"layers",       "hidden",        "heads",      "kv_heads", "head_width", "ffn",
          "gated",        "vocab",         "tied",       "norm",     "qkv_bias",   "bias",
          "positions",    "window",        "experts",    "topk",     "expert_ffn", "shared_ffn",
          "dense_blocks", "expert_groups", "topk_groups"};
}

bool set_option(TransformerConfig& config, const std::string& key, const std::string& value,
                const std::vector<std::string>& given) {
  if (config.latent && (key == "kv_heads" || key == "head_width" || key == "qkv_bias")) {
    throw UsageError(fmt::format(
        "{} has latent attention, whose keys and values come from a vector of low rank: "
        "{} is none of its sizes",
        config.name, key));
  }
  if (config.compressed && (key == "kv_heads" || key == "head_width" || key == "qkv_bias")) {
    throw UsageError(fmt::format(
        "{} has compressed attention, whose heads share one vector for keys and values: {} is none "
        "of its sizes",
        config.name, key));
  }
  if (config.wide && (key == "kv_heads" || key == "head_width")) {
    throw UsageError(fmt::format(
        "{} has blocks with two kinds of heads, and {} does not say of which; change its file",
        config.name, key));
  }
  refuse_listed(config, key);
  TransformerConfig changed = config;
  forget_followers(changed, key, given);
  if (std::int64_t* const size = size_called(changed, key)) {
    *size = whole_number(key, value, most_of_any_size);
  } else if (!set_expert_option(changed, key, value, given) &&
             !set_form(changed, key, value, given)) {
    return false;
  }
  config = std::move(changed);
  return true;
}

TransformerConfig open_form() {
  TransformerConfig config;
  config.name = "transformer";
  config.family = "transformer";
  config.source = "the sizes that were given";
  return config;
}

TransformerConfig completed(TransformerConfig config) {
  for (const char* const key : {"layers", "hidden", "heads"}) {
    if (*size_called(config, key) != 0) continue;
    throw UsageError(fmt::format(
        "{} needs its layers, hidden and heads, and {} is missing; write {}=N behind its name",
        config.name, key, key));
  }
  if (config.kv_heads == 0) config.kv_heads = config.heads;
  if (config.head_width == 0) {
    if (config.hidden % config.heads != 0) {
      throw UsageError(
          fmt::format("{}: hidden must be a multiple of heads where head_width is not given, and "
                      "{} is not one of {}",
                      config.name, config.hidden, config.heads));
    }
    config.head_width = config.hidden / config.heads;
  }
  if (config.ffn == 0) config.ffn = usual_ffn(config);
  if (config.vocab == 0) config.vocab = usual_vocab;
  if (config.positions != Positions::learned) config.places = 0;
  if (config.positions == Positions::learned && config.places == 0) config.places = config.seq;
  if (config.experts && config.experts->count == 0) {
    throw UsageError(
        fmt::format("{}: topk, expert_ffn, shared_ffn and dense_blocks describe experts, and there "
                    "are none; write experts=N behind its name",
                    config.name));
  }
  if (config.experts && config.experts->ffn == 0) config.experts->ffn = config.ffn;
  check(config);
  return config;
}

}  // namespace stageline
