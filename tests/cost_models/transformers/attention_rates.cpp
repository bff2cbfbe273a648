// Do the curves of attention kernels give what was measured, and do models follow them?
#include "cost_models/transformers/attention_rates.hpp"

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <vector>

#include "cost_models/transformers/config.hpp"
#include "cost_models/transformers/kernel_rates.hpp"
#include "cost_models/transformers/language_model.hpp"
#include "sim/base/errors.hpp"

namespace stageline::attention_rates_tests {
namespace {

constexpr std::array<double, 6> lengths{512, 1024, 2048, 4096, 8192, 16384};

double on_h100(AttentionKernel kernel, double seq, bool backward, double width = 128) {
  const AttentionCurves* const curves = find_attention_curves(kernel, "h100");
  REQUIRE(curves != nullptr);
  return share_of(backward ? curves->backward : curves->forward,
                  {seq, 16.0 * 16384, width, width, backward});
}

DeviceKind device_called(const char* name) {
  DeviceKind kind;
  kind.name = name;
  kind.memory_bandwidth = {2'000'000'000'000};
  kind.peak = {{"bf16", 1000e12}};
  return kind;
}

TransformerConfig llama(std::int64_t heads) {
  TransformerConfig config;
  config.name = "llama";
  config.layers = 1;
  config.hidden = 128 * heads;
  config.heads = config.kv_heads = heads;
  config.head_width = 128;
  config.ffn = 512 * heads;
  config.vocab = 51200;
  config.seq = 4096;
  return config;
}

KernelRates without_launches() {
  KernelRates rates;
  rates.kernel = rates.layer_floor = 0;
  return rates;
}

Layer block_by(AttentionKernel kernel, const char* device, KernelRates rates, int tensor = 1,
               bool* noted = nullptr) {
  LanguageForm form;
  form.attention = kernel;
  form.fused = true;
  form.sharding.tensor = tensor;
  const Model model = language_model(llama(32), form, device_called(device), {}, rates, "");
  if (noted != nullptr) {
    *noted = false;
    for (const std::string& note : model.provenance.notes) {
      if (note.find("nobody measured it") != std::string::npos) *noted = true;
    }
  }
  return model.layers[1];
}

}  // namespace

TEST_CASE("curves on an H100 are within 4 % of FlashAttention-3's figures") {
  struct Measured {
    AttentionKernel kernel;
    bool backward;
    std::array<double, 6> tflops;
  };
  const std::vector<Measured> all{
      {AttentionKernel::fa2, false, {191, 260, 298, 319, 333, 335}},
      {AttentionKernel::cudnn, false, {315, 410, 484, 518, 529, 539}},
      {AttentionKernel::fa3, false, {292, 423, 521, 579, 602, 616}},
      {AttentionKernel::fa2, true, {214, 260, 291, 310, 318, 322}},
      {AttentionKernel::cudnn, true, {305, 408, 465, 499, 518, 516}},
      {AttentionKernel::fa3, true, {316, 424, 501, 542, 559, 561}},
  };
  for (const Measured& one : all) {
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      const double share = on_h100(one.kernel, lengths[i], one.backward);
      INFO(name(one.kernel), " ", lengths[i], " ", one.backward);
      CHECK(share * 989.4 == doctest::Approx(one.tflops[i]).epsilon(0.04));
    }
  }
  // Narrow heads are slower.
  CHECK(on_h100(AttentionKernel::fa3, 2048, true, 64) * 989.4 ==
        doctest::Approx(422).epsilon(0.03));
  CHECK(on_h100(AttentionKernel::cudnn, 1024, true, 64) * 989.4 ==
        doctest::Approx(348).epsilon(0.03));
}

TEST_CASE("the curve on a B200 is within 20 % of SimuMax's attention, by heads and length") {
  const AttentionCurves* const curves = find_attention_curves(AttentionKernel::cudnn, "b200");
  REQUIRE(curves != nullptr);
  struct Measured {
    double seq;
    double heads;
    double forward;
    double backward;
  };
  for (const Measured& one : {Measured{4096, 4, .083, .173}, Measured{4096, 8, .155, .329},
                              Measured{4096, 16, .289, .378}, Measured{4096, 32, .366, .398},
                              Measured{4096, 64, .436, .365}, Measured{4096, 128, .498, .416},
                              Measured{32768, 8, .601, .477}, Measured{32768, 16, .583, .436},
                              Measured{131072, 8, .501, .413}, Measured{131072, 16, .494, .413}}) {
    CAPTURE(one.seq);
    CAPTURE(one.heads);
    const AttentionSize size{one.seq, one.seq * one.heads, 128, 128, false};
    CHECK(share_of(curves->forward, size) == doctest::Approx(one.forward).epsilon(0.2));
    CHECK(share_of(curves->backward, size) == doctest::Approx(one.backward).epsilon(0.12));
  }
  const AttentionSize latent{4096, 4096 * 32, 192, 128, false};
  CHECK(share_of(curves->forward, latent) == doctest::Approx(.394).epsilon(0.2));
  CHECK(share_of(curves->backward, latent) == doctest::Approx(.305).epsilon(0.1));
}

TEST_CASE("a block's attention takes its curve's time, whatever attention_flash is") {
  const KernelRates rates = without_launches();
  KernelRates other = rates;
  other.attention_flash = 0.1;
  for (const AttentionKernel kernel :
       {AttentionKernel::fa2, AttentionKernel::fa3, AttentionKernel::cudnn}) {
    INFO(name(kernel));
    const Layer block = block_by(kernel, "h100", rates);
    CHECK(block == block_by(kernel, "h100", other));
    const Layer flash = block_by(AttentionKernel::flash, "h100", rates);
    const double flops = 4.0 * 4096 * 4096 / 2 * 32 * 128;
    const auto at = [&](double share) { return flops / 1000e12 / share; };
    CHECK(to_seconds(flash.forward - block.forward) ==
          doctest::Approx(at(rates.attention_flash) - at(on_h100(kernel, 4096, false)))
              .epsilon(1e-4));
    CHECK(to_seconds(flash.input_grad - block.input_grad) ==
          doctest::Approx(2.5 * (at(rates.attention_flash) - at(on_h100(kernel, 4096, true))))
              .epsilon(1e-4));
    CHECK(block.stash_input_grad == flash.stash_input_grad);
    KernelRates half = rates;
    half.attention_kernel = 0.5;
    CHECK(to_seconds(block_by(kernel, "h100", half).forward - block.forward) ==
          doctest::Approx(at(on_h100(kernel, 4096, false))).epsilon(1e-4));
  }
}

TEST_CASE("tensor parallelism leaves heads that do not occupy a B200") {
  const KernelRates rates = without_launches();
  const auto flash = [&](int tensor) {
    return to_seconds(block_by(AttentionKernel::flash, "b200", rates, tensor).forward);
  };
  const auto cudnn = [&](int tensor) {
    return to_seconds(block_by(AttentionKernel::cudnn, "b200", rates, tensor).forward);
  };
  // Four heads a rank take as long as eight do.
  const double four = cudnn(8) - flash(8);
  const double eight = cudnn(4) - flash(4);
  const double attention = 4.0 * 4096 * 4096 / 2 * 128 / 1000e12 / rates.attention_flash;
  CHECK(four + 4 * attention == doctest::Approx(eight + 8 * attention).epsilon(1e-4));
}

TEST_CASE("a kernel that nobody measured on a chip is refused, and another chip's shares noted") {
  bool noted = false;
  block_by(AttentionKernel::cudnn, "b200", {}, 1, &noted);
  CHECK_FALSE(noted);
  block_by(AttentionKernel::fa3, "h200", {}, 1, &noted);
  CHECK_FALSE(noted);
  block_by(AttentionKernel::cudnn, "gb300", {}, 1, &noted);
  CHECK(noted);
  block_by(AttentionKernel::fa2, "h20", {}, 1, &noted);
  CHECK(noted);
  CHECK_THROWS_WITH_AS(
      block_by(AttentionKernel::fa3, "b200", {}),
      "nobody measured attention=fa3 on device \"b200\": it is known on Hopper; give "
      "attention=flash, whose rate is attention_flash",
      UsageError);
  CHECK_THROWS_AS(block_by(AttentionKernel::cudnn, "a100", {}), UsageError);
}

}  // namespace stageline::attention_rates_tests
