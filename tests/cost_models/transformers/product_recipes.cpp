// Do quantized products take their recipe's time and bytes, and say what nobody measured?
#include "cost_models/transformers/product_recipes.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cost_models/transformers/config.hpp"
#include "cost_models/transformers/kernel_rates.hpp"
#include "cost_models/transformers/language_model.hpp"
#include "cost_models/transformers/language_spelling.hpp"
#include "sim/base/errors.hpp"

namespace stageline::product_recipes_tests {
namespace {

DeviceKind device_called(const char* name, bool four_bits) {
  DeviceKind kind;
  kind.name = name;
  kind.memory_bandwidth = {2'000'000'000'000};
  kind.peak = {{"fp32", 20e12}, {"bf16", 300e12}, {"fp8", 600e12}};
  if (four_bits) kind.peak.push_back({"fp4", 1800e12});
  return kind;
}

TransformerConfig gpt_of(std::int64_t layers, std::int64_t hidden) {
  TransformerConfig config;
  config.name = "gpt";
  config.layers = layers;
  config.hidden = hidden;
  config.heads = config.kv_heads = hidden / 128;
  config.head_width = 128;
  config.ffn = 4 * hidden;
  config.vocab = 51200;
  config.tied = true;
  config.positions = Positions::learned;
  config.places = config.seq = 2048;
  return config;
}

KernelRates products_alone() {
  KernelRates rates;
  rates.gemm = 0.8;
  rates.gemm_8bit = 0.6;
  rates.gemm_4bit = 1.5;
  rates.kernel = rates.layer_floor = 0;
  return rates;
}

Model priced(const char* dtype, const DeviceKind& device, const LanguageForm& form = {},
             std::int64_t layers = 3) {
  RooflineOptions options;
  options.dtype = dtype;
  return language_model(gpt_of(layers, 8192), form, device, options, products_alone(), "");
}

// Products alone.
double weight_grad(const Model& model, std::size_t layer) {
  return to_seconds(model.layers[layer].weight_grad);
}

double stash(const Model& model) {
  const Layer& block = model.layers[1];
  return static_cast<double>((block.stash_input_grad + block.stash_weight_grad).count);
}

// The notes of a model, or why there is none.
std::string told(const char* dtype, const DeviceKind& device, const LanguageForm& form = {}) {
  std::string text;
  try {
    const Model model = priced(dtype, device, form);
    for (const std::string& note : model.provenance.notes) text += note + "\n";
  } catch (const UsageError& error) {
    text = error.what();
  }
  return text;
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a recipe quantizes the products of blocks, at its own speed") {
  const DeviceKind b300 = device_called("b300", true);
  const Model wide = priced("bf16", b300);
  const double eight = weight_grad(priced("fp8", b300), 1);
  CHECK(eight == doctest::Approx(weight_grad(wide, 1) * 0.8 / 0.6 / 2));
  struct Case {
    const char* dtype;
    double speed;
  };
  for (const Case& one :
       {Case{"fp8-current", 1}, Case{"fp8-delayed", 9.147 / 7.802}, Case{"mxfp8", 9.147 / 8.984},
        Case{"fp8-block", 9.147 / 8.984}, Case{"nvfp4", 1.5}}) {
    CAPTURE(one.dtype);
    const Model model = priced(one.dtype, b300);
    CHECK(weight_grad(model, 1) == doctest::Approx(eight / one.speed));
    CHECK(model.layers.back().forward == wide.layers.back().forward);
    CHECK(model.layers.back().stash_weight_grad == wide.layers.back().stash_weight_grad);
    CHECK(model.layers[1].weights == wide.layers[1].weights);
  }
  CHECK(priced("nvfp4", b300).peak_flops == 1800e12);
  CHECK(weight_grad(priced("fp8-block", device_called("h100", false)), 1) ==
        doctest::Approx(eight * 22.9 / 20.3));
}

TEST_CASE("a note says that fp8 alone names no recipe that rows would be gathered by") {
  const DeviceKind h100 = device_called("h100", false);
  const char* const words = "gathered in 16 bits, as fp8 names no recipe";
  LanguageForm form;
  form.sharding.tensor = 8;
  CHECK(!has(told("fp8", h100, form), words));
  form.sharding.sequence = true;
  CHECK(has(told("fp8", h100, form), words));
  CHECK(!has(told("fp8-current", h100, form), words));
  CHECK(!has(told("fp8", h100), words));
}

// torchtitan gathers 16 bits for scales of rows, and each linear layer casts all rows.
TEST_CASE("rows that are gathered in 16 bits are cast by every rank") {
  const DeviceKind h100 = device_called("h100", false);
  LanguageForm form;
  form.sharding.tensor = 8;
  const auto forward = [&](const char* dtype) {
    return to_seconds(priced(dtype, h100, form).layers[1].forward);
  };
  const double products = forward("fp8-rowwise") - forward("fp8-tensorwise");
  form.sharding.sequence = true;
  // Two halves of a block, 3 bytes an element of 7/8 of the rows.
  const double casts = 2 * 3.0 * 2048 * 8192 * 7 / 8 / (2e12 * KernelRates{}.memory);
  CHECK(forward("fp8-rowwise") - forward("fp8-tensorwise") ==
        doctest::Approx(products + casts).epsilon(1e-6));
  form.wide_start = 3;
  CHECK(forward("fp8-rowwise") == forward("bf16"));
}

TEST_CASE("blocks at either end may stay in 16 bits") {
  const DeviceKind b300 = device_called("b300", true);
  const Model wide = priced("bf16", b300);
  LanguageForm form;
  form.wide_start = form.wide_end = 1;
  const Model ends = priced("mxfp8", b300, form);
  CHECK(ends.layers[1].weight_grad == wide.layers[1].weight_grad);
  CHECK(ends.layers[1].stash_weight_grad == wide.layers[1].stash_weight_grad);
  CHECK(ends.layers[2].weight_grad < wide.layers[2].weight_grad);
  CHECK(ends.layers[2].stash_weight_grad < wide.layers[2].stash_weight_grad);
  CHECK(ends.layers[3].forward == wide.layers[3].forward);
  form.wide_end = 3;
  CHECK_THROWS_WITH_AS(priced("mxfp8", b300, form), doctest::Contains("of 3, and 1 and 3 are more"),
                       UsageError);
}

TEST_CASE("a quantized product keeps its input in fewer bytes, attention its output besides") {
  const DeviceKind b300 = device_called("b300", true);
  const double elements = 2048 * 8192;
  // Two norms, attention's output and the MLP's inner tensor, four times as wide, are read.
  const double read = 7 * elements;
  const double wide = stash(priced("bf16", b300));
  CHECK(stash(priced("fp8", b300)) == wide);
  for (const ProductRecipe& recipe : product_recipes()) {
    // Attention's output is such an input.
    if (recipe.kept_bytes == 2) {
      CHECK(stash(priced(std::string(recipe.name).c_str(), b300)) == wide);
      continue;
    }
    CAPTURE(recipe.name);
    CHECK(wide - stash(priced(std::string(recipe.name).c_str(), b300)) ==
          doctest::Approx(read * (2 - recipe.kept_bytes) - 2 * elements));
  }
}

TEST_CASE("a recipe that a chip has no products for is refused, and one nobody measured noted") {
  const DeviceKind h100 = device_called("h100", false);
  CHECK(told("mxfp8", h100) ==
        "device \"h100\" states no peak rate for dtype mxfp8, whose scales are the work of chips "
        "with a peak rate for fp4; it states fp32, bf16, fp8");
  CHECK(has(told("nvfp4", h100), "no peak rate for dtype nvfp4"));
  constexpr const char* nobody = "nobody measured them";
  CHECK_FALSE(has(told("fp8-delayed", h100), nobody));
  CHECK_FALSE(has(told("fp8-current", device_called("b200", true)), nobody));
  CHECK_FALSE(has(told("mxfp8", device_called("b300", true)), nobody));
  CHECK_FALSE(has(told("nvfp4", device_called("b300", true)), nobody));
  CHECK_FALSE(has(told("fp8", device_called("mi300x", false)), nobody));
  CHECK(has(told("fp8-delayed", device_called("h20", false)), nobody));
  CHECK(has(told("mxfp8", device_called("b200", true)), nobody));
  CHECK_FALSE(has(told("nvfp4", device_called("gb300", true)), nobody));
  CHECK(has(told("nvfp4", device_called("gb200", true)), nobody));
  CHECK(has(told("fp8-block", device_called("b300", true)), nobody));
  CHECK(has(told("fp8-current", device_called("mi300x", false)), nobody));
}

TEST_CASE("torchao's recipes save of a step what its table says") {
  // Llama 3 8B on 8 H100, 8,192 tokens each: 6,150 tokens/s in bf16, 7,689.5 tensorwise, 6,768
  // rowwise (pytorch/ao, docs/source/workflows/training.md).
  const DeviceKind h100 = device_called("h100", false);
  const auto seconds = [&](const char* dtype) {
    LanguageSpelling spelling("llama3-8b", "");
    REQUIRE(spelling.take("seq", "8192"));
    REQUIRE(spelling.take("software", "torchtitan-2025"));
    RooflineOptions options;
    options.dtype = dtype;
    Time sum{};
    for (const Layer& layer : spelling.priced(h100, options, nullptr).layers) {
      sum += layer.forward + layer.backward + layer.update;
    }
    return static_cast<double>(sum.count());
  };
  const double wide = seconds("bf16");
  CHECK(wide / seconds("fp8-tensorwise") == doctest::Approx(1.2503).epsilon(0.1));
  CHECK(wide / seconds("fp8-rowwise") == doctest::Approx(1.1005).epsilon(0.05));
  CHECK(has(told("fp8-rowwise", device_called("mi300x", false)), "nobody measured them"));
  CHECK_FALSE(has(told("fp8-rowwise", h100), "nobody measured them"));
}

TEST_CASE("fp32 says that it is not TF32 where the device has both") {
  DeviceKind device = device_called("a100", false);
  CHECK_FALSE(has(told("fp32", device), "not TF32"));
  device.peak.push_back({"tf32", 156e12});
  CHECK(has(told("fp32", device), "not TF32"));
}

}  // namespace stageline::product_recipes_tests
