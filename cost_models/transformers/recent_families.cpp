// Published models of 2025 and 2026: blocks of several kinds.
#include "cost_models/transformers/recent_families.hpp"

#include <string_view>
#include <utility>
#include <vector>

#include "cost_models/transformers/kimi_linear.hpp"
#include "cost_models/transformers/longcat_flash.hpp"
#include "cost_models/transformers/mimo_v2.hpp"

namespace stageline {
namespace {

// Five blocks with a window, then one without; norms before and behind, norms of queries and keys.
void add_gemma3(std::vector<FamilyMember>& table) {
  const auto add = [&](std::string_view name, const FamilySize& size, std::int64_t head_width,
                       std::int64_t vocab, std::int64_t window, std::int64_t published,
                       std::string_view repository, std::string_view summary) {
    TransformerConfig config = llama_like(name, "gemma3", size, vocab, 8192, repository);
    config.head_width = head_width;
    config.tied = true;
    config.norms_behind = true;
    config.query_key_norm = QueryKeyNorm::head;
    config.window = window;
    config.pattern = std::vector<BlockKind>(6, {.window = true});
    config.pattern.back().window = false;
    table.push_back({std::move(config), published, summary});
  };
  add("gemma3-1b", {26, 1152, 4, 1, 6912}, 256, 262144, 512, 999'885'952, "google/gemma-3-1b-pt",
      "Gemma 3, 1.0 billion parameters, 26 blocks, 1 of 4 heads for keys and values");
  add("gemma3-4b", {34, 2560, 8, 4, 10240}, 256, 262208, 1024, 3'880'263'168,
      "google/gemma-3-4b-pt",
      "Gemma 3 without its vision tower, 3.9 billion parameters, 34 blocks, 4 of 8 heads for keys");
  add("gemma3-12b", {48, 3840, 16, 8, 15360}, 256, 262208, 1024, 11'766'034'176,
      "google/gemma-3-12b-pt",
      "Gemma 3 without its vision tower, 11.8 billion parameters, 48 blocks, 8 of 16 heads for keys");
  add("gemma3-27b", {62, 5376, 32, 16, 21504}, 128, 262208, 1024, 27'009'346'304,
      "google/gemma-3-27b-pt",
      "Gemma 3 without its vision tower, 27.0 billion parameters, 62 blocks, 16 of 32 heads for keys");
}

void add_glm(std::vector<FamilyMember>& table) {
  const auto add = [&](std::string_view name, const FamilySize& size, bool norms,
                       const Experts& experts, std::int64_t published, std::string_view repository,
                       std::string_view summary) {
    TransformerConfig config = llama_like(name, "glm-4.5", size, 151552, 4096, repository);
    config.head_width = 128;
    config.query_key_value_bias = true;
    if (norms) config.query_key_norm = QueryKeyNorm::head;
    config.experts = experts;
    config.prediction_modules = 1;
    table.push_back({std::move(config), published, summary});
  };
  add("glm-4.5-air", {46, 4096, 96, 8, 10944}, false,
      {.count = 128,
       .chosen = 8,
       .ffn = 1408,
       .shared_ffn = 1408,
       .dense_blocks = 1,
       .correction_bias = true},
      106'852'251'264, "zai-org/GLM-4.5-Air",
      "GLM-4.5-Air without MTP, 106.9 billion parameters, 46 blocks, 8 of 128 experts and 1 shared");
  add("glm-4.5", {92, 5120, 96, 8, 12288}, true,
      {.count = 160,
       .chosen = 8,
       .ffn = 1536,
       .shared_ffn = 1536,
       .dense_blocks = 3,
       .correction_bias = true},
      352'797'829'024, "zai-org/GLM-4.5",
      "GLM-4.5 and 4.6 without MTP, 352.8 billion parameters, 92 blocks, 8 of 160 experts and 1 "
      "shared");
}

// Three linear blocks, then one of attention with a gate.
void add_qwen3_next(std::vector<FamilyMember>& table) {
  TransformerConfig config = llama_like("qwen3-next-80b", "qwen3-next", {48, 2048, 16, 2, 5120},
                                        151936, 4096, "Qwen/Qwen3-Next-80B-A3B-Instruct");
  config.head_width = 256;
  config.query_key_norm = QueryKeyNorm::head;
  config.attention_gate = true;
  config.linear = LinearMixer{.kind = LinearKind::delta_net,
                              .heads = 32,
                              .key_heads = 16,
                              .key_width = 128,
                              .value_width = 128,
                              .taps = 4};
  config.experts =
      Experts{.count = 512, .chosen = 10, .ffn = 512, .shared_ffn = 512, .shared_gate = true};
  config.pattern = std::vector<BlockKind>(4, {.mixer = Mixer::linear, .feed = Feed::experts});
  config.pattern.back().mixer = Mixer::attention;
  table.push_back({std::move(config), 79'674'391'296,
                   "Qwen3-Next without MTP, 79.7 billion parameters, 36 linear blocks and 12 of "
                   "attention, 10 of 512 experts and 1 shared"});
}

void add_minimax(std::vector<FamilyMember>& table) {
  TransformerConfig config = llama_like("minimax-m2", "minimax-m2", {62, 3072, 48, 8, 1536}, 200064,
                                        4096, "MiniMaxAI/MiniMax-M2");
  config.head_width = 128;
  config.query_key_norm = QueryKeyNorm::all;
  config.experts = Experts{.count = 256, .chosen = 8, .ffn = 1536, .correction_bias = true};
  table.push_back({std::move(config), 228'689'764'864,
                   "MiniMax-M2, 228.7 billion parameters, 62 blocks, 8 of 256 experts"});
}

// Three blocks attend within pieces of 8,192 tokens, the fourth without positions to all.
void add_llama4(std::vector<FamilyMember>& table) {
  const auto add = [&](std::string_view name, std::int64_t experts, bool every,
                       std::int64_t published, std::string_view repository,
                       std::string_view summary) {
    TransformerConfig config =
        llama_like(name, "llama4", {48, 5120, 40, 8, 16384}, 202048, 8192, repository);
    config.head_width = 128;
    if (every) config.query_key_norm = QueryKeyNorm::bare;
    config.window = 8192;
    config.chunked = true;
    config.experts = Experts{.count = experts, .chosen = 1, .ffn = 8192, .shared_ffn = 8192};
    config.pattern = std::vector<BlockKind>(4, {.feed = Feed::experts, .window = true});
    config.pattern.back().window = config.pattern.back().rotary = false;
    if (!every) config.pattern[0].feed = config.pattern[2].feed = Feed::dense;
    table.push_back({std::move(config), published, summary});
  };
  add("llama4-scout", 16, true, 107'769'861'120, "meta-llama/Llama-4-Scout-17B-16E",
      "Llama 4 Scout without its vision tower, 107.8 billion parameters, 48 blocks, 1 of 16 experts "
      "and 1 shared");
  add("llama4-maverick", 128, false, 400'711'848'960, "meta-llama/Llama-4-Maverick-17B-128E",
      "Llama 4 Maverick without its vision tower, 400.7 billion parameters, 48 blocks, 1 of 128 "
      "experts and 1 shared in every other one");
}

// Blocks of one half each: a state (M), attention (*), or an MLP (-).
void add_nemotron_h(std::vector<FamilyMember>& table) {
  TransformerConfig config = llama_like("nemotron-h-8b", "nemotron-h", {52, 4096, 32, 8, 21504},
                                        131072, 8192, "nvidia/Nemotron-H-8B-Base-8K");
  config.gated = false;
  config.positions = Positions::none;
  config.linear = LinearMixer{.kind = LinearKind::mamba,
                              .heads = 128,
                              .key_heads = 8,
                              .key_width = 128,
                              .value_width = 64,
                              .taps = 4,
                              .convolution_bias = true};
  for (const char half : std::string_view("M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-")) {
    const Mixer mixer = half == 'M' ? Mixer::linear : half == '*' ? Mixer::attention : Mixer::none;
    config.pattern.push_back({.mixer = mixer, .feed = half == '-' ? Feed::dense : Feed::none});
  }
  table.push_back(
      {std::move(config), 8'100'852'736,
       "Nemotron-H, 8.1 billion parameters, 24 blocks of Mamba 2, 4 of attention, 24 of "
       "an MLP"});
}

// Two first blocks of a kind of their own, then sparse and heavy ones in turn.
void add_deepseek_v4(std::vector<FamilyMember>& table) {
  const auto add = [&](std::string_view name, const FamilySize& size, Compression first,
                       const CompressedAttention& attention, const Experts& experts,
                       std::int64_t published, std::string_view repository,
                       std::string_view summary) {
    TransformerConfig config = llama_like(name, "deepseek-v4", size, 129280, 4096, repository);
    config.head_width = 512;
    config.window = 128;
    config.sinks = true;
    config.streams = 4;
    config.compressed = attention;
    config.experts = experts;
    config.prediction_modules = 1;
    for (std::int64_t i = 0; i < config.layers; ++i) {
      const Compression in_turn = i % 2 == 0 ? Compression::sparse : Compression::heavy;
      config.pattern.push_back(
          {.feed = Feed::experts, .window = true, .compression = i < 2 ? first : in_turn});
    }
    table.push_back({std::move(config), published, summary});
  };
  CompressedAttention attention{.query_rank = 1024,
                                .rotary_width = 64,
                                .output_groups = 8,
                                .output_rank = 1024,
                                .sparse_rate = 4,
                                .heavy_rate = 128,
                                .index_heads = 64,
                                .index_width = 128,
                                .index_keys = 512};
  Experts experts{.count = 256,
                  .chosen = 6,
                  .ffn = 2048,
                  .shared_ffn = 2048,
                  .correction_bias = true,
                  .hashed_blocks = 3};
  add("deepseek-v4-flash", {43, 4096, 64, 1, 2048}, Compression::none, attention, experts,
      284'332'240'471, "deepseek-ai/DeepSeek-V4-Flash",
      "DeepSeek-V4-Flash without MTP, 284.3 billion parameters, 43 blocks, 6 of 256 experts and 1 "
      "shared, compressed attention");
  attention.query_rank = 1536;
  attention.output_groups = 16;
  attention.index_keys = 1024;
  experts.count = 384;
  experts.ffn = experts.shared_ffn = 3072;
  add("deepseek-v4-pro", {61, 7168, 128, 1, 3072}, Compression::heavy, attention, experts,
      1'572'997'201'763, "deepseek-ai/DeepSeek-V4-Pro",
      "DeepSeek-V4-Pro without MTP, 1,573.0 billion parameters, 61 blocks, 6 of 384 experts and 1 "
      "shared, compressed attention");
}

// Five blocks with a window of 128 tokens, then one without, which has half of the heads for keys
// and values; the first block has none either, and a dense MLP.
void add_mimo_v2(std::vector<FamilyMember>& table) {
  TransformerConfig config = llama_like("mimo-v2-flash", "mimo-v2", {48, 4096, 64, 8, 16384},
                                        152576, 8192, "XiaomiMiMo/MiMo-V2-Flash");
  config.head_width = 192;
  config.value_width = 128;
  config.wide = WideHeads{4, 192, false, 128};
  config.window = 129;  // with the token itself
  config.window_sinks = true;
  config.experts = Experts{.count = 256, .chosen = 8, .ffn = 2048, .correction_bias = true};
  for (std::int64_t i = 0; i < config.layers; ++i) {
    const bool window = i > 0 && (i + 1) % 6 != 0;
    config.pattern.push_back(
        {.feed = i == 0 ? Feed::dense : Feed::experts, .window = window, .wide = !window});
  }
  config.prediction_modules = 3;
  config.prediction_kind = BlockKind{.window = true};
  config.notes.emplace_back(mimo_v2_note);
  table.push_back(
      {std::move(config), 308'778'780'864,
       "MiMo-V2-Flash without MTP, 308.8 billion parameters, 48 blocks, 8 of 256 experts, "
       "39 windows of 128 tokens"});
}

// Three linear blocks, then one of latent attention without positions; the last attends, too.
void add_kimi_linear(std::vector<FamilyMember>& table) {
  TransformerConfig config = llama_like("kimi-linear-48b", "kimi-linear", {27, 2304, 32, 32, 9216},
                                        163840, 4096, "moonshotai/Kimi-Linear-48B-A3B-Base");
  config.latent = LatentAttention{
      .key_value_rank = 512, .plain_width = 128, .rotary_width = 64, .value_width = 128};
  config.head_width = 192;
  config.positions = Positions::none;
  config.linear = LinearMixer{.kind = LinearKind::kimi_delta,
                              .heads = 32,
                              .key_heads = 32,
                              .key_width = 128,
                              .value_width = 128,
                              .taps = 4,
                              .gate_rank = 128};
  config.experts =
      Experts{.count = 256, .chosen = 8, .ffn = 1024, .shared_ffn = 1024, .correction_bias = true};
  for (std::int64_t i = 0; i < config.layers; ++i) {
    const bool attends = i % 4 == 3 || i + 1 == config.layers;
    config.pattern.push_back({.mixer = attends ? Mixer::attention : Mixer::linear,
                              .feed = i == 0 ? Feed::dense : Feed::experts});
  }
  config.notes.emplace_back(kimi_linear_note);
  table.push_back({std::move(config), 49'122'681'728,
                   "Kimi Linear, 49.1 billion parameters, 20 linear blocks and 7 of latent "
                   "attention, 8 of 256 experts and 1 shared"});
}

// 28 layers of two blocks; of a token's 12 experts 8 work on it in the mean.
void add_longcat_flash(std::vector<FamilyMember>& table) {
  TransformerConfig config = llama_like("longcat-flash", "longcat-flash", {56, 6144, 64, 64, 12288},
                                        131072, 8192, "meituan-longcat/LongCat-Flash-Chat");
  config.latent = LatentAttention{.query_rank = 1536,
                                  .key_value_rank = 512,
                                  .plain_width = 128,
                                  .rotary_width = 64,
                                  .value_width = 128};
  config.head_width = 192;
  config.experts = Experts{.count = 512,
                           .chosen = 8,
                           .zero = 256,
                           .ffn = 2048,
                           .shared_ffn = 12288,
                           .correction_bias = true};
  config.pattern = {{.feed = Feed::experts, .shortcut = true}, {.feed = Feed::dense}};
  config.prediction_kind = BlockKind{};
  config.notes.emplace_back(longcat_flash_note);
  table.push_back(
      {std::move(config), 560'664'980'480,
       "LongCat-Flash without MTP, 560.7 billion parameters, 28 layers of two blocks, 8 of "
       "512 experts in the mean"});
}

}  // namespace

void add_recent_families(std::vector<FamilyMember>& table) {
  add_gemma3(table);
  add_glm(table);
  add_qwen3_next(table);
  add_minimax(table);
  add_llama4(table);
  add_nemotron_h(table);
  add_deepseek_v4(table);
  add_mimo_v2(table);
  add_kimi_linear(table);
  add_longcat_flash(table);
}

}  // namespace stageline
