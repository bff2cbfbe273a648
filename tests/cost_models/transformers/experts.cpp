// What do a rank's experts launch, and how long do their products and permutations take?
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <vector>

#include "cost_models/transformers/kernel_rates.hpp"
#include "cost_models/transformers/passes.hpp"
#include "tests/cost_models/transformers/configs.hpp"

namespace stageline::experts_tests {
namespace {

bool has(const std::vector<Kernel>& kernels, std::string_view name) {
  return std::any_of(kernels.begin(), kernels.end(),
                     [&](const Kernel& kernel) { return kernel.name == name; });
}

const Kernel& called(const std::vector<Kernel>& kernels, std::string_view name) {
  const auto found = std::find_if(kernels.begin(), kernels.end(),
                                  [&](const Kernel& kernel) { return kernel.name == name; });
  REQUIRE(found != kernels.end());
  return *found;
}

}  // namespace

TEST_CASE("grouped products move the weights of all their experts") {
  LanguageForm form = divided_form(1, 1);
  form.sharding.expert = 2;
  const LayerKernels block = block_kernels(mixtral_config(), form, 0);
  const Kernel& up = called(block.forward, "experts_up");
  const double weights = 4.0 * 4096 * 2 * 14336;
  CHECK(up.kind == KernelKind::grouped);
  CHECK(up.bytes == 2 * weights);
  CHECK(called(block.input_grad, "experts_up").bytes == 2 * weights);
  // Gradients in fp32 are read, added to and written.
  CHECK(called(block.weight_grad, "experts_up").bytes == 8 * weights);
  form.main_gradient_bytes = 2;
  form.operand_bytes = 1;  // in 8 bits
  const LayerKernels narrow = block_kernels(mixtral_config(), form, 0);
  CHECK(called(narrow.forward, "experts_up").bytes == weights);
  CHECK(called(narrow.weight_grad, "experts_up").bytes == 4 * weights);
  // One expert a rank is a product like others.
  form.sharding.expert = 8;
  CHECK(called(block_kernels(mixtral_config(), form, 0).forward, "experts_up").kind ==
        KernelKind::gemm);
  KernelRates rates;
  rates.gemm = 0.5;
  rates.gemm_rows = 256;
  rates.gemm_columns = 64;
  Kernel kernel;
  kernel.kind = KernelKind::grouped;
  kernel.rows = 1;
  kernel.columns = kernel.inner = 128;
  kernel.flops = 1e12;
  kernel.bytes = 8e11;
  CHECK(seconds(kernel, rates, 1e12, 1e12, true) == doctest::Approx(2 * (1 + 1.0) + 1));
}

// configs/system/b200_bf16_ceperm.json of MooreThreads/SimuMax v1.2: experts side by side, rows of
// each, columns, inner extent, and the share of 2,250 TFLOP/s forward, of the data gradient and of
// the weight gradient. The plain products of that file reach 0.505.
TEST_CASE("grouped products take what was measured on B200") {
  struct Measured {
    double experts, rows, columns, inner;
    std::array<double, 3> shares;
  };
  const std::vector<Measured> all{{256, 128, 4096, 7168, {0.2081, 0.2264, 0.0775}},
                                  {128, 256, 7168, 2048, {0.3035, 0.2329, 0.1409}},
                                  {64, 512, 4096, 7168, {0.3670, 0.4046, 0.2192}},
                                  {32, 1024, 4096, 7168, {0.4571, 0.4355, 0.2888}},
                                  {40, 2460, 3072, 5120, {0.4868, 0.4520, 0.4166}},
                                  {40, 9832, 3072, 5120, {0.4746, 0.4755, 0.4186}}};
  KernelRates rates;
  rates.gemm = 0.505;
  rates.gemm_columns = 83;
  RankSizes sizes;
  double sum = 0;
  for (const Measured& one : all) {
    CAPTURE(one.rows);
    LayerKernels passes;
    add_grouped(passes, "up", sizes, one.rows, one.columns, one.inner, one.experts);
    const std::vector<Kernel> kernels{passes.forward.front(), passes.input_grad.front(),
                                      passes.weight_grad.front()};
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      const double time = seconds(kernels[i], rates, 2250e12, 8e12, false);
      const double error = kernels[i].flops / 2250e12 / one.shares[i] / time - 1;
      CHECK(std::abs(error) < 0.25);
      sum += std::abs(error);
    }
  }
  CHECK(sum / 18 < 0.09);
  // MXFP8 grouped: 2,672 TFLOP/s at K 7168, N 2048 (Megatron-Core's report on DeepSeek-V3).
  rates.gemm = find_chip_rates("b200")->rates.gemm_8bit;
  sizes.operand_bytes = 1;
  LayerKernels passes;
  add_grouped(passes, "up", sizes, 8192, 2048, 7168, 8);
  const Kernel& mx = passes.forward.front();
  CHECK(mx.flops / seconds(mx, rates, 4500e12, 8e12, false) / 1e12 ==
        doctest::Approx(2672).epsilon(0.1));
}

TEST_CASE("a bias of the experts' output is added in fp32, expert by expert") {
  const LanguageForm form = divided_form(1, 1);
  TransformerConfig config = mixtral_config();
  CHECK_FALSE(has(block_kernels(config, form, 0).forward, "experts_bias"));
  config.mlp_bias = true;
  const LayerKernels block = block_kernels(config, form, 0);
  const double elements = 2.0 * 4096 * 4096;  // two experts a token
  CHECK(called(block.forward, "experts_bias").bytes == 28 * elements);
  CHECK(called(block.input_grad, "experts_bias").bytes == 40 * elements);
}

// Megatron-Core clamps before its fused activation; one kernel does all where the step is a graph.
TEST_CASE("a clamped activation is clamped by kernels of its own, but in a CUDA graph") {
  LanguageForm form = divided_form(1, 1);
  form.fused = true;
  TransformerConfig config = mixtral_config();
  CHECK_FALSE(has(block_kernels(config, form, 0).forward, "experts_clamp"));
  const KeptBytes before = kept_by_block(config, form, 0);
  config.clamped = config.mlp_bias = true;
  const LayerKernels block = block_kernels(config, form, 0);
  const double bytes = 2 * 2.0 * 4096 * 14336;  // two experts a token, 2 bytes an element
  CHECK(called(block.forward, "experts_clamp").bytes == 8 * bytes);
  CHECK(called(block.input_grad, "experts_clamp").bytes == 10 * bytes);
  // It keeps both halves of what it makes.
  const KeptBytes kept = kept_by_block(config, form, 0);
  CHECK(kept.input_grad + kept.weight_grad - before.input_grad - before.weight_grad == 2 * bytes);
  form.graphs = CudaGraphs::full;
  for (const char* const name : {"experts_clamp", "experts_bias"}) {
    CAPTURE(name);
    CHECK(has(block.forward, name));
    CHECK_FALSE(has(block_kernels(config, form, 0).forward, name));
  }
  CHECK(kept_by_block(config, form, 0).input_grad == before.input_grad);
  CHECK(find_family("gpt-oss-120b")->config.clamped);
}

TEST_CASE("rows are permuted at half of the memory's bandwidth") {
  LanguageForm form = divided_form(1, 1);
  form.sharding.expert = 2;
  const LayerKernels block = block_kernels(mixtral_config(), form, 0);
  for (const char* const name : {"permute", "sort_received", "sort_to_send", "unpermute"}) {
    CAPTURE(name);
    const Kernel& moved = called(block.forward, name);
    CHECK(seconds(moved, {}, 1e15, 2e12, false) == doctest::Approx(moved.bytes / 1e12));
    CHECK(called(block.input_grad, name).memory_share == 0.5);
  }
}

TEST_CASE("a dispatcher brings copies of tokens, which are permuted where their experts are") {
  LanguageForm form = divided_form(1, 1);
  form.sharding.expert = 64;
  form.dispatcher = "deepep";
  const LayerKernels block = block_kernels(deepseek_config(), form, 3);
  CHECK_FALSE(has(block.forward, "sort_received"));
  CHECK_FALSE(has(block.forward, "sort_to_send"));
  // 7.57 of 64 ranks have experts for a token.
  const double copies = 64 * (1 - std::pow(63.0 / 64, 8));
  CHECK(called(block.forward, "permute").bytes == doctest::Approx(2 * 4096 * 7168 * (copies + 8)));
  form.dispatcher = "";
  CHECK(called(block_kernels(deepseek_config(), form, 3).forward, "permute").bytes ==
        2.0 * 4096 * 7168 * (1 + 8));
}

TEST_CASE("a capacity bounds the rows of experts, padding fills them up") {
  LanguageForm form = divided_form(1, 1);
  form.sharding.expert = 4;
  form.imbalance = 1.5;
  const auto rows = [&](const LanguageForm& of) {
    return called(block_kernels(mixtral_config(), of, 0).forward, "experts_up").rows;
  };
  CHECK(rows(form) == 1.5 * 4096);
  form.capacity = 1.25;
  CHECK(rows(form) == 1.25 * 4096);
  form.expert_padding = 16;  // 7.5 rows in the mean
  CHECK(rows(form) == 1.25 * 4096 + 7.5);
  CHECK(block_collectives(mixtral_config(), form, 0).front().bytes.count ==
        2 * 4096 * 2 * 4096 * 5 / 4);
}

}  // namespace stageline::experts_tests
