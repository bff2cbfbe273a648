// Published language models by name, with the source of their sizes and the parameters that their
// publishers count.
//
// Exact counts are those of the published weights: each tensor once, without buffers (Llama 2's
// files hold 64 inverse frequencies a block besides). Of DeepSeek-V3 the module that predicts one
// more token (MTP), which files as block 61, is left out. Where only a rounded number is published
// it is 0 here: GPT-3 and the models of Megatron-LM's papers. From Gemma 3 and Kimi K2 on, counts
// are those of transformers 5.24 on its meta device with the published config.json, of Gemma 3 also
// those of the published files less the vision tower; modules of MTP and towers are left out.
#include <string>
#include <utility>
#include <vector>

#include "cost_models/transformers/config.hpp"
#include "cost_models/transformers/recent_families.hpp"
#include "sim/base/letters.hpp"

namespace stageline {
namespace {

using Table = std::vector<FamilyMember>;

// Layer norms, biases everywhere, two matrices in an MLP of 4 · hidden, learned places, tied.
TransformerConfig gpt_like(std::string_view name, std::string_view family, std::int64_t layers,
                           std::int64_t hidden, std::int64_t heads, std::int64_t vocab,
                           std::int64_t seq, std::string source) {
  TransformerConfig config =
      sized(name, family, {layers, hidden, heads, heads, 4 * hidden}, std::move(source));
  config.vocab = vocab;
  config.tied = true;
  config.norm = NormKind::layer;
  config.query_key_value_bias = true;
  config.projection_bias = true;
  config.mlp_bias = true;
  config.positions = Positions::learned;
  config.places = seq;
  config.seq = seq;
  return config;
}

void add_gpt2(Table& table) {
  const auto add = [&](std::string_view name, std::int64_t layers, std::int64_t hidden,
                       std::int64_t heads, std::int64_t published, std::string_view repository,
                       std::string_view summary) {
    table.push_back(
        {gpt_like(name, "gpt2", layers, hidden, heads, 50257, 1024, config_json(repository)),
         published, summary});
  };
  add("gpt2", 12, 768, 12, 124'439'808, "openai-community/gpt2",
      "GPT-2 small, 124.4 million parameters, 12 blocks, 12 heads");
  add("gpt2-medium", 24, 1024, 16, 354'823'168, "openai-community/gpt2-medium",
      "GPT-2 medium, 354.8 million parameters, 24 blocks, 16 heads");
  add("gpt2-large", 36, 1280, 20, 774'030'080, "openai-community/gpt2-large",
      "GPT-2 large, 774.0 million parameters, 36 blocks, 20 heads");
  add("gpt2-xl", 48, 1600, 25, 1'557'611'200, "openai-community/gpt2-xl",
      "GPT-2 XL, 1.56 billion parameters, 48 blocks, 25 heads");
}

// The vocabulary is GPT-2's; Megatron-LM pads it to 51,200 with 8 tensor-parallel ranks.
void add_gpt3(Table& table) {
  const auto add = [&](std::string_view name, std::int64_t layers, std::int64_t hidden,
                       std::int64_t heads, std::string_view summary) {
    table.push_back({gpt_like(name, "gpt3", layers, hidden, heads, 50257, 2048,
                              "Brown et al. 2020, arXiv 2005.14165, table 2.1"),
                     0, summary});
  };
  add("gpt3-2.7b", 32, 2560, 32, "GPT-3 2.7B, 32 blocks, 32 heads");
  add("gpt3-6.7b", 32, 4096, 32, "GPT-3 6.7B, 32 blocks, 32 heads");
  // The table prints a width of 5140, which 40 heads of 128 do not give.
  add("gpt3-13b", 40, 5120, 40, "GPT-3 13B, 40 blocks, 40 heads");
  add("gpt3-175b", 96, 12288, 96, "GPT-3 175B, 174.6 billion parameters, 96 blocks, 96 heads");
}

void add_megatron(Table& table) {
  const auto add = [&](std::string_view name, std::int64_t layers, std::int64_t hidden,
                       std::int64_t heads, std::string_view summary,
                       std::string_view source =
                           "Narayanan et al. 2021, arXiv 2104.04473, table 1") {
    table.push_back(
        {gpt_like(name, "megatron", layers, hidden, heads, 51200, 2048, std::string(source)), 0,
         summary});
  };
  add("megatron-1.7b", 24, 2304, 24, "Megatron-LM's GPT of 1.7 billion parameters, 24 blocks");
  add("megatron-3.6b", 30, 3072, 32, "Megatron-LM's GPT of 3.6 billion parameters, 30 blocks");
  add("megatron-7.5b", 36, 4096, 32, "Megatron-LM's GPT of 7.5 billion parameters, 36 blocks");
  add("megatron-18.4b", 40, 6144, 48, "Megatron-LM's GPT of 18.4 billion parameters, 40 blocks");
  add("megatron-22b", 48, 6144, 64, "Megatron-LM's GPT of 22 billion parameters, 48 blocks",
      "Korthikanti et al. 2022, arXiv 2205.05198, table 3");
  add("megatron-39.1b", 48, 8192, 64, "Megatron-LM's GPT of 39.1 billion parameters, 48 blocks");
  add("megatron-76.1b", 60, 10240, 80, "Megatron-LM's GPT of 76.1 billion parameters, 60 blocks");
  add("megatron-145.6b", 80, 12288, 96, "Megatron-LM's GPT of 145.6 billion parameters, 80 blocks");
  add("megatron-310.1b", 96, 16384, 128,
      "Megatron-LM's GPT of 310.1 billion parameters, 96 blocks");
  add("megatron-529.6b", 105, 20480, 128,
      "Megatron-LM's GPT of 529.6 billion parameters, 105 blocks");
  add("megatron-1t", 128, 25600, 160, "Megatron-LM's GPT of 1 trillion parameters, 128 blocks");
}

// Positions as a penalty on distance (ALiBi), a layer norm behind the embedding.
void add_bloom(Table& table) {
  const auto add = [&](std::string_view name, std::int64_t layers, std::int64_t hidden,
                       std::int64_t heads, std::int64_t published, std::string_view repository,
                       std::string_view summary) {
    TransformerConfig config =
        gpt_like(name, "bloom", layers, hidden, heads, 250880, 2048, config_json(repository));
    config.positions = Positions::alibi;
    config.places = 0;
    config.embedding_norm = true;
    table.push_back({std::move(config), published, summary});
  };
  add("bloom-560m", 24, 1024, 16, 559'214'592, "bigscience/bloom-560m",
      "BLOOM 560M, 559.2 million parameters, 24 blocks, 16 heads");
  add("bloom-1b1", 24, 1536, 16, 1'065'314'304, "bigscience/bloom-1b1",
      "BLOOM 1B1, 1.07 billion parameters, 24 blocks, 16 heads");
  add("bloom-1b7", 24, 2048, 16, 1'722'408'960, "bigscience/bloom-1b7",
      "BLOOM 1B7, 1.72 billion parameters, 24 blocks, 16 heads");
  add("bloom-3b", 30, 2560, 32, 3'002'557'440, "bigscience/bloom-3b",
      "BLOOM 3B, 3.00 billion parameters, 30 blocks, 32 heads");
  add("bloom-7b1", 30, 4096, 32, 7'069'016'064, "bigscience/bloom-7b1",
      "BLOOM 7B1, 7.07 billion parameters, 30 blocks, 32 heads");
  add("bloom-176b", 70, 14336, 112, 176'247'271'424, "bigscience/bloom",
      "BLOOM, 176.2 billion parameters, 70 blocks, 112 heads");
}

void add_llama(Table& table) {
  const auto add = [&](std::string_view name, std::string_view family, const FamilySize& size,
                       std::int64_t vocab, std::int64_t seq, bool tied, std::int64_t published,
                       std::string_view repository, std::string_view summary) {
    TransformerConfig config = llama_like(name, family, size, vocab, seq, repository);
    config.tied = tied;
    table.push_back({std::move(config), published, summary});
  };
  add("llama2-7b", "llama2", {32, 4096, 32, 32, 11008}, 32000, 4096, false, 6'738'415'616,
      "meta-llama/Llama-2-7b-hf", "Llama 2, 6.7 billion parameters, 32 blocks, 32 heads");
  add("llama2-13b", "llama2", {40, 5120, 40, 40, 13824}, 32000, 4096, false, 13'015'864'320,
      "meta-llama/Llama-2-13b-hf", "Llama 2, 13.0 billion parameters, 40 blocks, 40 heads");
  add("llama2-70b", "llama2", {80, 8192, 64, 8, 28672}, 32000, 4096, false, 68'976'648'192,
      "meta-llama/Llama-2-70b-hf",
      "Llama 2, 69.0 billion parameters, 80 blocks, 8 of 64 heads for keys and values");
  add("llama3.2-1b", "llama3", {16, 2048, 32, 8, 8192}, 128256, 8192, true, 1'235'814'400,
      "meta-llama/Llama-3.2-1B",
      "Llama 3.2, 1.24 billion parameters, 16 blocks, 8 of 32 heads for keys and values");
  add("llama3.2-3b", "llama3", {28, 3072, 24, 8, 8192}, 128256, 8192, true, 3'212'749'824,
      "meta-llama/Llama-3.2-3B",
      "Llama 3.2, 3.21 billion parameters, 28 blocks, 8 of 24 heads for keys and values");
  add("llama3-8b", "llama3", {32, 4096, 32, 8, 14336}, 128256, 8192, false, 8'030'261'248,
      "meta-llama/Meta-Llama-3-8B",
      "Llama 3 and 3.1, 8.0 billion parameters, 32 blocks, 8 of 32 heads for keys and values");
  add("llama3-70b", "llama3", {80, 8192, 64, 8, 28672}, 128256, 8192, false, 70'553'706'496,
      "meta-llama/Meta-Llama-3-70B",
      "Llama 3 and 3.1, 70.6 billion parameters, 80 blocks, 8 of 64 heads for keys and values");
  add("llama3-405b", "llama3", {126, 16384, 128, 8, 53248}, 128256, 8192, false, 405'853'388'800,
      "meta-llama/Llama-3.1-405B",
      "Llama 3.1, 405.9 billion parameters, 126 blocks, 8 of 128 heads for keys and values");
}

void add_mistral(Table& table) {
  TransformerConfig mistral = llama_like("mistral-7b", "mistral", {32, 4096, 32, 8, 14336}, 32000,
                                         8192, "mistralai/Mistral-7B-v0.1");
  mistral.window = 4096;
  table.push_back({std::move(mistral), 7'241'732'096,
                   "Mistral 7B v0.1, 7.2 billion parameters, 32 blocks, windows of 4096 tokens"});
  const auto add = [&](std::string_view name, const FamilySize& size, std::int64_t seq,
                       std::int64_t published, std::string_view repository,
                       std::string_view summary) {
    TransformerConfig config = llama_like(name, "mixtral", size, 32000, seq, repository);
    config.experts = Experts{.count = 8, .chosen = 2, .ffn = size.ffn};
    table.push_back({std::move(config), published, summary});
  };
  add("mixtral-8x7b", {32, 4096, 32, 8, 14336}, 32768, 46'702'792'704,
      "mistralai/Mixtral-8x7B-v0.1",
      "Mixtral 8x7B, 46.7 billion parameters, 32 blocks, 2 of 8 experts");
  add("mixtral-8x22b", {56, 6144, 48, 8, 16384}, 65536, 140'620'634'112,
      "mistralai/Mixtral-8x22B-v0.1",
      "Mixtral 8x22B, 140.6 billion parameters, 56 blocks, 2 of 8 experts");
}

// Qwen 2.5: biases of queries, keys and values.
void add_qwen25(Table& table) {
  const auto add = [&](std::string_view name, const FamilySize& size, bool small,
                       std::int64_t published, std::string_view repository,
                       std::string_view summary) {
    TransformerConfig config =
        llama_like(name, "qwen2.5", size, small ? 151936 : 152064, 4096, repository);
    config.tied = small;
    config.query_key_value_bias = true;
    table.push_back({std::move(config), published, summary});
  };
  add("qwen2.5-0.5b", {24, 896, 14, 2, 4864}, true, 494'032'768, "Qwen/Qwen2.5-0.5B",
      "Qwen 2.5, 494.0 million parameters, 24 blocks, 2 of 14 heads for keys and values");
  add("qwen2.5-1.5b", {28, 1536, 12, 2, 8960}, true, 1'543'714'304, "Qwen/Qwen2.5-1.5B",
      "Qwen 2.5, 1.54 billion parameters, 28 blocks, 2 of 12 heads for keys and values");
  add("qwen2.5-3b", {36, 2048, 16, 2, 11008}, true, 3'085'938'688, "Qwen/Qwen2.5-3B",
      "Qwen 2.5, 3.09 billion parameters, 36 blocks, 2 of 16 heads for keys and values");
  add("qwen2.5-7b", {28, 3584, 28, 4, 18944}, false, 7'615'616'512, "Qwen/Qwen2.5-7B",
      "Qwen 2.5, 7.6 billion parameters, 28 blocks, 4 of 28 heads for keys and values");
  add("qwen2.5-14b", {48, 5120, 40, 8, 13824}, false, 14'770'033'664, "Qwen/Qwen2.5-14B",
      "Qwen 2.5, 14.8 billion parameters, 48 blocks, 8 of 40 heads for keys and values");
  add("qwen2.5-32b", {64, 5120, 40, 8, 27648}, false, 32'763'876'352, "Qwen/Qwen2.5-32B",
      "Qwen 2.5, 32.8 billion parameters, 64 blocks, 8 of 40 heads for keys and values");
  add("qwen2.5-72b", {80, 8192, 64, 8, 29568}, false, 72'706'203'648, "Qwen/Qwen2.5-72B",
      "Qwen 2.5, 72.7 billion parameters, 80 blocks, 8 of 64 heads for keys and values");
}

// Qwen 3: heads of 128 whatever the width, norms of queries and keys.
void add_qwen3(Table& table) {
  const auto add = [&](std::string_view name, const FamilySize& size, bool tied,
                       std::optional<Experts> experts, std::int64_t published,
                       std::string_view repository, std::string_view summary) {
    TransformerConfig config = llama_like(name, "qwen3", size, 151936, 4096, repository);
    config.head_width = 128;
    config.query_key_norm = QueryKeyNorm::head;
    config.tied = tied;
    config.experts = experts;
    table.push_back({std::move(config), published, summary});
  };
  add("qwen3-0.6b", {28, 1024, 16, 8, 3072}, true, {}, 596'049'920, "Qwen/Qwen3-0.6B",
      "Qwen 3, 596.0 million parameters, 28 blocks, 8 of 16 heads for keys and values");
  add("qwen3-1.7b", {28, 2048, 16, 8, 6144}, true, {}, 1'720'574'976, "Qwen/Qwen3-1.7B",
      "Qwen 3, 1.72 billion parameters, 28 blocks, 8 of 16 heads for keys and values");
  add("qwen3-4b", {36, 2560, 32, 8, 9728}, true, {}, 4'022'468'096, "Qwen/Qwen3-4B",
      "Qwen 3, 4.02 billion parameters, 36 blocks, 8 of 32 heads for keys and values");
  add("qwen3-8b", {36, 4096, 32, 8, 12288}, false, {}, 8'190'735'360, "Qwen/Qwen3-8B",
      "Qwen 3, 8.2 billion parameters, 36 blocks, 8 of 32 heads for keys and values");
  add("qwen3-14b", {40, 5120, 40, 8, 17408}, false, {}, 14'768'307'200, "Qwen/Qwen3-14B",
      "Qwen 3, 14.8 billion parameters, 40 blocks, 8 of 40 heads for keys and values");
  add("qwen3-32b", {64, 5120, 64, 8, 25600}, false, {}, 32'762'123'264, "Qwen/Qwen3-32B",
      "Qwen 3, 32.8 billion parameters, 64 blocks, 8 of 64 heads for keys and values");
  add("qwen3-30b-a3b", {48, 2048, 32, 4, 6144}, false,
      Experts{.count = 128, .chosen = 8, .ffn = 768}, 30'532'122'624, "Qwen/Qwen3-30B-A3B",
      "Qwen 3, 30.5 billion parameters, 48 blocks, 8 of 128 experts");
  add("qwen3-235b-a22b", {94, 4096, 64, 4, 12288}, false,
      Experts{.count = 128, .chosen = 8, .ffn = 1536}, 235'093'634'560, "Qwen/Qwen3-235B-A22B",
      "Qwen 3, 235.1 billion parameters, 94 blocks, 8 of 128 experts");
}

void add_deepseek(Table& table) {
  const auto add = [&](std::string_view name, std::string_view family, const FamilySize& size,
                       std::int64_t vocab, std::int64_t query_rank, const Experts& experts,
                       std::int64_t published, std::string_view repository,
                       std::string_view summary) {
    TransformerConfig config = llama_like(name, family, size, vocab, 4096, repository);
    config.latent = LatentAttention{.query_rank = query_rank,
                                    .key_value_rank = 512,
                                    .plain_width = 128,
                                    .rotary_width = 64,
                                    .value_width = 128};
    config.head_width = config.latent->plain_width + config.latent->rotary_width;
    config.experts = experts;
    table.push_back({std::move(config), published, summary});
  };
  add("deepseek-v2-lite", "deepseek-v2", {27, 2048, 16, 16, 10944}, 102400, 0,
      {.count = 64,
       .chosen = 6,
       .ffn = 1408,
       .shared_ffn = std::int64_t{2} * 1408,
       .dense_blocks = 1},
      15'706'484'224, "deepseek-ai/DeepSeek-V2-Lite",
      "DeepSeek-V2-Lite, 15.7 billion parameters, 27 blocks, 6 of 64 experts and 2 shared");
  add("deepseek-v2", "deepseek-v2", {60, 5120, 128, 128, 12288}, 102400, 1536,
      {.count = 160,
       .chosen = 6,
       .ffn = 1536,
       .shared_ffn = std::int64_t{2} * 1536,
       .dense_blocks = 1,
       .groups = 8,
       .chosen_groups = 3},
      235'741'434'880, "deepseek-ai/DeepSeek-V2",
      "DeepSeek-V2, 235.7 billion parameters, 60 blocks, 6 of 160 experts and 2 shared");
  add("deepseek-v3", "deepseek-v3", {61, 7168, 128, 128, 18432}, 129280, 1536,
      {.count = 256,
       .chosen = 8,
       .ffn = 2048,
       .shared_ffn = 2048,
       .dense_blocks = 3,
       .correction_bias = true,
       .groups = 8,
       .chosen_groups = 4},
      671'026'419'200, "deepseek-ai/DeepSeek-V3",
      "DeepSeek-V3 without MTP, 671.0 billion parameters, 61 blocks, 8 of 256 experts and 1 shared");
  table.back().config.prediction_modules = 1;
  add("kimi-k2", "kimi-k2", {61, 7168, 64, 64, 18432}, 163840, 1536,
      {.count = 384,
       .chosen = 8,
       .ffn = 2048,
       .shared_ffn = 2048,
       .dense_blocks = 1,
       .correction_bias = true},
      1'026'408'232'448, "moonshotai/Kimi-K2-Base",
      "Kimi K2, 1,026.4 billion parameters, 61 blocks, 8 of 384 experts and 1 shared");
}

// Heads of 64, biases everywhere, windows in every other block, a sink for each head, a clamped
// activation.
void add_gpt_oss(Table& table) {
  const auto add = [&](std::string_view name, std::int64_t layers, std::int64_t experts,
                       std::int64_t published, std::string_view repository,
                       std::string_view summary) {
    TransformerConfig config =
        llama_like(name, "gpt-oss", {layers, 2880, 64, 8, 2880}, 201088, 4096, repository);
    config.head_width = 64;
    config.query_key_value_bias = true;
    config.projection_bias = true;
    config.mlp_bias = true;
    config.clamped = true;
    config.sinks = true;
    config.window = 128;
    config.window_every = 2;
    config.experts = Experts{.count = experts, .chosen = 4, .ffn = 2880, .correction_bias = true};
    table.push_back({std::move(config), published, summary});
  };
  add("gpt-oss-20b", 24, 32, 20'914'757'184, "openai/gpt-oss-20b",
      "GPT-OSS, 20.9 billion parameters, 24 blocks, 4 of 32 experts");
  add("gpt-oss-120b", 36, 128, 116'829'156'672, "openai/gpt-oss-120b",
      "GPT-OSS, 116.8 billion parameters, 36 blocks, 4 of 128 experts");
}

// Norms before and behind, windows in every other block.
void add_gemma2(Table& table) {
  const auto add = [&](std::string_view name, const FamilySize& size, std::int64_t head_width,
                       std::int64_t published, std::string_view repository,
                       std::string_view summary) {
    TransformerConfig config = llama_like(name, "gemma2", size, 256000, 8192, repository);
    config.head_width = head_width;
    config.tied = true;
    config.norms_behind = true;
    config.window = 4096;
    config.window_every = 2;
    table.push_back({std::move(config), published, summary});
  };
  add("gemma2-2b", {26, 2304, 8, 4, 9216}, 256, 2'614'341'888, "google/gemma-2-2b",
      "Gemma 2, 2.6 billion parameters, 26 blocks, 4 of 8 heads for keys and values");
  add("gemma2-9b", {42, 3584, 16, 8, 14336}, 256, 9'241'705'984, "google/gemma-2-9b",
      "Gemma 2, 9.2 billion parameters, 42 blocks, 8 of 16 heads for keys and values");
  add("gemma2-27b", {46, 4608, 32, 16, 36864}, 128, 27'227'128'320, "google/gemma-2-27b",
      "Gemma 2, 27.2 billion parameters, 46 blocks, 16 of 32 heads for keys and values");
}

Table build() {
  Table table;
  add_gpt2(table);
  add_gpt3(table);
  add_megatron(table);
  add_bloom(table);
  add_llama(table);
  add_mistral(table);
  add_qwen25(table);
  add_qwen3(table);
  add_deepseek(table);
  add_gpt_oss(table);
  add_gemma2(table);
  add_recent_families(table);
  return table;
}

}  // namespace

std::string config_json(std::string_view repository) {
  return "https://huggingface.co/" + std::string(repository) + "/blob/main/config.json";
}

TransformerConfig sized(std::string_view name, std::string_view family, const FamilySize& size,
                        std::string source) {
  TransformerConfig config;
  config.name = name;
  config.family = family;
  config.layers = size.layers;
  config.hidden = size.hidden;
  config.heads = size.heads;
  config.kv_heads = size.kv_heads;
  config.head_width = size.hidden / size.heads;
  config.ffn = size.ffn;
  config.source = std::move(source);
  return config;
}

TransformerConfig llama_like(std::string_view name, std::string_view family, const FamilySize& size,
                             std::int64_t vocab, std::int64_t seq, std::string_view repository) {
  TransformerConfig config = sized(name, family, size, config_json(repository));
  config.gated = true;
  config.vocab = vocab;
  config.seq = seq;
  return config;
}

std::span<const FamilyMember> families() {
  static const Table table = build();
  return table;
}

const FamilyMember* find_family(std::string_view name) {
  for (const FamilyMember& member : families()) {
    if (same_name(member.config.name, name)) return &member;
  }
  return nullptr;
}

}  // namespace stageline
