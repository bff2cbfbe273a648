// Is every model_type read with the parameters that transformers counts, and every block as what it
// is?
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/transformers/config.hpp"
#include "cost_models/transformers/hugging_face.hpp"
#include "cost_models/transformers/rank_parameters.hpp"
#include "cost_models/transformers/rank_sizes.hpp"
#include "sim/base/errors.hpp"

namespace stageline::model_types_tests {
namespace {

using Json = nlohmann::json;

TransformerConfig read(const Json& json) { return read_hugging_face(json.dump(), "config.json"); }

// Empty: it was read.
std::string refusal(const std::string& text) {
  try {
    read_hugging_face(text, "config.json");
  } catch (const TraceError& error) {
    return error.what();
  }
  return "";
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Configurations with the parameters that transformers 5.24 counts on its meta device, and a
// router's correction where it is a buffer. Of the active ones the idle experts are taken off.
std::vector<Json> counted() {
  const char* const source = std::getenv("STAGELINE_SOURCE");
  REQUIRE(source != nullptr);
  const std::filesystem::path root(source);
  return Json::parse(text_of(root / "tests/cost_models/transformers/families.json"))
      .get<std::vector<Json>>();
}

Json counted_of(std::string_view type) {
  for (const Json& one : counted()) {
    if (one["config"]["model_type"] == type) return one["config"];
  }
  REQUIRE_MESSAGE(false, type);
  return {};
}

// A letter a block: F attention, W with a window, L linear, B both, _ none; e experts, d dense, _
// none.
std::string letters(const TransformerConfig& config) {
  std::string text;
  for (std::int64_t i = 0; i < config.layers; ++i) {
    const BlockKind kind = config.kind(i);
    text += kind.mixer == Mixer::linear ? 'L'
            : kind.mixer == Mixer::both ? 'B'
            : kind.mixer == Mixer::none ? '_'
            : kind.window               ? 'W'
                                        : 'F';
    text += kind.feed == Feed::experts ? 'e' : kind.feed == Feed::dense ? 'd' : '_';
  }
  return text;
}

TEST_CASE("every model_type has the parameters that transformers counts") {
  std::vector<std::string> types{"gpt2",
                                 "gpt_neox",
                                 "mistral",
                                 "mixtral",
                                 "qwen2",
                                 "qwen2_moe",
                                 "deepseek_v2",
                                 "gemma2",
                                 "bloom",
                                 "baichuan",
                                 "internlm2",
                                 "gemma4_text",
                                 "gemma4_unified_text"};
  for (const Json& one : counted()) {
    CAPTURE(one.dump());
    const TransformerConfig config = read(one["config"]);
    CHECK(parameters(config) == one["parameters"].get<std::int64_t>());
    CHECK(active_parameters(config) == one["active"].get<std::int64_t>());
    types.push_back(one["config"]["model_type"]);
  }
  for (const std::string& type : hugging_face_types()) {
    CAPTURE(type);
    CHECK(std::find(types.begin(), types.end(), type) != types.end());
  }
}

TEST_CASE("a window's width says nothing where layer_types lists no block with one") {
  Json json = counted_of("mellum");
  const std::int64_t count = parameters(read(json));
  json["layer_types"] = std::vector<std::string>(4, "full_attention");
  const TransformerConfig config = read(json);
  CHECK(config.window == 0);
  CHECK(parameters(config) == count);
  json.erase("layer_types");
  json["model_type"] = "qwen3_moe";  // which has windows under another key, too
  json.erase("mlp_layer_types");
  json["use_sliding_window"] = true;
  CHECK(!refusal(json.dump()).empty());
}

TEST_CASE("types are refused by what they are, or read under the name of another") {
  const Json llama = counted_of("llama");
  const auto as = [&](const char* type) {
    Json json = llama;
    json["model_type"] = type;
    return refusal(json.dump());
  };
  for (const char* const type : {"t5", "bart", "whisper", "marian", "nllb-moe"}) {
    CAPTURE(type);
    CHECK(as(type).find("two chains of blocks") != std::string::npos);
  }
  CHECK(as("vit").find("reads images and has no vocabulary") != std::string::npos);
  CHECK(read(counted_of("xlm-roberta")).family == "roberta");
  CHECK(read(counted_of("codegen")).family == "gptj");
}

TEST_CASE("Apertus counts what its activation learns, on each tensor-parallel rank") {
  const TransformerConfig config = read(counted_of("apertus"));
  CHECK(config.activation_parameters == 2);
  TransformerConfig without = config;
  without.activation_parameters = 0;
  CHECK(parameters(config) == parameters(without) + 2 * config.layers);
  const Sharding halves{.tensor = 2};
  CHECK(parameters_of_block(config, halves, 0).all ==
        parameters_of_block(without, halves, 0).all + 2);
}

TEST_CASE("InternLM 2 and Baichuan have Llama's parameters") {
  const Json llama = counted_of("llama");
  for (const char* const type : {"internlm2", "baichuan"}) {
    Json json = llama;
    json.erase("attention_bias");
    json.erase("mlp_bias");
    TransformerConfig as_llama = read(json);
    json["model_type"] = type;
    CHECK(parameters(read(json)) == parameters(as_llama));
  }
}

struct Case {
  const char* file;
  std::int64_t parameters;
  std::int64_t active;
  const char* blocks;
};

TEST_CASE("the files that people have are read") {
  const char* const data = std::getenv("STAGELINE_DATA");
  const std::filesystem::path folder =
      data == nullptr ? "" : std::filesystem::path(data) / "cases" / "files";
  if (data == nullptr || !std::filesystem::exists(folder / "config_gemma1.json")) {
    MESSAGE("skipped: STAGELINE_DATA holds no cases/files/config_gemma1.json");
    return;
  }
  const std::vector<Case> cases{{"false_keys", 40'557'824, 19'324'160, "FeFeFeFeFeFe"},
                                {"harmless_keys", 25'172'480, 25'172'480, "FdFdFdFdFdFd"},
                                {"fp8_weights", 34'118'784, 19'963'008, "FdFeFeFeFe"},
                                {"kimi_k2", 34'118'784, 19'963'008, "FdFeFeFeFe"},
                                {"infinity", 53'070'464, 53'070'464, "L__dL_F__dL_"},
                                {"gemma1", 23'403'008, 23'403'008, "FdFdFdFdFdFd"},
                                {"gpt_oss", 50'051'168, 21'684'320, "WeFeWeFeWeFe"},
                                {"minimax_m2", 40'560'896, 19'327'232, "FeFeFeFeFeFe"},
                                {"gemma3_text", 21'050'624, 21'050'624, "WdWdWdWdWdFd"},
                                {"olmo2", 25'176'320, 25'176'320, "FdFdFdFdFdFd"},
                                {"phi3", 25'172'480, 25'172'480, "FdFdFdFdFdFd"},
                                {"smollm3", 21'043'712, 21'043'712, "FdFdFdFdFdFd"},
                                {"starcoder2", 16'744'192, 16'744'192, "WdWdWdWdWdWd"},
                                {"qwen3_next", 34'592'784, 20'437'008, "LeLeLeFeLeLe"},
                                {"windows_last", 25'177'088, 25'177'088, "FdFdFdWdWdWd"},
                                {"dense_between", 35'429'632, 21'273'856, "FdFeFeFeFeFd"},
                                {"text_inside", 21'044'480, 21'044'480, "FdFdFdFdFdFd"}};
  for (const Case& one : cases) {
    CAPTURE(one.file);
    const std::string name = std::string("config_") + one.file + ".json";
    const TransformerConfig config = read_hugging_face(text_of(folder / name), name);
    CHECK(parameters(config) == one.parameters);
    CHECK(active_parameters(config) == one.active);
    CHECK(letters(config) == one.blocks);
  }
}

TEST_CASE("a key that says nothing is no reason to refuse a file") {
  const Json plain = counted_of("qwen3");
  Json json = plain;
  json.update({{"qkv_bias", false},
               {"shared_expert_intermediate_size", 0},
               {"use_qk_norm", true},
               {"pruned_heads", Json::object()},
               {"unsloth_version", "2025.1"},
               {"is_encoder_decoder", false},
               {"problem_type", nullptr},
               {"prefix", ""}});
  CHECK(read(json) == read(plain));
  // A llama has no norms of queries and keys that a file could state.
  Json llama = counted_of("llama");
  llama["use_qk_norm"] = true;
  CHECK_FALSE(refusal(llama.dump()).empty());
}

TEST_CASE("keys with an effect that is not known are refused all at once") {
  Json json = counted_of("llama");
  json.update({{"memory_tokens", 16}, {"num_hidden_layer", 4}, {"use_moe", true}});
  CHECK(
      refusal(json.dump()) ==
      "config.json: the keys \"memory_tokens\", \"num_hidden_layer\" (did you mean "
      "\"num_hidden_layers\"?), \"use_moe\" are not known for model_type \"llama\" and may change "
      "what is computed; remove those that do not");
}

TEST_CASE("Python's Infinity is no number, and no reason to refuse a file") {
  std::string text = counted_of("nemotron_h").dump();
  const TransformerConfig plain = read_hugging_face(text, "config.json");
  text.back() = ',';
  const std::string more = text + R"("time_step_limit": [0.0, Infinity], "_note": "-Infinity"})";
  CHECK(read_hugging_face(more, "config.json") == plain);
  CHECK(refusal(text + R"("a": Inf})").find("this is not JSON") != std::string::npos);
}

TEST_CASE("a type of another name is read as its class says") {
  Json json = counted_of("deepseek_v3");
  const TransformerConfig plain = read(json);
  json["architectures"] = {"DeepseekV3ForCausalLM"};
  for (const char* const type : {"kimi_k2", "a_new_name"}) {
    json["model_type"] = type;
    CHECK(read(json) == plain);
  }
  json["architectures"] = {"AnotherForCausalLM"};
  CHECK_FALSE(refusal(json.dump()).empty());
}

TEST_CASE("quantized weights are counted as if they were not, with a note") {
  Json json = counted_of("deepseek_v3");
  const std::int64_t plain = parameters(read(json));
  json["quantization_config"] = {{"quant_method", "fp8"}};
  const TransformerConfig config = read(json);
  CHECK(parameters(config) == plain);
  REQUIRE(config.notes.size() == 1);
  CHECK(config.notes[0].find("stored quantized (fp8)") != std::string::npos);
}

TEST_CASE("the language model of one that reads images is priced, and a note says so") {
  const Json text = counted_of("qwen3");
  Json whole{{"model_type", "qwen3_vl"},
             {"architectures", {"Qwen3VLForConditionalGeneration"}},
             {"text_config", text},
             {"vision_config", {{"depth", 2}}},
             {"image_token_id", 5}};
  whole["text_config"]["model_type"] = "qwen3_vl_text";
  const TransformerConfig config = read(whole);
  CHECK(parameters(config) == parameters(read(text)));
  CHECK(config.notes.size() == 1);
  whole["text_config"]["memory_tokens"] = 3;
  CHECK(refusal(whole.dump()).starts_with("config.json at /text_config/memory_tokens: "));
  whole["text_config"]["model_type"] = "mllama_text_model";
  CHECK(refusal(whole.dump()).find("/text_config/model_type: model_type") != std::string::npos);
}

TEST_CASE("lists and distances say which block is what") {
  Json olmo = counted_of("olmo3");
  olmo["num_hidden_layers"] = 6;
  CHECK(letters(read(olmo)) == "WdWdWdFdWdWd");
  olmo["layer_types"] = {"full_attention", "full_attention",    "sliding_attention",
                         "full_attention", "sliding_attention", "full_attention"};
  CHECK(letters(read(olmo)) == "FdFdWdFdWdFd");
  Json exaone = counted_of("exaone4");
  exaone.update(
      {{"num_hidden_layers", 4}, {"sliding_window", 64}, {"sliding_window_pattern", "LLG"}});
  CHECK(letters(read(exaone)) == "WdWdFdWd");
  Json minimax = counted_of("minimax");
  minimax.erase("layer_types");
  CHECK(refusal(minimax.dump()).find("\"layer_types\" is missing") != std::string::npos);
  minimax.update({{"num_hidden_layers", 3}, {"attn_type_list", {0, 0, 1}}});
  CHECK(letters(read(minimax)) == "LeLeFe");
  Json nemotron = counted_of("nemotron_h");
  nemotron.erase("num_hidden_layers");
  nemotron["hybrid_override_pattern"] = "M-E*";
  CHECK(letters(read(nemotron)) == "L__d_eF_");
  nemotron["hybrid_override_pattern"] = "M?";
  CHECK(refusal(nemotron.dump()).find("may have M, *, - and E, not ?") != std::string::npos);
}

TEST_CASE("a named model is what its config.json says") {
  const Json next{{"model_type", "qwen3_next"},
                  {"hidden_size", 2048},
                  {"num_hidden_layers", 48},
                  {"num_attention_heads", 16},
                  {"num_key_value_heads", 2},
                  {"head_dim", 256},
                  {"intermediate_size", 5120},
                  {"moe_intermediate_size", 512},
                  {"shared_expert_intermediate_size", 512},
                  {"num_experts", 512},
                  {"num_experts_per_tok", 10},
                  {"vocab_size", 151936},
                  {"linear_num_key_heads", 16},
                  {"linear_num_value_heads", 32},
                  {"linear_key_head_dim", 128},
                  {"linear_value_head_dim", 128},
                  {"linear_conv_kernel_dim", 4}};
  TransformerConfig config = read(next);
  const TransformerConfig& named = find_family("qwen3-next-80b")->config;
  config.name = named.name;
  config.family = named.family;
  config.source = named.source;
  config.seq = named.seq;
  CHECK(config == named);
  CHECK(active_parameters(named) == 3'874'929'408);
}

TEST_CASE("blocks of states, of both kinds and of windows are where the file says") {
  CHECK(letters(read(counted_of("falcon_h1"))) == "BdBdBd");
  CHECK(letters(read(counted_of("mamba"))) == "L_L_L_");
  CHECK(letters(read(counted_of("mamba2"))) == "L_L_L_");
  CHECK(letters(read(counted_of("jamba"))) == "LdLeFdLeLdLeFdLe");
  CHECK(letters(read(counted_of("lfm2"))) == "LdLdFdLdFd");
  CHECK(letters(read(counted_of("lfm2_moe"))) == "LdFeLeLe");
  CHECK(letters(read(counted_of("gpt_neo"))) == "FdWdFdWd");
  CHECK(letters(read(counted_of("modernbert"))) == "FdWdWdFd");
  CHECK(letters(read(counted_of("dbrx"))) == "FeFeFe");
}

TEST_CASE("Helium's heads are as wide as the hidden state together") {
  Json json = counted_of("helium");
  json["head_dim"] = 2 * json["head_dim"].get<int>();
  CHECK(refusal(json.dump()).find("num_attention_heads times head_dim") != std::string::npos);
}

TEST_CASE("blocks of GLM-5 share indexers as the file says") {
  Json json = counted_of("glm_moe_dsa");
  const auto indexers = [](const TransformerConfig& config) {
    std::string text;
    for (std::int64_t i = 0; i < config.layers; ++i) text += config.kind(i).indexer ? 'F' : 'S';
    return text;
  };
  CHECK(indexers(read(json)) == "FFSFSF");
  json["index_topk_pattern"] = "FSSFSS";
  CHECK(indexers(read(json)) == "FSSFSS");
  json.erase("index_topk_pattern");
  json.erase("index_topk_freq");
  CHECK(indexers(read(json)) == "FFFFFF");
  json["indexer_types"] = {"shared", "full", "full", "full", "full", "full"};
  CHECK(refusal(json.dump()).find("the first block has no indexer") != std::string::npos);
}

TEST_CASE("an encoder's tokens attend to all, and its class may be of masked tokens") {
  Json json = counted_of("bert");
  CHECK_FALSE(read(json).causal);
  json["architectures"] = {"BertForMaskedLM"};
  CHECK(read(json).headless.empty());
  json["architectures"] = {"BertForPreTraining"};
  CHECK_FALSE(refusal(json.dump()).empty());
  json.erase("architectures");
  json["position_embedding_type"] = "relative_key";
  CHECK_FALSE(refusal(json.dump()).empty());
  json.erase("position_embedding_type");
  json["is_decoder"] = true;
  CHECK_FALSE(refusal(json.dump()).empty());
}

TEST_CASE("published totals: DBRX and MPT 7B") {
  const Json dbrx = Json::parse(R"({"model_type": "dbrx", "d_model": 6144, "n_heads": 48,
    "n_layers": 40, "max_seq_len": 32768, "vocab_size": 100352,
    "attn_config": {"clip_qkv": 8, "kv_n_heads": 8, "model_type": "", "rope_theta": 500000},
    "ffn_config": {"ffn_hidden_size": 10752, "moe_loss_weight": 0.05, "model_type": "",
                   "moe_num_experts": 16, "moe_top_k": 4}})");
  CHECK(parameters(read(dbrx)) == 131'596'523'520);
  const Json mpt = Json::parse(R"({"model_type": "mpt", "d_model": 4096, "n_heads": 32,
    "n_layers": 32, "max_seq_len": 2048, "vocab_size": 50432, "expansion_ratio": 4,
    "no_bias": true, "verbose": 0, "init_config": {"name": "kaiming_normal_"},
    "attn_config": {"alibi": true, "attn_impl": "torch", "attn_type": "multihead_attention"}})");
  CHECK(parameters(read(mpt)) == 6'649'286'656);
  Json other = mpt;
  other["attn_config"]["qk_ln"] = true;
  CHECK(refusal(other.dump()).find("qk_ln") != std::string::npos);
}

TEST_CASE("a type with parts that are not modelled is refused by what they are") {
  CHECK(refusal(R"({"model_type": "t5", "architectures": ["T5ForConditionalGeneration"]})")
            .find("an encoder and a decoder") != std::string::npos);
  for (const char* const type : {"gemma3n", "rwkv", "qwen4_exp", "zamba2"}) {
    const std::string message = refusal(Json{{"model_type", type}}.dump());
    CHECK(message.find("is not priced: ") != std::string::npos);
  }
}

// As published, without what says nothing about sizes.
Json gemma4_31b() {
  return Json::parse(R"({"model_type": "gemma4_text", "hidden_size": 5376, "num_hidden_layers": 60,
    "intermediate_size": 21504, "num_attention_heads": 32, "num_key_value_heads": 16,
    "num_global_key_value_heads": 4, "head_dim": 256, "global_head_dim": 512,
    "attention_k_eq_v": true, "vocab_size": 262144, "vocab_size_per_layer_input": 262144,
    "hidden_size_per_layer_input": 0, "num_kv_shared_layers": 0, "sliding_window": 1024,
    "use_bidirectional_attention": "vision", "enable_moe_block": false, "num_experts": null,
    "top_k_experts": null, "moe_intermediate_size": null, "final_logit_softcapping": 30.0,
    "max_position_embeddings": 262144, "use_double_wide_mlp": false, "attention_bias": false})");
}

TEST_CASE("Gemma 4 has wider heads in blocks without a window, and experts beside a dense MLP") {
  const TransformerConfig dense = read(gemma4_31b());
  CHECK(letters(dense).starts_with("WdWdWdWdWdFdWd"));
  CHECK(dense.kind(5).wide);
  CHECK_FALSE(dense.kind(4).wide);
  // Keys and values of a block without a window are one product of 4 heads.
  const std::int64_t h = 5376;
  const std::int64_t others = 3 * h * 21504 + 4 * h;
  CHECK(block_parameters(dense, 4) == others + h * 256 * (2 * 32 + 2 * 16) + 2 * 256);
  CHECK(block_parameters(dense, 5) == others + h * 512 * (2 * 32 + 4) + 2 * 512);
  CHECK(parameters(dense) == 30'697'345'280);  // "30.7B", its model card

  Json routed = gemma4_31b();
  routed.merge_patch(Json::parse(R"({"hidden_size": 2816, "num_hidden_layers": 30,
    "intermediate_size": 2112, "num_attention_heads": 16, "num_key_value_heads": 8,
    "num_global_key_value_heads": 2, "enable_moe_block": true, "num_experts": 128,
    "top_k_experts": 8, "moe_intermediate_size": 704})"));
  const TransformerConfig experts = read(routed);
  CHECK(letters(experts).starts_with("WeWeWeWeWeFeWe"));
  CHECK(block_parameters(experts, 0) - expert_parameters(experts, 0) ==
        2816 * (256 * (2 * 16 + 2 * 8) + 3 * 2112 + 128 + 8) + 128 + 2 * 256);
  CHECK(parameters(experts) == 25'233'141'760);  // "25.2B"
}

TEST_CASE("Gemma 4 with parts that are not modelled is refused by their names") {
  const auto with = [](const char* patch) {
    Json json = gemma4_31b();
    json.merge_patch(Json::parse(patch));
    return refusal(json.dump());
  };
  CHECK(with("{}").empty());
  CHECK(with(R"({"hidden_size_per_layer_input": 256})").find("inputs of a block's own") !=
        std::string::npos);
  Json small = gemma4_31b();
  small.erase("hidden_size_per_layer_input");
  CHECK(refusal(small.dump()).find("as it is where it is missing") != std::string::npos);
  CHECK(
      with(R"({"model_type": "gemma4_unified_text", "vocab_size_per_layer_input": null})").empty());
  small["model_type"] = "gemma4_unified_text";  // which has none
  small.erase("vocab_size_per_layer_input");
  CHECK(refusal(small.dump()).empty());
  CHECK(with(R"({"num_kv_shared_layers": 20})").find("share keys and values") != std::string::npos);
  CHECK(with(R"({"use_bidirectional_attention": "all"})").find("causal") != std::string::npos);
  CHECK(with(R"({"per_layer_config": {"0": {"head_dim": 64}}})").find("per_layer_config") !=
        std::string::npos);
}

TEST_CASE("wide heads are priced as they are: no less than a model of either heads alone") {
  LanguageForm form;
  form.batch = 1;
  form.seq = 4096;
  form.attention = AttentionKernel::flash;
  const TransformerConfig both = read(gemma4_31b());
  TransformerConfig narrow = both;
  for (BlockKind& kind : narrow.pattern) kind.wide = false;
  narrow.wide.reset();
  TransformerConfig wide = both;
  wide.head_width = 512;
  wide.kv_heads = 4;
  const auto queries = [&](const TransformerConfig& config, std::int64_t block) {
    return rank_sizes(config, form, block).queries();
  };
  CHECK(queries(both, 4) == queries(narrow, 4));
  CHECK(queries(both, 5) == 2 * queries(narrow, 5));
  CHECK(queries(both, 5) == queries(wide, 5));
  CHECK(attention_products(both, 5, 4096) == 2 * attention_products(narrow, 5, 4096));
  CHECK(kept_by_block(both, form, 5).input_grad > kept_by_block(narrow, form, 5).input_grad);
  // Two ranks of eight share a head of four.
  const Sharding eight{.tensor = 8};
  CHECK(8 * parameters_of_block(both, eight, 5).all > block_parameters(both, 5) + 4 * 512 * 5376);
}

}  // namespace
}  // namespace stageline::model_types_tests
