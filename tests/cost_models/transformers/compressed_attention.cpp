// Does DeepSeek-V4 have the parameters, kernels, bytes and messages of its compressed attention and
// of the streams of its residual?
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/transformers/config.hpp"
#include "cost_models/transformers/hugging_face.hpp"
#include "cost_models/transformers/kernel_rates.hpp"
#include "cost_models/transformers/kernels.hpp"
#include "cost_models/transformers/language_form.hpp"
#include "cost_models/transformers/language_model.hpp"
#include "cost_models/transformers/rank_parameters.hpp"
#include "sim/base/errors.hpp"
#include "tests/cost_models/transformers/model_questions.hpp"

namespace stageline::compressed_attention_tests {
namespace {

using test::flops_of;
using test::read_config;
using test::refusal_of_config;

using Json = nlohmann::json;

const TransformerConfig& flash() { return find_family("deepseek-v4-flash")->config; }
const TransformerConfig& pro() { return find_family("deepseek-v4-pro")->config; }

LanguageForm form_of(std::int64_t tokens) {
  LanguageForm form;
  form.seq = tokens;
  form.fused = true;
  return form;
}

double bytes_of_streams(const std::vector<Kernel>& kernels) {
  double bytes = 0;
  for (const Kernel& kernel : kernels) {
    if (kernel.name.starts_with("streams_")) bytes += kernel.bytes;
  }
  return bytes;
}

Json file() {
  return Json::parse(R"({"model_type": "deepseek_v4", "architectures": ["DeepseekV4ForCausalLM"],
    "hidden_size": 256, "num_hidden_layers": 6, "num_attention_heads": 8, "head_dim": 64,
    "q_lora_rank": 96, "o_groups": 4, "o_lora_rank": 32, "n_routed_experts": 8,
    "num_experts_per_tok": 2, "moe_intermediate_size": 128, "vocab_size": 1000,
    "index_n_heads": 4, "index_head_dim": 16, "index_topk": 32, "sliding_window": 16,
    "num_key_value_heads": 2, "expert_dtype": "fp4", "hc_sinkhorn_iters": 20, "hc_eps": 1e-06,
    "compress_rope_theta": 160000, "swiglu_limit": 10.0, "topk_method": "noaux_tc"})");
}

DeviceKind h100() {
  DeviceKind kind;
  kind.name = "h100";
  kind.title = "NVIDIA H100 SXM5 80 GB";
  kind.source = "data sheet";
  kind.memory_bandwidth = {3'350'000'000'000};
  kind.peak = {{"fp32", 66.9e12}, {"bf16", 989.4e12}, {"fp16", 989.4e12}};
  return kind;
}

Model priced(const TransformerConfig& config, const LanguageForm& form) {
  return language_model(config, form, h100(), {}, find_chip_rates("h100")->rates, "the test");
}

Bytes stash(const Layer& layer) { return layer.stash_input_grad + layer.stash_weight_grad; }

double times(const Model& model) {
  return to_seconds(model.layers[2].forward) + to_seconds(model.layers[2].backward);
}

// A letter a block: - no compression, S sparse, H heavy.
std::string letters(const TransformerConfig& config) {
  std::string text;
  for (std::int64_t i = 0; i < config.layers; ++i) {
    const Compression compression = config.kind(i).compression;
    text += compression == Compression::sparse  ? 'S'
            : compression == Compression::heavy ? 'H'
                                                : '-';
  }
  return text;
}

}  // namespace

TEST_CASE("DeepSeek-V4 has the published total, active and relative figures") {
  // Model cards: 284B with 13B active; 1.6T with 49B active (deepseek-ai/DeepSeek-V4-Flash, -Pro).
  // The active ones are without the table of the embedding.
  const auto billions = [](std::int64_t number) {
    return std::lround(static_cast<double>(number) / 1e9);
  };
  const std::int64_t table = flash().vocab * flash().hidden;
  CHECK(billions(parameters(flash())) == 284);
  CHECK(billions(active_parameters(flash()) - table) == 13);
  CHECK(billions(parameters(pro())) == 1573);
  CHECK(billions(active_parameters(pro()) - pro().vocab * pro().hidden) == 49);
  // A token's forward at a million tokens of context takes 27 % of DeepSeek-V3.2's FLOPs.
  TransformerConfig third = find_family("deepseek-v3")->config;
  third.latent->index_heads = 64;
  third.latent->index_width = 128;
  third.latent->index_keys = 2048;
  constexpr std::int64_t million = 1 << 20;
  CHECK(model_flops(pro(), million, 1) / model_flops(third, million, 1) ==
        doctest::Approx(0.27).epsilon(0.02));
}

TEST_CASE("the blocks that compress keys are read from lists of either age, or as usual") {
  Json json = file();
  CHECK(letters(read_config(json)) == "HHHSHS");
  CHECK(read_config(json).kv_heads == 1);               // whatever the file says
  json["compress_ratios"] = {0, 0, 4, 128, 4, 128, 0};  // and of a module that predicts
  CHECK(letters(read_config(json)) == "--SHSH");
  json["layer_types"] = {
      "sliding_attention",           "heavily_compressed_attention", "heavily_compressed_attention",
      "compressed_sparse_attention", "compressed_sparse_attention",  "sliding_attention"};
  CHECK(letters(read_config(json)) == "-HHSS-");
  json["compress_rates"] = {{"compressed_sparse_attention", 8}};
  CHECK(read_config(json).compressed->sparse_rate == 8);
  CHECK(read_config(json).compressed->heavy_rate == 128);
  json["compress_rate_hca"] = 64;
  CHECK(read_config(json).compressed->heavy_rate == 64);

  const std::int64_t corrected = parameters(read_config(json));
  json["num_hash_layers"] = 0;  // three blocks more with a number an expert
  CHECK(parameters(read_config(json)) == corrected + 3 * 8);
  json["mlp_layer_types"] = {"hash_moe", "hash_moe", "hash_moe", "hash_moe", "moe", "moe"};
  CHECK(parameters(read_config(json)) == corrected - 8);
}

TEST_CASE("what DeepSeek-V4's class does not make is refused by its key") {
  const auto with = [](const char* patch) {
    Json json = file();
    json.merge_patch(Json::parse(patch));
    return refusal_of_config(json);
  };
  CHECK(with("{}").empty());
  CHECK(with(R"({"compress_ratios": [0, 4]})").find("compress_ratios has 2 blocks") !=
        std::string::npos);
  CHECK(with(R"({"compress_ratios": [0, 0, 4, 16, 4, 4]})").find("not 16") != std::string::npos);
  CHECK(with(R"({"layer_types": ["full_attention", "full_attention", "full_attention",
                                 "full_attention", "full_attention", "full_attention"]})")
            .find("not full_attention") != std::string::npos);
  CHECK(with(R"({"mlp_layer_types": ["moe", "hash_moe", "moe", "moe", "moe", "moe"]})")
            .find("moe behind all of these") != std::string::npos);
  CHECK(with(R"({"n_shared_experts": 2})").find("n_shared_experts must be 1") != std::string::npos);
  CHECK(with(R"({"o_groups": 3})").find("groups") != std::string::npos);
  CHECK(with(R"({"attention_bias": true})").find("attention_bias") != std::string::npos);
}

TEST_CASE("tokens attend to a window, and to compressed keys that are all or some") {
  constexpr double tokens = 8192;
  const LanguageForm form = form_of(8192);
  const double window = 128 * tokens - 128.0 * 128 / 2;
  const double all = tokens * tokens / 2;
  const double chosen = 2048 * tokens - 2048.0 * 2048 / 2;  // 512 keys of 4 tokens
  const auto scores = [&](std::int64_t block) {
    return flops_of(block_kernels(flash(), form, block).forward, "attention") / (2 * 64 * 1024.0);
  };
  CHECK(scores(0) == doctest::Approx(window));
  CHECK(scores(2) == doctest::Approx(window + chosen / 4));
  CHECK(scores(3) == doctest::Approx(window + all / 128));
  const LayerKernels sparse = block_kernels(flash(), form, 2);
  CHECK(flops_of(sparse.forward, "index_scores") == 2 * (all / 4) * 64 * 128);
  CHECK(flops_of(block_kernels(flash(), form, 3).forward, "index_scores") == 0);
  // The products of a block's forward have a multiply-accumulate a weight and token; the streams'
  // are made as their kernels read them.
  for (const std::int64_t block : {0, 2, 3}) {
    CAPTURE(block);
    double products = 0;
    for (const Kernel& kernel : block_kernels(flash(), form, block).forward) {
      if (kernel.kind == KernelKind::gemm || kernel.kind == KernelKind::grouped) {
        products += kernel.flops;
      }
    }
    const double weights =
        static_cast<double>(block_parameters(flash(), block) - expert_parameters(flash(), block)) +
        6 * 3.0 * 4096 * 2048;
    CHECK(products / (2 * tokens) == doctest::Approx(weights).epsilon(0.01));
  }
}

TEST_CASE("streams multiply what passes between blocks, and cost about what their authors say") {
  const LanguageForm form = form_of(4096);
  TransformerConfig one = flash();
  one.streams = 0;
  const LayerKernels with = block_kernels(flash(), form, 3);
  CHECK(bytes_of_streams(block_kernels(one, form, 3).forward) == 0);
  // Two halves read and write 4·4 + 2 hidden states, and 24 weights in fp32 twice.
  CHECK(bytes_of_streams(with.forward) ==
        doctest::Approx(2 * 4096.0 * (2.0 * 4096 * 18 + 4.0 * 24 * 2)));
  // What a pipeline sends, and what the head collapses.
  const Model model = priced(flash(), form);
  const Model alone = priced(one, form);
  CHECK(model.layers[1].output == alone.layers[1].output * 4);
  CHECK(model.layers.front().output == alone.layers.front().output * 4);
  CHECK(model.layers.back().output == alone.layers.back().output);
  CHECK(model.layers.back().forward > alone.layers.back().forward);
  // Both halves keep four streams of 16 bits, the output that is expanded, and 24 weights in fp32.
  const double kept = 2 * 4096.0 * (2 * 4096.0 * 5 + 4 * 24);
  CHECK(static_cast<double>((stash(model.layers[2]) - stash(alone.layers[2])).count) ==
        doctest::Approx(kept));
  // arXiv 2512.24880: 6.7 % more time with four streams, of a model of 27 billion parameters.
  LanguageForm large = form_of(4096);
  large.batch = 8;
  const double longer = times(priced(flash(), large)) / times(priced(one, large));
  CHECK(longer > 1.04);
  CHECK(longer < 1.10);
}

TEST_CASE("tensor-parallel ranks share heads and groups, and repeat the rest") {
  const std::int64_t h = 4096;
  for (const std::int64_t block : {0, 2, 3}) {
    CAPTURE(block);
    const std::int64_t whole = parameters_of_block(flash(), {}, block).all;
    CHECK(whole == block_parameters(flash(), block));
    const Sharding eight{.tensor = 8, .expert = 8, .expert_tensor = 1};
    const std::int64_t shared = 1024 * 64 * 512 + 64 * 512 * 1024 + 8 * 1024 * h + 64;
    const std::int64_t experts = 32 * 3 * h * 2048;
    const std::int64_t rank = whole - 256 * 3 * h * 2048 + experts - shared + shared / 8 -
                              3 * h * 2048 + 3 * h * 2048 / 8;
    CHECK(parameters_of_block(flash(), eight, block).all == rank);
  }
  LanguageForm form = form_of(4096);
  form.sharding.tensor = 4;
  form.sharding.sequence = true;
  const Model four = priced(flash(), form);
  CHECK(four.layers[3].forward < priced(flash(), form_of(4096)).layers[3].forward);
  // Gathered before attention: low rank, keys, compressed ones, and what the indexer weighs by.
  const double width = 1024 + 512 + 512.0 / 4 + 128.0 / 4 + 64;
  const auto gathered = [&](const LayerCollective& one) {
    return one.kind == CollectiveKind::all_gather && one.group == Dimension::tensor &&
           one.bytes == Bytes{std::llround(2 * 4096 * width)};
  };
  const std::vector<LayerCollective> list = block_collectives(flash(), form, 2);
  CHECK(std::count_if(list.begin(), list.end(), gathered) == 1);
}

TEST_CASE("a module that predicts attends within the window, and joins the streams one by one") {
  TransformerConfig one = flash();
  one.streams = 0;
  CHECK(flash().kind(43).compression == Compression::none);
  CHECK(flash().kind(42).compression == Compression::sparse);
  const std::int64_t h = 4096;
  const std::int64_t collapse = 16 * h + 4 + 1;
  CHECK(prediction_parameters(flash()) ==
        block_parameters(flash(), 0) + 256 + 2 * h * h + 3 * h + collapse);  // and a correction
  LanguageForm form = form_of(4096);
  form.predictions = 1;
  const LayerKernels module = prediction_kernels(flash(), form);
  CHECK(flops_of(module.forward, "joined_product") == 2 * 5 * 4096.0 * h * h);
  CHECK(flops_of(prediction_kernels(one, form).forward, "joined_product") ==
        2 * 2 * 4096.0 * h * h);
  const auto whole = [&](const Model& model) { return to_seconds(model.layers[44].forward); };
  CHECK(whole(priced(flash(), form)) > whole(priced(one, form)));
  // Handed to the head: four streams, and what the module makes, collapsed.
  CHECK(priced(flash(), form).layers[44].output == Bytes{2 * 4096 * 5 * h});
  CHECK(priced(one, form).layers[44].output == Bytes{2 * 4096 * 2 * h});
  form.sharding.tensor = 4;
  form.sharding.sequence = true;
  const std::vector<LayerCollective> list = joined_collectives(flash(), form);
  CHECK(list.front().bytes == Bytes{2 * 4096 * 5 * h});
  CHECK(list.back().bytes == Bytes{2 * 4096 * 4 * h});
}

TEST_CASE("forms that nobody has priced of compressed attention are refused") {
  const auto message = [](const auto& change) {
    LanguageForm form = form_of(4096);
    change(form);
    try {
      check_form(flash(), form);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(message([](LanguageForm&) {}).empty());
  CHECK(message([](LanguageForm& form) { form.sharding.context = 2; }).find("leave cp at 1") !=
        std::string::npos);
  CHECK(message([](LanguageForm& form) { form.slice.count = 2; }).find("leave --slices at 1") !=
        std::string::npos);
  CHECK(message([](LanguageForm& form) {
          form.attention = AttentionKernel::plain;
        }).find("take attention=flash") != std::string::npos);
  CHECK(message([](LanguageForm& form) { form.sharding.tensor = 16; }).find("groups of heads") !=
        std::string::npos);
}

}  // namespace stageline::compressed_attention_tests
