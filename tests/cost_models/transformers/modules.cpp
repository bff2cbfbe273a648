// What do the modules of a block rebuild, and how long does that take?
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/transformers/kernel_rates.hpp"
#include "cost_models/transformers/language_model.hpp"
#include "tests/cost_models/transformers/configs.hpp"

namespace stageline::modules_tests {
namespace {

const LayerModule& module_called(const Layer& layer, std::string_view name) {
  const auto found = std::find_if(layer.modules.begin(), layer.modules.end(),
                                  [&](const LayerModule& one) { return one.name == name; });
  REQUIRE(found != layer.modules.end());
  return *found;
}

std::vector<std::string> names_of(const Layer& layer) {
  std::vector<std::string> names;
  for (const LayerModule& one : layer.modules) names.push_back(one.name);
  return names;
}

LanguageForm form_of(std::int64_t seq) {
  LanguageForm form;
  form.seq = seq;
  form.fused = true;
  return form;
}

// Without launches, so that times are those of the kernels.
Layer block_of(TransformerConfig config, const LanguageForm& form, std::size_t block) {
  config.name = "the model";
  DeviceKind kind;
  kind.name = "h100";
  kind.memory_bandwidth = {3'350'000'000'000};
  kind.peak = {{"bf16", 989e12}};
  KernelRates rates = find_chip_rates("h100")->rates;
  rates.kernel = rates.layer_floor = rates.step = 0;
  return language_model(config, form, kind, {}, rates, "the test").layers[1 + block];
}

TEST_CASE("blocks have the modules of Megatron-Core, and dense ones torch's policy by ops") {
  CHECK(names_of(block_of(llama_config(), form_of(4096), 0)) ==
        std::vector<std::string>{"core_attn", "layernorm", "mlp", "ops"});
  CHECK(names_of(block_of(mixtral_config(), form_of(4096), 0)) ==
        std::vector<std::string>{"core_attn", "layernorm", "moe_act", "moe"});
  CHECK(names_of(block_of(deepseek_config(), form_of(4096), 0)) ==
        std::vector<std::string>{"core_attn", "layernorm", "mla_up_proj", "mlp"});
  CHECK(names_of(block_of(deepseek_config(), form_of(4096), 3)) ==
        std::vector<std::string>{"core_attn", "layernorm", "mla_up_proj", "moe_act", "moe",
                                 "shared_experts"});
}

TEST_CASE("modules free the tensors that they make again") {
  const std::int64_t tokens = 4096;
  const Layer dense = block_of(llama_config(), form_of(tokens), 0);
  CHECK(module_called(dense, "core_attn").stash == Bytes{4 * tokens * 64});
  CHECK(module_called(dense, "layernorm").stash == Bytes{2 * 2 * tokens * 8192});
  CHECK(module_called(dense, "mlp").stash == Bytes{2 * 3 * tokens * 28672});
  const Layer routed = block_of(deepseek_config(), form_of(tokens), 3);
  CHECK(module_called(routed, "mla_up_proj").stash == Bytes{2 * tokens * 128 * (2 * 192 + 128)});
  CHECK(module_called(routed, "moe_act").stash == Bytes{2 * tokens * 8 * 2048});
  CHECK(module_called(routed, "shared_experts").stash == Bytes{2 * 3 * tokens * 2048});
  // Probabilities in fp32, and rows, inner tensors and outputs of the experts.
  CHECK(module_called(routed, "moe").stash ==
        Bytes{4 * tokens * 256 + 2 * tokens * 8 * (7168 + 3 * 2048) + 2 * 3 * tokens * 2048});
}

TEST_CASE("moe_act frees what a clamp makes, and clamps again") {
  const std::int64_t tokens = 4096;
  TransformerConfig config = mixtral_config();
  const LayerModule plain = module_called(block_of(config, form_of(tokens), 0), "moe_act");
  config.clamped = true;
  const LayerModule clamped = module_called(block_of(config, form_of(tokens), 0), "moe_act");
  CHECK(clamped.stash == plain.stash * 3);
  // Eight passes over the tensor of which the activation has three.
  CHECK(to_seconds(clamped.forward) / to_seconds(plain.forward) == doctest::Approx(11.0 / 3));
}

TEST_CASE("by ops a block keeps every second product and attention's output") {
  const std::int64_t tokens = 4096;
  const Layer block = block_of(llama_config(), form_of(tokens), 0);
  const std::int64_t kept = 2 * tokens *
                                (8192 +         // the block's input
                                 8192 + 1024 +  // queries, values
                                 8192 +         // attention's output
                                 28672 + 8192)  // the gate and the last product
                            + 4 * tokens * 64;
  const LayerModule& ops = module_called(block, "ops");
  CHECK(ops.stash == block.stash_input_grad + block.stash_weight_grad - Bytes{kept});
  // Keys, attention's projection and one of the MLP's first products run again.
  CHECK(ops.flops == 2 * tokens * 8192 * (1024 + 8192 + 28672));
  CHECK(ops.forward > Time{});
  CHECK(ops.forward < block.forward);
}

TEST_CASE("modules take the time of their kernels") {
  const Layer block = block_of(deepseek_config(), form_of(4096), 3);
  Time sum{};
  for (const char* const name : {"core_attn", "layernorm", "mla_up_proj", "moe"}) {
    sum += module_called(block, name).forward;
  }
  CHECK(sum > block.forward * 0.7);
  CHECK(sum < block.forward);
  CHECK(module_called(block, "moe_act").forward < module_called(block, "moe").forward);
  CHECK(module_called(block, "shared_experts").forward < module_called(block, "moe").forward);
  // With plain attention the core is what selective recomputation repeats.
  LanguageForm plain = form_of(2048);
  plain.attention = AttentionKernel::plain;
  const Layer scored = block_of(llama_config(), plain, 0);
  CHECK(module_called(scored, "core_attn").forward == scored.selective_forward);
  CHECK(module_called(scored, "core_attn").stash == scored.selective_stash);
  CHECK(module_called(scored, "core_attn").flops == scored.selective_flops);
}

TEST_CASE("modules repeat the collectives inside them") {
  LanguageForm form = form_of(4096);
  form.sharding.tensor = 8;
  form.sharding.expert = 16;
  form.sharding.sequence = true;
  const Layer dense = block_of(deepseek_config(), form, 0);
  const Layer routed = block_of(deepseek_config(), form, 3);
  const auto counted = [](const LayerModule& module, CollectiveKind kind) {
    int count = 0;
    for (const LayerCollective& one : module.collectives) {
      if (one.kind == kind) count += one.forward;
      CHECK(one.input_grad + one.weight_grad == 0);
    }
    return count;
  };
  CHECK(counted(module_called(dense, "mlp"), CollectiveKind::all_gather) == 1);
  CHECK(counted(module_called(dense, "mlp"), CollectiveKind::reduce_scatter) == 1);
  CHECK(counted(module_called(routed, "moe"), CollectiveKind::all_to_all) == 2);
  CHECK(module_called(routed, "moe_act").collectives.empty());
  CHECK(module_called(routed, "layernorm").collectives.empty());
  CHECK(counted(module_called(routed, "mla_up_proj"), CollectiveKind::all_gather) == 1);
}

}  // namespace
}  // namespace stageline::modules_tests
