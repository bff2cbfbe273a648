// Are the modules that predict more tokens priced, held and counted as they are trained?
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "cost_models/roofline.hpp"
#include "cost_models/transformers/config.hpp"
#include "sim/base/errors.hpp"
#include "tests/text.hpp"

namespace stageline::prediction_tests {
namespace {

using test::complaint;
using test::contains;

std::vector<DeviceKind> kinds() {
  DeviceKind kind;
  kind.name = "h100";
  kind.memory_bandwidth = {3'350'000'000'000};
  kind.peak = {{"fp32", 66.9e12}, {"bf16", 989.4e12}};
  return {kind};
}

Model priced(const std::string& model, const std::string& options, const Sharding& sharding = {}) {
  return priced_model(model + "@h100,seq=1024" + options, kinds(), sharding, {});
}

double flops(const Layer& layer) {
  return static_cast<double>(layer.forward_flops + layer.backward_flops);
}

bool has_note(const Model& model, const std::string& part) {
  const std::vector<std::string>& notes = model.provenance.notes;
  return std::any_of(notes.begin(), notes.end(),
                     [&](const std::string& note) { return contains(note, part); });
}

TEST_CASE("mtp adds layers between the last block and the head") {
  const Model plain = priced("deepseek-v3", ",layers=5");
  const Model one = priced("deepseek-v3", ",layers=5,mtp=1");
  REQUIRE(one.layers.size() == plain.layers.size() + 1);
  const Layer& module = one.layers[6];
  CHECK(module.name == "mtp.0");
  CHECK(module.kind == "mtp");
  CHECK(one.layers[5] == plain.layers[5]);
  CHECK(module.output == one.layers[5].output * 2);
  CHECK(priced("deepseek-v3", ",layers=5,mtp=2").layers[7].output == one.layers[5].output * 3);
  CHECK(priced("deepseek-v3", ",layers=5,mtp=0") == plain);
  CHECK(
      has_note(one, "mtp is 1: behind the blocks a module predicts one more token (11.6 billion"));
  CHECK_FALSE(has_note(one, "is not priced"));
}

TEST_CASE("a module has a block, a product of twice the width, and a copy of the embedding") {
  const Model model = priced("deepseek-v3", ",layers=5,mtp=1");
  const Layer& block = model.layers[5];
  const Layer& module = model.layers[6];
  const std::int64_t h = 7168;
  CHECK(module.parameters == block.parameters + 2 * h * h + 3 * h);
  CHECK(module.expert_parameters == block.expert_parameters);
  CHECK(module.tied_weights == Bytes{2 * 129280 * h});
  CHECK(module.weights == Bytes{2 * module.parameters} + module.tied_weights);
  CHECK(module.forward > block.forward);
  CHECK(module.stash_weight_grad > block.stash_weight_grad);
  CHECK(flops(module) == doctest::Approx(flops(block) + 3 * 2 * 1024.0 * 2 * h * h).epsilon(1e-9));
  const Model plain = priced("deepseek-v3", ",layers=5");
  CHECK(model.parameters == plain.parameters + module.parameters);
  // A head with tied weights has the embedding there.
  CHECK(priced("gpt2", ",mtp=1").layers[13].tied_weights == Bytes{});
}

TEST_CASE("the head computes logits and loss once more") {
  const Layer plain = priced("deepseek-v3", ",layers=5").layers.back();
  const Layer head = priced("deepseek-v3", ",layers=5,mtp=1").layers.back();
  CHECK(head.forward_flops == 2 * plain.forward_flops);
  CHECK(to_seconds(head.forward) == doctest::Approx(2 * to_seconds(plain.forward)).epsilon(0.02));
  const auto kept = [](const Layer& layer) {
    return layer.stash_input_grad + layer.stash_weight_grad;
  };
  CHECK(kept(head) - kept(plain) == Bytes{1024 * (2 * 7168 + 4 * 129280)});
  CHECK(head.weights == plain.weights);
}

TEST_CASE("ranks divide a module as they divide its block") {
  const Sharding sharding{8, 1, 8, true};
  const Model model = priced("deepseek-v3", ",layers=5,mtp=1,sp=yes", sharding);
  const Layer& block = model.layers[5];
  const Layer& module = model.layers[6];
  CHECK(module.parameters == block.parameters + 2 * 7168 * 7168 / 8 + 3 * 7168);
  CHECK(module.collectives.size() > block.collectives.size());
  CHECK(module.output == block.output * 2);
}

TEST_CASE("other numbers of modules are refused") {
  for (const std::string number : {"-1", "17", "x"}) {
    CHECK(contains(
        complaint<UsageError>([&] { priced("deepseek-v3", ",mtp=" + number); }),
        "mtp is the number of modules that predict one more token each, from 0 to 16, not " +
            number));
  }
}

}  // namespace
}  // namespace stageline::prediction_tests
