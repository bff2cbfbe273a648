// Do the kernels of a language model have the sizes, FLOPs and traffic of the formulas?
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "tests/cost_models/transformers/configs.hpp"

namespace stageline::kernels_tests {
namespace {

using Pass = std::vector<Kernel> LayerKernels::*;

double flops(const std::vector<Kernel>& kernels) {
  double sum = 0;
  for (const Kernel& kernel : kernels) sum += kernel.flops;
  return sum;
}

double product_flops(const std::vector<Kernel>& kernels) {
  double sum = 0;
  for (const Kernel& kernel : kernels) {
    const bool product = kernel.kind == KernelKind::gemm || kernel.kind == KernelKind::grouped;
    if (product) sum += kernel.flops;
  }
  return sum;
}

double traffic(const std::vector<Kernel>& kernels) {
  double sum = 0;
  for (const Kernel& kernel : kernels) sum += kernel.bytes;
  return sum;
}

double training_flops(const LayerKernels& passes) {
  return flops(passes.forward) + flops(passes.input_grad) + flops(passes.weight_grad);
}

bool has(const std::vector<Kernel>& kernels, std::string_view name) {
  return std::any_of(kernels.begin(), kernels.end(),
                     [&](const Kernel& kernel) { return kernel.name == name; });
}

const Kernel& called(const std::vector<Kernel>& kernels, std::string_view name) {
  REQUIRE(has(kernels, name));
  return *std::find_if(kernels.begin(), kernels.end(),
                       [&](const Kernel& kernel) { return kernel.name == name; });
}

// The chip of the fits: A100 SXM 80 GB.
constexpr double peak = 312e12;
constexpr double bandwidth = 2.039e12;
KernelRates fitted_rates() {
  KernelRates rates;
  rates.gemm = 0.839;
  rates.gemm_rows = 250;
  rates.gemm_columns = 60;
  rates.attention_plain = 0.35;
  rates.memory = 0.75;
  rates.kernel = 10e-6;
  rates.layer_floor = 2.2e-3;
  return rates;
}

double sum_of(const std::vector<Kernel>& kernels, const KernelRates& rates) {
  double sum = 0;
  for (const Kernel& kernel : kernels) sum += seconds(kernel, rates, peak, bandwidth, false);
  return sum;
}

double above_floor(double work, double floor) {
  return std::pow(std::pow(work, 8) + std::pow(floor, 8), 1.0 / 8);
}

struct BlockSeconds {
  double forward = 0;
  double backward = 0;
};
BlockSeconds block_seconds(const TransformerConfig& config, const LanguageForm& form) {
  const KernelRates rates = fitted_rates();
  const LayerKernels block = block_kernels(config, form, 0);
  const double floor = block.floor * rates.layer_floor;
  const double forward = sum_of(block.forward, rates) + block.launches_forward * rates.kernel;
  const double backward = sum_of(block.input_grad, rates) + sum_of(block.weight_grad, rates) +
                          block.launches_backward() * rates.kernel;
  return {above_floor(forward, floor), above_floor(backward, 1.2 * floor)};
}

LanguageForm plain(LanguageForm form) {
  form.attention = AttentionKernel::plain;
  return form;
}

}  // namespace

TEST_CASE("a GPT block takes the time that was fitted to measured steps") {
  const BlockSeconds wide = block_seconds(gpt_config(48, 8192, 64), plain(divided_form(2, 8)));
  CHECK(std::abs(wide.forward - 4.958142e-3) < 0.5e-9);
  CHECK(std::abs(wide.backward - 9.058751e-3) < 0.6e-9);
  const BlockSeconds narrow = block_seconds(gpt_config(30, 3072, 32), plain(divided_form(8, 1)));
  CHECK(std::abs(narrow.forward - 26.883893e-3) < 0.5e-9);
  CHECK(std::abs(narrow.backward - 47.338851e-3) < 0.6e-9);
}

TEST_CASE("launches of the backward are divided as its listed kernels are") {
  const TransformerConfig config = gpt_config(1, 1024, 16);
  LanguageForm form = plain(divided_form(1, 1));
  const LayerKernels eager = block_kernels(config, form, 0);  // 12 listed of I, 4 of W
  CHECK(eager.launches_forward == 25);
  CHECK(eager.launches_input_grad == 37);
  CHECK(eager.launches_weight_grad == 13);
  form.fused = true;
  const LayerKernels fused = block_kernels(config, form, 0);
  CHECK(fused.launches_input_grad == 12);
  CHECK(fused.launches_weight_grad == 4);
  CHECK(fused.launches_backward() == 16);
}

TEST_CASE("the layers of a GPT with plain attention do 72·b·s·L·h²·(1 + s/6h + V/12Lh) FLOPs") {
  const TransformerConfig config = gpt_config(96, 12288, 96);
  const LanguageForm form = plain(divided_form(2, 1));
  const double layers = 96;
  const double h = 12288;
  const double s = 2048;
  double sum =
      training_flops(embedding_kernels(config, form)) + training_flops(head_kernels(config, form));
  sum += layers * training_flops(block_kernels(config, form, 0));
  const double expected =
      72 * 2 * s * layers * h * h * (1 + s / (6 * h) + 51200 / (12 * layers * h));
  CHECK(sum == doctest::Approx(expected).epsilon(1e-12));
}

TEST_CASE("tensor and context parallelism divide the FLOPs of a GPT block") {
  const TransformerConfig config = gpt_config(4, 4096, 32);
  for (const AttentionKernel attention : {AttentionKernel::plain, AttentionKernel::flash}) {
    LanguageForm form = divided_form(2, 1);
    form.attention = attention;
    const double whole = training_flops(block_kernels(config, form, 0));
    form.sharding.tensor = 4;
    CHECK(training_flops(block_kernels(config, form, 0)) == doctest::Approx(whole / 4));
    form.sharding.context = 2;
    CHECK(training_flops(block_kernels(config, form, 0)) == doctest::Approx(whole / 8));
  }
}

TEST_CASE("products do two FLOPs a weight and token: grouped queries, gated MLP") {
  const TransformerConfig config = llama_config();
  const double h = 8192;
  const double weights = h * h + 2 * h * 8 * 128 + h * h + 3 * h * 28672;
  const LayerKernels block = block_kernels(config, divided_form(1, 1), 0);
  const double expected = 2 * 8192 * weights;
  CHECK(product_flops(block.forward) == doctest::Approx(expected).epsilon(1e-12));
  CHECK(product_flops(block.input_grad) == doctest::Approx(expected).epsilon(1e-12));
  CHECK(product_flops(block.weight_grad) == doctest::Approx(expected).epsilon(1e-12));
}

TEST_CASE("a rank has its part of each product") {
  const LayerKernels block = block_kernels(llama_config(), divided_form(1, 8), 0);
  const Kernel& qkv = called(block.forward, "qkv");
  CHECK(qkv.rows == 8192);
  CHECK(qkv.columns == (64 + 2 * 8) * 128 / 8);
  CHECK(qkv.inner == 8192);
  const Kernel& projection = called(block.forward, "projection");
  CHECK(projection.columns == 8192);
  CHECK(projection.inner == 1024);
  CHECK(called(block.forward, "mlp_up").columns == 2 * 28672 / 8);
  CHECK(called(block.forward, "mlp_down").inner == 28672 / 8);
  const Kernel& gradient = called(block.input_grad, "mlp_down");
  CHECK(gradient.columns == 28672 / 8);
  CHECK(gradient.inner == 8192);
}

TEST_CASE("where there are fewer heads for keys than ranks, each rank has one") {
  const LayerKernels block = block_kernels(llama_config(), divided_form(1, 16), 0);
  CHECK(called(block.forward, "qkv").columns == (64 / 16 + 2 * 1) * 128);
}

TEST_CASE("a fused attention does half of the forward's FLOPs, and 2.5 times them backward") {
  const TransformerConfig config = gpt_config(4, 4096, 32);
  const LanguageForm form = divided_form(2, 4);
  const LayerKernels fused = block_kernels(config, form, 0);
  const LayerKernels unfused = block_kernels(config, plain(form), 0);
  const Kernel& attention = called(fused.forward, "attention");
  const Kernel& scores = called(unfused.forward, "scores");
  const Kernel& context = called(unfused.forward, "context");
  CHECK(scores.flops + context.flops == 4.0 * 2 * 2048 * 2048 * 4096 / 4);
  CHECK(attention.flops == (scores.flops + context.flops) / 2);
  CHECK(attention.kind == KernelKind::attention_flash);
  CHECK(called(fused.input_grad, "attention").flops == 2.5 * attention.flops);
  CHECK(called(unfused.input_grad, "scores").flops == 2 * scores.flops);
  CHECK_FALSE(has(fused.forward, "softmax"));
  CHECK_FALSE(attention.selective);
}

TEST_CASE("selective recomputation repeats scores, softmax and context of plain attention alone") {
  const LayerKernels block = block_kernels(gpt_config(4, 4096, 32), plain(divided_form(2, 4)), 0);
  std::vector<std::string_view> selective;
  for (const Kernel& kernel : block.forward) {
    if (kernel.selective) selective.push_back(kernel.name);
  }
  CHECK(selective == std::vector<std::string_view>{"scores", "softmax", "context"});
  for (const Pass pass : {&LayerKernels::input_grad, &LayerKernels::weight_grad}) {
    for (const Kernel& kernel : block.*pass) CHECK_FALSE(kernel.selective);
  }
}

TEST_CASE("a sliding window limits the keys of a fused attention, in its blocks") {
  TransformerConfig config = gpt_config(4, 4096, 32);
  const LanguageForm form = divided_form(1, 1);
  const double whole = called(block_kernels(config, form, 0).forward, "attention").flops;
  config.window = 512;
  config.window_every = 2;
  const double windowed = called(block_kernels(config, form, 0).forward, "attention").flops;
  // Of 2048 tokens the first 512 see half of the window in the mean, the others all of it.
  CHECK(windowed / whole == doctest::Approx((512 * 256.0 + 1536 * 512.0) / (2048 * 1024.0)));
  CHECK(called(block_kernels(config, form, 1).forward, "attention").flops == whole);
  config.window = 4096;
  CHECK(called(block_kernels(config, form, 0).forward, "attention").flops == whole);
}

TEST_CASE("latent attention: all products of low rank, of which tensor parallelism divides some") {
  TransformerConfig config = deepseek_config();
  const LayerKernels block = block_kernels(config, divided_form(1, 1), 0);
  const double h = 7168;
  const double down = h * 1536 + h * (512 + 64);
  const double up = 1536.0 * 128 * 192 + 512.0 * 128 * (128 + 128) + 128.0 * 128 * h;
  const double mlp = 3 * h * 18432;
  CHECK(product_flops(block.forward) == doctest::Approx(2 * 4096 * (down + up + mlp)));
  const double pairs = 4096.0 * 4096 / 2;
  CHECK(called(block.forward, "attention").flops == 2 * pairs * 128 * (192 + 128));
  const LayerKernels rank = block_kernels(config, divided_form(1, 4), 0);
  CHECK(product_flops(rank.forward) == doctest::Approx(2 * 4096 * (down + (up + mlp) / 4)));
  // Among sequence-parallel ranks each has its tokens' vectors.
  const LayerKernels part = block_kernels(config, divided_form(1, 4, true), 0);
  CHECK(product_flops(part.forward) == doctest::Approx(2 * 4096 * (down + up + mlp) / 4));
  config.latent->query_rank = 0;
  const LayerKernels lite = block_kernels(config, divided_form(1, 1), 0);
  CHECK(called(lite.forward, "query").columns == 128 * 192);
  CHECK_FALSE(has(lite.forward, "query_down"));
}

TEST_CASE("experts: grouped products of the chosen rows, whatever the expert-parallel degree") {
  const TransformerConfig config = mixtral_config();
  LanguageForm form = divided_form(1, 2);
  const double h = 4096;
  for (const int expert : {1, 2, 4, 8}) {
    form.sharding.expert = expert;
    const LayerKernels block = block_kernels(config, form, 0);
    const Kernel& up = called(block.forward, "experts_up");
    CHECK(up.count == 8.0 / expert);
    CHECK(up.rows == 4096.0 * 2 * expert / 8);
    CHECK(up.columns == 2 * 14336 / 2);
    CHECK(up.flops == 2 * (4096 * 2) * (2 * 14336 / 2.0) * h);
    CHECK(has(block.forward, "sort_received") == (expert == 2 || expert == 4));
    CHECK(called(block.forward, "router").columns == 8);
    CHECK_FALSE(has(block.forward, "mlp_up"));
  }
}

TEST_CASE("experts' products are as large in sum, whatever the tensor degree of experts") {
  const TransformerConfig config = mixtral_config();
  // Of 8 devices, with 4096 tokens for each pair of tensor-parallel ranks: rows and columns of an
  // expert's product on one device.
  struct Fold {
    int expert, tensor;
    double experts, rows, columns;
  };
  for (const Fold& fold :
       {Fold{4, 2, 2, 4096, 14336}, Fold{8, 1, 1, 4096, 2 * 14336}, Fold{4, 1, 2, 2048, 2 * 14336},
        Fold{2, 4, 4, 4096, 7168}, Fold{1, 1, 8, 512, 2 * 14336}}) {
    CAPTURE(fold.expert);
    CAPTURE(fold.tensor);
    LanguageForm form = divided_form(1, 2, true);
    form.sharding.expert = fold.expert;
    form.sharding.expert_tensor = fold.tensor;
    const LayerKernels block = block_kernels(config, form, 0);
    const Kernel& up = called(block.forward, "experts_up");
    CHECK(up.count == fold.experts);
    CHECK(up.rows == fold.rows);
    CHECK(up.columns == fold.columns);
    // 8 devices compute the rows of 4 · 4096 tokens, two experts each.
    CHECK(8 * up.flops == 2.0 * (4 * 4096 * 2) * (2 * 14336) * 4096);
    CHECK(called(block.forward, "experts_down").flops * 2 == up.flops);
    CHECK(called(block.forward, "router").rows == 4096 / 2);
    CHECK(has(block.forward, "sort_received") == (fold.experts > 1 && fold.experts < 8));
  }
}

TEST_CASE("imbalance is of the most loaded of several expert-parallel ranks") {
  const TransformerConfig config = mixtral_config();
  LanguageForm form = divided_form(1, 1);
  form.imbalance = 1.25;
  CHECK(called(block_kernels(config, form, 0).forward, "experts_down").rows == 1024);
  form.sharding.expert = 4;
  CHECK(called(block_kernels(config, form, 0).forward, "experts_down").rows == 1.25 * 4096);
}

TEST_CASE("shared experts are an MLP beside the routed ones, and the first blocks are dense") {
  const TransformerConfig config = deepseek_config();
  LanguageForm form = divided_form(1, 1);
  form.sharding.expert = 64;
  const LayerKernels dense = block_kernels(config, form, 2);
  CHECK(has(dense.forward, "mlp_up"));
  CHECK_FALSE(has(dense.forward, "router"));
  const LayerKernels experts = block_kernels(config, form, 3);
  CHECK(called(experts.forward, "shared_up").columns == 2 * 2048);
  CHECK(called(experts.forward, "shared_up").rows == 4096);
  CHECK(called(experts.forward, "experts_up").count == 4);
  CHECK(called(experts.forward, "experts_up").rows == 4096 * 8 / 4);
  CHECK(experts.launches_forward > dense.launches_forward);
}

TEST_CASE("elementwise kernels as compiled read and write each tensor once") {
  const TransformerConfig config = llama_config();
  LanguageForm form = divided_form(1, 1);
  form.fused = true;
  const double m = 8192;
  const double h = 8192;
  const double f = 28672;
  const double turned = (64 + 8) * 128;
  const LayerKernels block = block_kernels(config, form, 0);
  // Two norms, two adds, one gated activation, rotary; in elements of two bytes.
  CHECK(traffic(block.forward) == 2 * m * (2 * 2 * h + 2 * 3 * h + 3 * f + 2 * turned));
  CHECK(traffic(block.input_grad) == 2 * m * (2 * 4 * h + 5 * f + 2 * turned));
  CHECK(traffic(block.weight_grad) == 0);
  LanguageForm unfused = form;
  unfused.fused = false;
  CHECK(traffic(block_kernels(config, unfused, 0).forward) > traffic(block.forward));
  LanguageForm dropping = form;
  dropping.dropout = true;
  CHECK(traffic(block_kernels(config, dropping, 0).forward) == traffic(block.forward) + 2 * m * h);
}

TEST_CASE("the traffic of Megatron-LM: 11·M·h, 16·M·h/t and 4.5 a score, of two bytes") {
  const LayerKernels block = block_kernels(gpt_config(4, 4096, 32), plain(divided_form(2, 4)), 0);
  const double elements = 4096.0 * 4096;
  const double scores = 2.0 * 32 / 4 * 2048 * 2048;
  CHECK(traffic(block.forward) == 2 * (11 * elements + 16 * elements / 4 + 4.5 * scores));
  CHECK(traffic(block.input_grad) == 2 * (11 * elements + 20 * elements / 4 + 5.5 * scores));
}

TEST_CASE("sequence parallelism divides norms and adds, and nothing else") {
  const TransformerConfig config = gpt_config(4, 4096, 32);
  const LayerKernels whole = block_kernels(config, divided_form(2, 4), 0);
  const LayerKernels part = block_kernels(config, divided_form(2, 4, true), 0);
  const double elements = 4096.0 * 4096;
  CHECK(traffic(whole.forward) - traffic(part.forward) == 2 * 11 * elements * 3 / 4);
  CHECK(flops(whole.forward) == flops(part.forward));
}

TEST_CASE("norms of queries and keys and behind the halves are kernels of their own") {
  TransformerConfig config = llama_config();
  const LanguageForm form = divided_form(1, 1);
  const double before = traffic(block_kernels(config, form, 0).forward);
  config.query_key_norm = QueryKeyNorm::head;
  const double normed = traffic(block_kernels(config, form, 0).forward);
  CHECK(normed - before == 2 * 2 * 8192.0 * (64 + 8) * 128);
  config.norms_behind = true;
  CHECK(traffic(block_kernels(config, form, 0).forward) - normed == 2 * 2 * 2 * 8192.0 * 8192);
}

TEST_CASE("embedding and head: 16 bytes an element, 24 a logit, three products") {
  TransformerConfig config = gpt_config(4, 4096, 32);
  config.vocab = 51000;  // padded to 51200, a multiple of 128·8
  const LanguageForm form = divided_form(2, 8);
  const double elements = 4096.0 * 4096;
  const LayerKernels embedding = embedding_kernels(config, form);
  CHECK(traffic(embedding.forward) + traffic(embedding.weight_grad) == 16 * elements);
  CHECK(embedding.input_grad.empty());
  const LayerKernels head = head_kernels(config, form);
  const double norm = 2 * (2 + 3) * elements;
  CHECK(traffic(head.forward) + traffic(head.input_grad) == 24 * 4096 * 6400.0 + norm);
  CHECK(called(head.forward, "logits").columns == 6400);
  CHECK(training_flops(head) == 3 * 2 * 4096 * 6400.0 * 4096);
  CHECK(flops(head.weight_grad) == 2 * 4096 * 6400.0 * 4096);
}

TEST_CASE("4-byte formats move twice the bytes, but for masks and what is in fp32 anyway") {
  LanguageForm narrow = divided_form(2, 8);
  LanguageForm wide = narrow;
  wide.element_bytes = 4;
  const TransformerConfig gpt = gpt_config(4, 4096, 32);
  CHECK(traffic(embedding_kernels(gpt, wide).forward) ==
        2 * traffic(embedding_kernels(gpt, narrow).forward));
  CHECK(called(head_kernels(gpt, wide).forward, "loss").bytes ==
        called(head_kernels(gpt, narrow).forward, "loss").bytes);
  const auto of_experts = [](const LanguageForm& form, std::string_view name) {
    return called(block_kernels(mixtral_config(), form, 0).forward, name).bytes;
  };
  CHECK(of_experts(wide, "routing") == of_experts(narrow, "routing"));
  CHECK(of_experts(wide, "permute") == 2 * of_experts(narrow, "permute"));
  const auto add = [&](LanguageForm form, double bytes) {
    form.element_bytes = bytes;
    form.fused = form.dropout = true;
    return called(block_kernels(gpt, form, 0).forward, "mlp_add").bytes / (4096.0 * 4096);
  };
  CHECK(add(narrow, 2) == 3 * 2 + 1);
  CHECK(add(narrow, 4) == 3 * 4 + 1);
}

TEST_CASE("the efficiency curve of a product") {
  KernelRates rates;
  rates.gemm = 0.5;
  rates.gemm_rows = 256;
  rates.gemm_columns = 64;
  rates.misaligned = 1.25;
  Kernel kernel;
  kernel.rows = 256;
  kernel.columns = 128;
  kernel.inner = 128;
  kernel.flops = 1e12;
  // Half at gemm_rows rows, and another part for the two other extents.
  CHECK(seconds(kernel, rates, 1e12, 1e12, true) == doctest::Approx(2 * (1 + 1 + 1.0)));
  kernel.columns = 130;
  const double loose = seconds(kernel, rates, 1e12, 1e12, false);
  CHECK(seconds(kernel, rates, 1e12, 1e12, true) == doctest::Approx(1.25 * loose));
  kernel.columns = 128;
  kernel.inner = 1800;
  CHECK(seconds(kernel, rates, 1e12, 1e12, true) ==
        doctest::Approx(1.25 * seconds(kernel, rates, 1e12, 1e12, false)));
}

TEST_CASE("attention and elementwise kernels take their share of the peak") {
  KernelRates rates;
  rates.attention_plain = 0.25;
  rates.attention_flash = 0.5;
  rates.memory = 0.8;
  Kernel kernel;
  kernel.flops = 1e12;
  kernel.bytes = 4e11;
  kernel.kind = KernelKind::attention_plain;
  CHECK(seconds(kernel, rates, 1e12, 1e12, true) == doctest::Approx(4));
  kernel.kind = KernelKind::attention_flash;
  CHECK(seconds(kernel, rates, 1e12, 1e12, true) == doctest::Approx(2));
  kernel.kind = KernelKind::elementwise;
  CHECK(seconds(kernel, rates, 1e12, 1e12, true) == doctest::Approx(0.5));
}

}  // namespace stageline::kernels_tests
