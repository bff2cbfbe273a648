// Recipes of Megatron-Bridge v0.2.0 (container 25.11), v0.3.0 (26.02), v0.4.2 (26.04) and v0.5.1
// (26.06), scripts/performance/configs/*/*_workload_base_configs.py, read 2026-11-29; of GPT-OSS
// v0.4.1 for 26.04, read 2026-11-30: v0.4.2 takes HybridEP back. Where a row of the table says
// nothing of a field, the recipe does not set it.
#include "tools/published/recipes.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace stageline {
namespace {

struct RecipeRow {
  std::string_view model;
  std::string_view kind;
  std::string_view precisions;  // letters of RecipePrecision: "bcmn"; empty: all
  int since = 0;                // container
  int pipeline = 0;             // degree; 0: any
  int expert = 0;               // degree; 0: any
  BridgeRecipe recipe;
};

constexpr BridgeRecipe whole_step(std::string_view modules, bool attention_8bit) {
  return {.graphs = "full",
          .dispatch = "hybridep",
          .overlap = true,
          .modules = modules,
          .fused_experts = true,
          .attention_8bit = attention_8bit};
}

constexpr BridgeRecipe experts(std::string_view graphs, std::string_view dispatch,
                               std::string_view modules = "", bool overlap = false) {
  return {.graphs = graphs, .dispatch = dispatch, .overlap = overlap, .modules = modules};
}

constexpr BridgeRecipe offload(int layers) { return {.offloaded = layers}; }

constexpr std::string_view low_rank = "mla_up_proj";
constexpr std::string_view low_rank_mlp = "mla_up_proj+mlp";
constexpr std::string_view norm_and_act = "layernorm+moe_act";

// The first row that fits a question is its recipe.
constexpr std::array recipe_rows{
    RecipeRow{"deepseek-v3", "b200", "m", 2604, 8, 0,
              experts("partial", "deepep", low_rank_mlp, true)},
    RecipeRow{"deepseek-v3", "b200", "", 2602, 0, 0, experts("none", "hybridep", low_rank)},
    RecipeRow{"deepseek-v3", "b200", "", 0, 0, 0, experts("none", "nccl", low_rank)},
    RecipeRow{"deepseek-v3", "b300", "m", 2606, 8, 0, whole_step(low_rank, true)},
    RecipeRow{"deepseek-v3", "b300", "", 2604, 8, 0, experts("partial", "hybridep", low_rank)},
    RecipeRow{"deepseek-v3", "b300", "b", 2602, 8, 0,
              experts("none", "hybridep", "mla_up_proj+moe_act+layernorm")},
    RecipeRow{"deepseek-v3", "b300", "", 0, 0, 0, experts("none", "hybridep", low_rank)},
    RecipeRow{"deepseek-v3", "gb200", "m", 2606, 0, 0, whole_step(low_rank, false)},
    RecipeRow{"deepseek-v3", "gb200", "cmn", 2604, 0, 0, experts("partial", "hybridep", "mlp")},
    RecipeRow{"deepseek-v3", "gb200", "", 0, 0, 0, experts("partial", "hybridep", low_rank)},
    RecipeRow{"deepseek-v3", "gb300", "m", 2606, 0, 0, whole_step("", true)},
    RecipeRow{"deepseek-v3", "gb300", "", 2602, 2, 0, experts("none", "hybridep", low_rank)},
    RecipeRow{"deepseek-v3", "gb300", "", 0, 0, 0, experts("partial", "hybridep", "moe_act")},
    RecipeRow{"deepseek-v3", "h100", "", 2602, 0, 0, experts("none", "hybridep", low_rank_mlp)},
    RecipeRow{"deepseek-v3", "h100", "", 0, 0, 0, experts("none", "deepep", low_rank_mlp, true)},
    RecipeRow{"kimi-k2", "gb200", "", 0, 0, 0, experts("partial", "hybridep", low_rank)},
    RecipeRow{"kimi-k2", "gb300", "", 0, 0, 0, experts("none", "hybridep", low_rank)},
    RecipeRow{"kimi-k2", "h100", "", 0, 0, 0, experts("none", "nccl", low_rank_mlp)},
    RecipeRow{"kimi-k2", "", "", 0, 0, 0, experts("none", "nccl", low_rank)},
    RecipeRow{"gpt-oss-120b", "gb300", "", 0, 0, 0, experts("partial", "nccl")},
    RecipeRow{"gpt-oss-120b", "gb200", "m", 2606, 0, 0, whole_step("", true)},
    RecipeRow{"gpt-oss-120b", "gb200", "", 2604, 0, 0,
              experts("none", "hybridep", norm_and_act, true)},
    RecipeRow{"gpt-oss-120b", "b300", "", 0, 0, 8, experts("partial", "hybridep")},
    RecipeRow{"gpt-oss-120b", "b300", "", 0, 0, 0, experts("partial", "nccl")},
    RecipeRow{"gpt-oss-120b", "b200", "", 2604, 0, 8, experts("none", "hybridep", norm_and_act)},
    RecipeRow{"gpt-oss-120b", "", "", 0, 0, 0, experts("none", "nccl", norm_and_act)},
    RecipeRow{"qwen3-235b-a22b", "h100", "", 0, 0, 0, experts("none", "nccl", "", true)},
    RecipeRow{"qwen3-235b-a22b", "b200", "m", 2606, 0, 0, whole_step("", true)},
    RecipeRow{"qwen3-235b-a22b", "b200", "", 2602, 0, 0, experts("none", "nccl")},
    RecipeRow{"qwen3-235b-a22b", "b200", "", 0, 0, 0, experts("none", "nccl", "", true)},
    RecipeRow{"qwen3-235b-a22b", "b300", "m", 2606, 0, 0, whole_step("", true)},
    RecipeRow{"qwen3-235b-a22b", "b300", "", 2604, 0, 0, experts("none", "hybridep")},
    RecipeRow{"qwen3-235b-a22b", "b300", "", 0, 0, 0, experts("none", "nccl", "", true)},
    RecipeRow{"qwen3-235b-a22b", "gb200", "m", 2606, 0, 32, whole_step("", true)},
    RecipeRow{"qwen3-235b-a22b", "gb300", "m", 2606, 4, 32, whole_step("", true)},
    RecipeRow{"qwen3-235b-a22b", "", "", 0, 0, 0, experts("partial", "hybridep")},
    RecipeRow{"qwen3-30b-a3b", "h100", "b", 0, 0, 16, experts("partial", "hybridep")},
    RecipeRow{"qwen3-30b-a3b", "h100", "", 0, 0, 16, experts("none", "hybridep")},
    RecipeRow{"qwen3-30b-a3b", "h100", "", 2602, 0, 0, experts("none", "deepep", "", true)},
    RecipeRow{"qwen3-30b-a3b", "h100", "", 0, 0, 0, experts("none", "nccl", "", true)},
    RecipeRow{"qwen3-30b-a3b", "", "m", 2606, 0, 0, whole_step("", true)},
    RecipeRow{"qwen3-30b-a3b", "b200", "", 2604, 0, 0, experts("partial", "hybridep")},
    RecipeRow{"qwen3-30b-a3b", "b200", "", 0, 0, 0, experts("partial", "nccl")},
    RecipeRow{"qwen3-30b-a3b", "", "", 0, 0, 0, experts("partial", "hybridep")},
    RecipeRow{"llama3-405b", "gb300", "b", 0, 1, 0, offload(40)},
    RecipeRow{"llama3-405b", "b300", "b", 2606, 1, 0, offload(40)},
    RecipeRow{"llama3-405b", "gb300", "c", 0, 1, 0, offload(10)},
    RecipeRow{"llama3-405b", "gb200", "c", 0, 1, 0, offload(92)},
    RecipeRow{"llama3-405b", "gb200", "n", 0, 16, 0, {.block_layers = 1}},
    RecipeRow{"llama3-405b", "b200", "n", 0, 16, 0, {.block_layers = 1}},
    RecipeRow{"llama3-405b", "", "", 0, 0, 0, {}},
    RecipeRow{"llama3-70b", "gb300", "b", 0, 1, 0, offload(30)},
    RecipeRow{"llama3-70b", "gb300", "c", 0, 1, 0, offload(20)},
    RecipeRow{"llama3-70b", "gb200", "b", 0, 1, 0, offload(20)},
    RecipeRow{"llama3-70b", "gb200", "c", 0, 1, 0, offload(40)},
    RecipeRow{"llama3-70b", "b200", "c", 0, 1, 0, offload(5)},
    RecipeRow{"llama3-70b", "b200", "b", 0, 4, 0, {.graphs = "full"}},
    RecipeRow{"llama3-70b", "gb200", "n", 2606, 0, 0, {.graphs = "partial"}},
    RecipeRow{"llama3-70b", "", "", 0, 0, 0, {}},
    RecipeRow{"llama3-8b", "h100", "c", 0, 0, 0, {.block_layers = 5}},
    RecipeRow{"llama3-8b", "h100", "", 0, 0, 0, {}},
    RecipeRow{"llama3-8b", "", "", 0, 0, 0, {.graphs = "full"}},
};

char letter_of(RecipePrecision precision) {
  switch (precision) {
    case RecipePrecision::bf16:
      return 'b';
    case RecipePrecision::current_scaling:
      return 'c';
    case RecipePrecision::mxfp8:
      return 'm';
    case RecipePrecision::nvfp4:
      return 'n';
  }
  return 'b';  // unreachable; g++ wants it
}

bool is_a_digit(char byte) { return std::isdigit(static_cast<unsigned char>(byte)) != 0; }

}  // namespace

int container_of(const Point& point) {
  const std::string& where = point.where;
  const bool named = where.find("NeMo Container") != std::string::npos && where.size() > 5;
  if (!named || !is_a_digit(where[0]) || !is_a_digit(where[1]) || where[2] != '.') return 0;
  if (!is_a_digit(where[3]) || !is_a_digit(where[4])) return 0;
  return std::stoi(where.substr(0, 2) + where.substr(3, 2));
}

const BridgeRecipe* bridge_recipe(const Point& point, std::string_view kind,
                                  RecipePrecision precision) {
  const std::string_view chip = kind.substr(0, kind.find('-'));
  const int container = container_of(point);
  const auto fits = [&](const RecipeRow& row) {
    return row.model == point.config.name && (row.kind.empty() || row.kind == chip) &&
           (row.precisions.empty() ||
            row.precisions.find(letter_of(precision)) != std::string_view::npos) &&
           row.since <= container && (row.pipeline == 0 || row.pipeline == point.pipeline) &&
           (row.expert == 0 || row.expert == point.expert);
  };
  const auto* const found = std::find_if(recipe_rows.begin(), recipe_rows.end(), fits);
  return found == recipe_rows.end() ? nullptr : &found->recipe;
}

}  // namespace stageline
