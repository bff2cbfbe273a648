// Does a generation of software say what a model's kernels are like, and a model's own options
// more?
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "cost_models/roofline.hpp"
#include "cost_models/spec.hpp"
#include "cost_models/transformers/language_spelling.hpp"
#include "cost_models/transformers/software.hpp"
#include "sim/base/errors.hpp"

namespace stageline::software_tests {
namespace {

Model priced(const std::string& options, const std::string& name = "h100") {
  DeviceKind kind;
  kind.name = name;
  kind.memory_bandwidth = {3'350'000'000'000};
  kind.peak = {{"bf16", 989.4e12}, {"fp8", 1978.9e12}};
  return priced_model(
      "model:transformer@" + name + ",layers=2,hidden=1024,heads=8,seq=512" + options, {kind}, {},
      {});
}

Model with_experts(const std::string& options, const std::string& name = "h100") {
  return priced(",experts=8,topk=2,expert_ffn=512" + options, name);
}

const Layer& block(const Model& model) { return model.layers[1]; }

bool says(const Model& model, const std::string& part) {
  for (const std::string& note : model.provenance.notes) {
    if (note.find(part) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("each generation's options are those of a spelling") {
  for (const SoftwareGeneration& one : software_generations()) {
    CAPTURE(one.name);
    CHECK_NOTHROW(with_experts(",software=" + std::string(one.name)));
    CHECK(!one.source.empty());
  }
}

TEST_CASE("software is its options, whatever the order, and an option goes before it") {
  const Model spelled = priced(",attention=plain,fused=no,dropout=yes");
  const Model named = priced(",software=megatron-2021");
  CHECK(named.layers == spelled.layers);
  CHECK(says(named, "software megatron-2021: attention=plain,fused=no,dropout=yes"));
  const std::string own = ",dropout=no";
  const std::string generation = ",software=megatron-2021";
  const Model plain = priced(",attention=plain,fused=no");
  CHECK(priced(own + generation).layers == plain.layers);
  CHECK(priced(generation + own).layers == plain.layers);
  CHECK(says(priced(generation + own), "attention=plain,fused=no,"));
}

TEST_CASE("Megatron's attention is cuDNN's where that was measured") {
  for (const std::string generation : {"megatron-core-2024", "megatron-bridge-2026.02"}) {
    CAPTURE(generation);
    const std::string software = ",software=" + generation;
    CHECK(says(priced(software), "attention=cudnn,fused=yes"));
    CHECK(block(priced(software)).forward < block(priced(software + ",attention=flash")).forward);
    CHECK(block(priced(software, "a100")).forward ==
          block(priced(software + ",attention=flash", "a100")).forward);
    CHECK(says(priced(software, "a100"), "attention=flash,fused=yes"));
    CHECK_THROWS_AS(priced(software + ",attention=cudnn", "a100"), UsageError);
  }
}

TEST_CASE("what software sets for experts does not concern other models") {
  CHECK(says(with_experts(",software=megatron-bridge-2026.06"), "graphs=full"));
  CHECK(!says(priced(",software=megatron-bridge-2026.06"), "graphs="));
}

TEST_CASE("experts of Megatron-Bridge add to gradients in bf16, as its recipes keep them") {
  for (const std::string release : {"2025.11", "2026.02", "2026.06"}) {
    CAPTURE(release);
    const std::string generation = ",software=megatron-bridge-" + release;
    CHECK(with_experts(generation).layers ==
          with_experts(generation + ",main_gradients=bf16").layers);
    CHECK(with_experts(generation).layers[1].weight_grad <
          with_experts(generation + ",main_gradients=fp32").layers[1].weight_grad);
  }
}

TEST_CASE("a dispatcher of the software is not taken to chips that it does not run on") {
  const std::string options = ",ep=4,software=megatron-bridge-2026.02";
  CHECK(says(with_experts(options), "dispatch=hybridep"));
  CHECK(!says(with_experts(options, "a100"), "dispatch=hybridep"));
  CHECK(with_experts(options, "a100").layers[1].collectives ==
        with_experts(options + ",dispatch=nccl", "a100").layers[1].collectives);
}

TEST_CASE("software that there is not is refused with the nearest") {
  try {
    priced(",software=megatron-bridge-2026.03");
    FAIL("nothing was thrown");
  } catch (const UsageError& error) {
    CHECK(std::string(error.what()).find("did you mean \"megatron-bridge-2026.02\"") !=
          std::string::npos);
  }
}

TEST_CASE("CUDA graphs issue half of a block's kernels or all") {
  const Time none = block(priced("")).forward;
  const Time partial = block(priced(",graphs=partial")).forward;
  const Time full = block(priced(",graphs=full")).forward;
  CHECK(to_seconds(none) > 1.8 * to_seconds(partial));  // a block this small waits for the CPU
  CHECK(partial > full);
  CHECK(block(priced(",layer_floor=0")).forward == full);
}

TEST_CASE("a note says which blocks wait for the CPU") {
  CHECK(says(priced(""), "a block waits for the CPU: its forward is issued in "));
  CHECK(says(with_experts(""), "a block with experts waits for the CPU"));
  CHECK(!says(priced(",graphs=full"), "waits for the CPU"));
  CHECK(!says(priced(",batch=64"), "waits for the CPU"));
}

TEST_CASE("the GPU waits while experts of 8 bits are issued, unless graphs do it") {
  const auto forward = [](const std::string& options) {
    return to_seconds(block(with_experts(",dtype=fp8" + options)).forward);
  };
  CHECK(forward(",expert_floor=1ms") - forward("") == doctest::Approx(8e-3));
  CHECK(forward(",expert_floor=1ms,graphs=full") == forward(",graphs=full"));
  CHECK(block(with_experts(",expert_floor=1ms")).forward == block(with_experts("")).forward);
  CHECK(forward(",expert_floor=1ms,bf16_start=1") == forward(",bf16_start=1"));
}

}  // namespace stageline::software_tests
