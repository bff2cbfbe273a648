// Configurations that several tests of language models begin with.
#pragma once

#include <cstdint>

#include "cost_models/transformers/kernels.hpp"

namespace stageline {

/// GPT with an MLP of 4·hidden.
inline TransformerConfig gpt_config(std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
  TransformerConfig config;
  config.layers = layers;
  config.hidden = hidden;
  config.heads = heads;
  config.kv_heads = heads;
  config.head_width = hidden / heads;
  config.ffn = 4 * hidden;
  config.vocab = 51200;
  config.tied = true;
  config.norm = NormKind::layer;
  config.positions = Positions::learned;
  config.places = 2048;
  config.seq = 2048;
  return config;
}

/// Llama 3 70B.
inline TransformerConfig llama_config() {
  TransformerConfig config;
  config.layers = 80;
  config.hidden = 8192;
  config.heads = 64;
  config.kv_heads = 8;
  config.head_width = 128;
  config.ffn = 28672;
  config.gated = true;
  config.vocab = 128256;
  config.seq = 8192;
  return config;
}

/// Mixtral 8x7B: all blocks have experts.
inline TransformerConfig mixtral_config() {
  TransformerConfig config;
  config.layers = 32;
  config.hidden = 4096;
  config.heads = 32;
  config.kv_heads = 8;
  config.head_width = 128;
  config.ffn = 14336;
  config.gated = true;
  config.vocab = 32000;
  config.seq = 4096;
  config.experts = Experts{.count = 8, .chosen = 2, .ffn = 14336};
  return config;
}

/// DeepSeek-V3: latent attention; shared and routed experts behind three dense blocks.
inline TransformerConfig deepseek_config() {
  TransformerConfig config;
  config.layers = 61;
  config.hidden = 7168;
  config.heads = 128;
  config.kv_heads = 128;
  config.head_width = 128;
  config.ffn = 18432;
  config.gated = true;
  config.vocab = 129280;
  config.seq = 4096;
  config.latent = LatentAttention{.query_rank = 1536,
                                  .key_value_rank = 512,
                                  .plain_width = 128,
                                  .rotary_width = 64,
                                  .value_width = 128};
  config.experts =
      Experts{.count = 256, .chosen = 8, .ffn = 2048, .shared_ffn = 2048, .dense_blocks = 3};
  return config;
}

inline LanguageForm divided_form(std::int64_t batch, int tensor, bool sequence = false) {
  LanguageForm form;
  form.batch = batch;
  form.sharding.tensor = tensor;
  form.sharding.sequence = sequence;
  return form;
}

}  // namespace stageline
