// Is a row asked with the recipe of its own model, chip, precision, container and degrees?
#include <doctest/doctest.h>

#include <string>

#include "tools/published/points.hpp"
#include "tools/published/recipes.hpp"

namespace stageline::recipe_tests {
namespace {

Point row(const std::string& model, const std::string& container, int pipeline, int expert) {
  Point point;
  point.config.name = model;
  point.where = container + " NeMo Container, Pre-Training Performance";
  point.pipeline = pipeline;
  point.expert = expert;
  return point;
}

}  // namespace

TEST_CASE("a row's container is its year and month") {
  CHECK(container_of(row("llama3-8b", "26.02.01", 1, 1)) == 2602);
  CHECK(container_of(row("llama3-8b", "25.09", 1, 1)) == 2509);
  Point other;
  CHECK(container_of(other) == 0);
  other.where = "GB200 Performance";
  CHECK(container_of(other) == 0);
  other.where = "NeMo Container 26.02";
  CHECK(container_of(other) == 0);
}

TEST_CASE("a recipe is the container's, the chip's and the precision's") {
  const auto recipe = [](const std::string& container, const char* kind,
                         RecipePrecision precision) {
    const BridgeRecipe* const found =
        bridge_recipe(row("deepseek-v3", container, 4, 64), kind, precision);
    REQUIRE(found != nullptr);
    return *found;
  };
  const BridgeRecipe before = recipe("26.02.01", "gb200", RecipePrecision::mxfp8);
  CHECK(before.graphs == "partial");
  CHECK(before.dispatch == "hybridep");
  CHECK(before.modules == "mla_up_proj");
  CHECK(!before.overlap);
  const BridgeRecipe later = recipe("26.06", "gb200", RecipePrecision::mxfp8);
  CHECK(later.graphs == "full");
  CHECK(later.overlap);
  CHECK(later.fused_experts);
  CHECK(recipe("26.06", "gb200", RecipePrecision::bf16).graphs == "partial");
  CHECK(recipe("26.04", "gb200", RecipePrecision::nvfp4).modules == "mlp");
  CHECK(recipe("25.11", "h100-80gb", RecipePrecision::current_scaling).dispatch == "deepep");
}

TEST_CASE("layers are offloaded by the recipes without a pipeline alone") {
  const auto offloaded = [](int pipeline) {
    return bridge_recipe(row("llama3-70b", "26.02", pipeline, 1), "gb200",
                         RecipePrecision::current_scaling)
        ->offloaded;
  };
  CHECK(offloaded(1) == 40);
  CHECK(offloaded(4) == 0);
}

TEST_CASE("GPT-OSS on B200 has HybridEP from the container 26.04 on") {
  const auto dispatch = [](const std::string& container) {
    return bridge_recipe(row("gpt-oss-120b", container, 1, 8), "b200", RecipePrecision::bf16)
        ->dispatch;
  };
  CHECK(dispatch("25.11") == "nccl");
  CHECK(dispatch("26.02.01") == "nccl");
  CHECK(dispatch("26.04") == "hybridep");
}

TEST_CASE("a model without a recipe has none") {
  CHECK(bridge_recipe(row("llama2-7b", "26.02", 1, 1), "gb200", RecipePrecision::bf16) == nullptr);
}

}  // namespace stageline::recipe_tests
