// Does any op of a model take longer on a faster chip?
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "cost_models/roofline.hpp"
#include "cost_models/transformers/kernel_rates.hpp"
#include "cost_models/transformers/language_model.hpp"
#include "tests/cost_models/transformers/configs.hpp"

namespace stageline::faster_chips_tests {
namespace {

DeviceKind chip_kind() {
  DeviceKind kind;
  kind.name = "chip";
  kind.memory_bandwidth = {2'000'000'000'000};
  kind.peak = {{"fp32", 20e12}, {"bf16", 300e12}, {"fp8", 600e12}};
  return kind;
}

struct Chip {
  DeviceKind kind = chip_kind();
  KernelRates rates;
  RooflineOptions options;
};

// A way in which a chip may be `factor` times as fast.
struct Speed {
  std::string name;
  std::function<void(Chip&, double factor)> raise;
};

// Of a share of a rate more is faster; of a time, and of what a product loses, less.
bool is_share(const KernelConstant& constant) {
  return constant.unit.empty() && constant.name != "misaligned";
}

std::vector<Speed> speeds() {
  std::vector<Speed> all;
  for (const KernelConstant& constant : kernel_constants()) {
    all.push_back({std::string(constant.name), [&constant](Chip& chip, double factor) {
                     double& value = chip.rates.*constant.member;
                     value = is_share(constant) ? value * factor : value / factor;
                   }});
  }
  all.push_back({"memory bandwidth", [](Chip& chip, double factor) {
                   auto& rate = chip.kind.memory_bandwidth.bytes_per_second;
                   rate = static_cast<std::int64_t>(static_cast<double>(rate) * factor);
                 }});
  for (const std::size_t peak : {std::size_t{0}, std::size_t{1}, std::size_t{2}}) {
    all.push_back({chip_kind().peak[peak].precision,
                   [peak](Chip& chip, double factor) { chip.kind.peak[peak].flops *= factor; }});
  }
  all.push_back(
      {"efficiency", [](Chip& chip, double factor) { chip.options.efficiency = 0.2 * factor; }});
  return all;
}

struct OpTime {
  const char* name;
  Time Layer::*time;
};
constexpr std::array op_times{OpTime{"F", &Layer::forward},
                              OpTime{"I", &Layer::input_grad},
                              OpTime{"W", &Layer::weight_grad},
                              OpTime{"W alone", &Layer::lone_weight_grad},
                              OpTime{"B", &Layer::backward},
                              OpTime{"R", &Layer::recompute},
                              OpTime{"selective R", &Layer::selective_forward},
                              OpTime{"U", &Layer::update}};

// No op of a layer takes longer with a higher rate, step by step from a fifth of it to five times
// it.
void check_faster_is_not_slower(const std::string& model, const Chip& usual,
                                const std::function<Model(const Chip&)>& priced) {
  for (const Speed& speed : speeds()) {
    std::vector<Layer> before;
    for (const double factor : {0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0}) {
      Chip chip = usual;
      speed.raise(chip, factor);
      const Model model_now = priced(chip);
      const std::vector<Layer>& layers = model_now.layers;
      for (std::size_t l = 0; l < before.size(); ++l) {
        for (const OpTime& op : op_times) {
          INFO(fmt::format("{}: {} of {} with {} times the {}", model, op.name, layers[l].name,
                           factor, speed.name));
          CHECK(layers[l].*op.time <= before[l].*op.time);
        }
      }
      before = layers;
    }
  }
}

}  // namespace

TEST_CASE(
    "no op of a language model takes longer on a faster chip, whether it or its CPU decides") {
  struct Sized {
    const char* name;
    TransformerConfig config;
  };
  std::vector<Sized> models{{"small", gpt_config(2, 512, 8)},
                            {"medium", gpt_config(2, 2048, 16)},
                            {"large", llama_config()},
                            {"experts", mixtral_config()},
                            {"latent", deepseek_config()}};
  for (Sized& model : models) {
    model.config.layers = std::min<std::int64_t>(model.config.layers, 4);
    model.config.name = model.name;
    for (const bool fused : {false, true}) {
      for (const char* const dtype : {"bf16", "fp8", "fp32"}) {
        LanguageForm form;
        form.seq = 1024;
        form.fused = fused;
        form.attention = fused ? AttentionKernel::flash : AttentionKernel::plain;
        form.alignment = true;
        Chip chip;
        chip.rates.optimizer = 15e-12;
        chip.options.dtype = dtype;
        check_faster_is_not_slower(
            fmt::format("{}, {}, {}", model.name, fused ? "fused" : "eager", dtype), chip,
            [&](const Chip& on) {
              return language_model(model.config, form, on.kind, on.options, on.rates, "the test");
            });
      }
    }
  }
}

TEST_CASE("no op of a shape takes longer on a faster chip") {
  for (const char* const spec : {"resnet50@chip,batch=8", "vgg16@chip,batch=8"}) {
    check_faster_is_not_slower(spec, {}, [&](const Chip& on) {
      return priced_model(fmt::format("{},efficiency={}", spec, on.options.efficiency), {on.kind});
    });
  }
}

}  // namespace stageline::faster_chips_tests
