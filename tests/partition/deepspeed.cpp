// Are DeepSpeed's partition methods, and Megatron's layouts as lists, those of their sources?
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "schedulers/partition/deepspeed.hpp"
#include "schedulers/partition/megatron_layout.hpp"
#include "schedulers/partition/partitioner.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tests/partition/models.hpp"

namespace stageline::deepspeed_tests {

using namespace stageline::testing;

namespace {

Model language_model(int blocks) {
  Model model;
  model.name = "made";
  const auto add = [&](const std::string& name, const std::string& kind, std::int64_t parameters) {
    Layer layer;
    layer.name = name;
    layer.kind = kind;
    layer.parameters = parameters;
    layer.forward = Time{1000};
    layer.backward = Time{2000};
    model.layers.push_back(layer);
  };
  add("embed", "embedding", 40);
  for (int i = 0; i < blocks; ++i) {
    add("a" + std::to_string(i), "attention", 4);
    add("m" + std::to_string(i), "mlp", 8);
  }
  add("head", "head", 40);
  return model;
}

std::string cut_of(const std::string& text, const Model& model, int stages) {
  const Cluster cluster = devices(stages);
  return print(partition(text, {model, cluster, stages, false, ""}).partition);
}

std::string cut_refusal(const std::string& text, const Model& model, int stages) {
  try {
    cut_of(text, model, stages);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

// All cuts: the least difference between the largest and the smallest part.
std::int64_t least_difference(const std::vector<std::int64_t>& weights, std::size_t from, int parts,
                              std::int64_t largest, std::int64_t smallest) {
  std::int64_t sum = 0;
  if (parts == 1) {
    for (std::size_t i = from; i < weights.size(); ++i) sum += weights[i];
    return std::max(largest, sum) - std::min(smallest, sum);
  }
  std::int64_t least = INT64_MAX;
  for (std::size_t i = from; i + as_size(parts) <= weights.size(); ++i) {
    sum += weights[i];
    least = std::min(least, least_difference(weights, i + 1, parts - 1, std::max(largest, sum),
                                             std::min(smallest, sum)));
  }
  return least;
}

TEST_CASE("parameters and type cut between blocks by DeepSpeed's rule") {
  const Model model = language_model(8);  // 40, eight times 12, 40: stages of 40, 48, 48, 40
  CHECK(cut_of("parameters", model, 4) == "0 | 1-8 | 9-16 | 17");
  CHECK(cut_of("type:transformer", model, 4) == "0-4 | 5-8 | 9-12 | 13-17");
  CHECK(cut_of("type:PARALLELtransformerLAYER", model, 4) == cut_of("type:transformer", model, 4));
  CHECK(cut_of("type:mlp|attention", model, 2) == cut_of("type:transformer", model, 2));
  CHECK(cut_refusal("type:nonsense", model, 2).find("is found in no name") != std::string::npos);
  CHECK(cut_refusal("type:(", model, 2).find("no regular expression") != std::string::npos);
  CHECK(cut_refusal("type", model, 2).find("a regular expression") != std::string::npos);
  CHECK(cut_refusal("parameters", model, 11).find("10 layers and blocks") != std::string::npos);
  Model without = model;
  for (Layer& layer : without.layers) layer.parameters = 0;
  CHECK(cut_refusal("parameters", without, 2).find("does not say how many") != std::string::npos);
}

TEST_CASE("balanced parts differ as little as any can, and the last of equal cuts is taken") {
  CHECK(balanced_parts({1, 1, 1, 1, 1}, 2) == std::vector<int>{2});
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::int64_t> weights(2 + random() % 8);
    for (std::int64_t& weight : weights) weight = static_cast<std::int64_t>(random() % 20);
    const int parts = 1 + static_cast<int>(random() % weights.size());
    const std::vector<int> cuts = balanced_parts(weights, parts);
    REQUIRE(cuts.size() + 1 == as_size(parts));
    std::int64_t largest = 0;
    std::int64_t smallest = INT64_MAX;
    std::size_t at = 0;
    for (std::size_t part = 0; part <= cuts.size(); ++part) {
      const std::size_t end = part < cuts.size() ? as_size(cuts[part]) + 1 : weights.size();
      REQUIRE(end > at);
      std::int64_t sum = 0;
      for (; at < end; ++at) sum += weights[at];
      largest = std::max(largest, sum);
      smallest = std::min(smallest, sum);
    }
    // The recurrence keeps one cut of each beginning, so that it may miss the least difference.
    CHECK(largest - smallest >= least_difference(weights, 0, parts, 0, INT64_MAX));
    if (parts <= 2) {
      CHECK(largest - smallest == least_difference(weights, 0, parts, 0, INT64_MAX));
    }
  }
}

TEST_CASE("the layouts that people have are read") {
  const char* const data = std::getenv("STAGELINE_DATA");
  std::ifstream file(std::string(data == nullptr ? "" : data) +
                     "/cases/files/megatron_layouts.txt");
  if (!file) {
    MESSAGE("skipped: STAGELINE_DATA holds no cases/files/megatron_layouts.txt");
    return;
  }
  std::size_t modules = 0;
  for (std::string line; std::getline(file, line);) {
    CAPTURE(line);
    CHECK(looks_like_megatron(line));
    for (const std::string& stage : parse_megatron(line)) {
      modules += static_cast<std::size_t>(std::count(stage.begin(), stage.end(), 'm'));
    }
  }
  CHECK(modules == 1 + 1 + 2);
}

TEST_CASE("Megatron's layout may be Python's list") {
  const std::vector<std::string> stages{"Ettt", "tt", "", "tmL"};
  CHECK(parse_megatron("Et*3|tt||t,mL") == stages);
  CHECK(parse_megatron(R"([["embedding"] + ["decoder"] * 3, ['decoder', 'decoder'], [],
                           ["decoder", "mtp", "loss"]])") == stages);
  CHECK(parse_megatron(R"([["embedding", "decoder"]] + [["decoder"] * 2] * 3 + [["loss"]])") ==
        std::vector<std::string>{"Et", "tt", "tt", "tt", "L"});
  CHECK_FALSE(looks_like_megatron("[3, 3, 2]"));
  CHECK(looks_like_megatron("[['embedding']]"));
  for (const char* const wrong :
       {R"([["embedding", "encoder"], ["loss"]])", R"([["embedding"], ["loss"])",
        R"([["embedding"], ["loss"]] * 0)", R"([["embedding"], ["loss"]] x)",
        R"([["embedding"], [3, "loss"]])", R"([["embedding"] ["loss"]])"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(parse_megatron(wrong), UsageError);
  }
  const Model model = language_model(3);
  CHECK(cut_of(R"([["embedding", "decoder"], ["decoder"] * 2 + ["loss"]])", model, 2) ==
        cut_of("Et|ttL", model, 2));
}

}  // namespace
}  // namespace stageline::deepspeed_tests
