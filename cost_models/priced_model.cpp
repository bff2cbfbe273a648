// The spelling of a priced model: "model:gpt@h100,batch=8,layers=24".
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string_view>

#include "cost_models/roofline.hpp"
#include "cost_models/spec.hpp"
#include "sim/errors.hpp"

namespace stageline {
namespace {

const DeviceKind& kind_called(const std::string& name, const std::string& model,
                              const std::vector<DeviceKind>& kinds) {
  std::vector<std::string> known;
  for (const DeviceKind& kind : kinds) {
    if (kind.name == name) return kind;
    if (std::find(known.begin(), known.end(), kind.name) == known.end()) known.push_back(kind.name);
  }
  if (name.empty()) {
    throw UsageError(
        fmt::format("model {} needs a device to be priced for: write {}@DEVICE with one "
                    "of {}",
                    model, model, fmt::join(known, ", ")));
  }
  throw UsageError(fmt::format("no device is called '{}' (there are {}){}", name,
                               fmt::join(known, ", "), did_you_mean(name, known)));
}

// "key=value" into the options it belongs to.
void take(const std::string& key, const std::string& value, const std::string& model,
          RooflineOptions& options, ShapeOptions& shape) {
  std::vector<std::string> known = model_options(model);
  if (key == "batch") {
    options.batch = static_cast<int>(whole_number(key, value, std::numeric_limits<int>::max()));
  } else if (key == "dtype") {
    options.dtype = value;
  } else if (key == "optimizer") {
    options.optimizer = value;
  } else if (key == "efficiency") {
    options.efficiency = real_number(key, value, "a number above 0 and at most 1");
  } else if (key == "overhead") {
    try {
      options.overhead = parse_time(value);
    } catch (const std::invalid_argument& error) {
      throw UsageError(fmt::format("overhead: {}", error.what()));
    }
  } else if (std::find(known.begin(), known.end(), key) != known.end()) {
    shape[key] = whole_number(key, value);
  } else {
    known.insert(known.end(), {"batch", "dtype", "optimizer", "efficiency", "overhead"});
    throw UsageError(fmt::format("model {} has no option '{}' (there are {}){}", model, key,
                                 fmt::join(known, ", "), did_you_mean(key, known)));
  }
}

std::string_view without_prefix(std::string_view spec) {
  static constexpr std::string_view prefix = "model:";
  return spec.substr(spec.starts_with(prefix) ? prefix.size() : 0);
}

}  // namespace

Model priced_model(const std::string& spec, const std::vector<DeviceKind>& kinds) {
  const Spec words = parse_spec(without_prefix(spec));
  const std::size_t at = std::min(words.head.find('@'), words.head.size());
  const std::string name = words.head.substr(0, at);
  model_options(name);  // throws on an unknown model, before anything is said about its device
  const DeviceKind& kind =
      kind_called(words.head.substr(std::min(at + 1, words.head.size())), name, kinds);
  RooflineOptions options;
  ShapeOptions shape;
  for (const auto& [key, value] : words.options) take(key, value, name, options, shape);
  return roofline(model_shape(name, shape), kind, options);
}

std::string shape_of_spec(const std::string& spec) {
  const Spec words = parse_spec(without_prefix(spec));
  std::string shape = words.head.substr(0, words.head.find('@'));
  const std::vector<std::string> own = model_options(shape);
  for (const auto& [key, value] : words.options) {
    if (std::find(own.begin(), own.end(), key) != own.end())
      shape += fmt::format(",{}={}", key, value);
  }
  return shape;
}

ModelShape parse_shape(const std::string& spec) {
  const Spec words = parse_spec(spec);
  ShapeOptions options;
  for (const auto& [key, value] : words.options) options[key] = whole_number(key, value);
  return model_shape(words.head, options);
}

}  // namespace stageline
