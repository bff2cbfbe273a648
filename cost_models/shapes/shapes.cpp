#include "cost_models/shapes/shapes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "cost_models/shapes/primitives.hpp"
#include "sim/base/errors.hpp"

namespace stageline {
namespace {

enum class Sizes : std::uint8_t { fixed, width, transformer };  // what may be set

struct Entry {
  std::string_view name;
  std::string_view summary;
  ModelShape (*build)(const ShapeOptions& options);  // null: see build_form
  Sizes sizes = Sizes::fixed;
  ModelShape (*build_form)(const ShapeOptions& options, const TrainingForm& form) = nullptr;
};

constexpr std::array<Entry, 14> catalogue = {{
    {"lenet5", "LeNet-5, 32x32 grey images, 61,706 parameters", lenet5, Sizes::width},
    {"alexnet", "AlexNet in one tower, ImageNet, 61.1 million parameters", alexnet},
    {"alexnet_cifar", "AlexNet in one tower, CIFAR-10, 23.3 million parameters", alexnet_cifar,
     Sizes::width},
    {"vgg11", "VGG-11, ImageNet, 132.9 million parameters", vgg11},
    {"vgg16", "VGG-16, ImageNet, 138.4 million parameters", vgg16},
    {"vgg16_cifar", "VGG-16, CIFAR-10, 15.2 million parameters", vgg16_cifar, Sizes::width},
    {"resnet18", "ResNet-18, ImageNet, 11.7 million parameters", resnet18},
    {"resnet50", "ResNet-50, ImageNet, 25.6 million parameters", resnet50},
    {"resnet20", "ResNet-20, CIFAR-10, 269,722 parameters", resnet20, Sizes::width},
    {"resnet56", "ResNet-56, CIFAR-10, 853,018 parameters", resnet56, Sizes::width},
    {"resnet110", "ResNet-110, CIFAR-10, 1.7 million parameters", resnet110, Sizes::width},
    {"resnet224", "ResNet-224, CIFAR-10, 3.6 million parameters", resnet224, Sizes::width},
    {"resnet362", "ResNet-362, CIFAR-10, 5.8 million parameters", resnet362, Sizes::width},
    {"gpt",
     "GPT-2 small, 124.4 million parameters, or what its options make of it (heads: hidden/64)",
     nullptr, Sizes::transformer, gpt},
}};

const Entry& entry(const std::string& name) {
  for (const Entry& e : catalogue) {
    if (e.name == name) return e;
  }
  throw UsageError(fmt::format("no model is called '{}' (there are {}){}", name,
                               fmt::join(model_names(), ", "), did_you_mean(name, model_names())));
}

[[noreturn]] void refuse_form(const std::string& name, const TrainingForm& form) {
  std::string with;
  for (const Entry& e : catalogue) {
    if (e.build_form != nullptr) with += fmt::format("{}{}", with.empty() ? "" : ", ", e.name);
  }
  const Sharding& s = form.sharding;
  throw UsageError(fmt::format(
      "model {} cannot be divided by tp {}, cp {}, ep {}{}{}: among built-in models only {} can; take a trace measured on one rank, or leave the degrees at 1",
      name, s.tensor, s.context, s.expert,
      s.folded() ? fmt::format(", etp {}", s.expert_tensor) : "",
      form.dropout ? " or have dropout" : "", with));
}

}  // namespace

std::string_view name(PrimitiveKind kind) {
  switch (kind) {
    case PrimitiveKind::conv:
      return "conv";
    case PrimitiveKind::linear:
      return "linear";
    case PrimitiveKind::matmul:
      return "matmul";
    case PrimitiveKind::batch_norm:
      return "batch_norm";
    case PrimitiveKind::layer_norm:
      return "layer_norm";
    case PrimitiveKind::relu:
      return "relu";
    case PrimitiveKind::gelu:
      return "gelu";
    case PrimitiveKind::add:
      return "add";
    case PrimitiveKind::max_pool:
      return "max_pool";
    case PrimitiveKind::average_pool:
      return "average_pool";
    case PrimitiveKind::softmax:
      return "softmax";
    case PrimitiveKind::embedding:
      return "embedding";
    case PrimitiveKind::loss:
      return "loss";
  }
  return "";  // unreachable; g++ wants it
}

Work& Work::operator+=(const Work& other) {
  flops += other.flops;
  reads += other.reads;
  writes += other.writes;
  reads_once += other.reads_once;
  writes_once += other.writes_once;
  return *this;
}

ModelShape model_shape(const std::string& name, const ShapeOptions& options,
                       const TrainingForm& form) {
  const Entry& e = entry(name);
  const std::vector<std::string> known = model_options(name);
  for (const auto& [option, value] : options) {
    bool found = false;
    for (const std::string& k : known) found = found || k == option;
    if (!found) {
      throw UsageError(fmt::format(
          "model {} has no option '{}' ({}){}", name, option,
          known.empty() ? "it has none" : fmt::format("it has {}", fmt::join(known, ", ")),
          did_you_mean(option, known)));
    }
  }
  if (e.build_form != nullptr) return e.build_form(options, form);
  const Sharding undivided{.sequence = form.sharding.sequence};
  if (form.sharding != undivided || form.dropout) refuse_form(name, form);
  return e.build(options);
}

bool has_forms(const std::string& name) { return entry(name).build_form != nullptr; }

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  names.reserve(catalogue.size());
  for (const Entry& e : catalogue) names.emplace_back(e.name);
  return names;
}

std::string_view model_summary(const std::string& name) { return entry(name).summary; }

std::vector<std::string> model_options(const std::string& name) {
  switch (entry(name).sizes) {
    case Sizes::fixed:
      return {};
    case Sizes::width:
      return {"width"};
    case Sizes::transformer:
      return {"layers", "hidden", "heads", "seq", "vocab"};
  }
  return {};  // unreachable; g++ wants it
}

Work total(const LayerShape& layer, Work Primitive::*pass) {
  Work sum;
  for (const Primitive& op : layer.ops) sum += op.*pass;
  return sum;
}

std::int64_t output_elements(const LayerShape& layer) {
  std::int64_t product = 1;
  for (const std::int64_t extent : layer.output) product *= extent;
  return product;
}

}  // namespace stageline
