// Builds a model of equal layers for closed forms and first tries: "uniform:layers=8,forward=1ms".
#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/base/numbers.hpp"
#include "sim/text/visible.hpp"
#include "traces/traces.hpp"

namespace stageline {
namespace {

constexpr int most_layers = 1'000'000;
constexpr int most_uniform_samples = 1'000'000'000;

// What "uniform" means when nothing is said. The stash is as large as the output unless it is
// given.
struct Uniform {
  int layers = 8;
  int batch = 1;
  Time forward = std::chrono::milliseconds(1);
  Time input_grad = std::chrono::milliseconds(1);
  Time weight_grad = std::chrono::milliseconds(1);
  Time update{};
  Bytes output{1'000'000};
  Bytes weights{4'000'000};
  std::optional<Bytes> stash;
};

const std::vector<std::string>& option_names() {
  static const std::vector<std::string> names{"layers",      "forward", "input_grad",
                                              "weight_grad", "output",  "weights",
                                              "stash",       "update",  "batch"};
  return names;
}

int parse_uniform_count(const std::string& key, const std::string& text, int most) {
  const auto value = parse_number<int>(text);
  if (!value || *value < 1 || *value > most) {
    throw UsageError(fmt::format("uniform: {} must be a whole number from 1 to {} (it is \"{}\")",
                                 key, most, text));
  }
  return *value;
}

void set(Uniform& uniform, const std::string& key, const std::string& value) {
  if (key == "layers") {
    uniform.layers = parse_uniform_count(key, value, most_layers);
  } else if (key == "batch") {
    uniform.batch = parse_uniform_count(key, value, most_uniform_samples);
  } else if (key == "forward") {
    uniform.forward = parse_time(value);
  } else if (key == "input_grad") {
    uniform.input_grad = parse_time(value);
  } else if (key == "weight_grad") {
    uniform.weight_grad = parse_time(value);
  } else if (key == "update") {
    uniform.update = parse_time(value);
  } else if (key == "output") {
    uniform.output = parse_bytes(value);
  } else if (key == "weights") {
    uniform.weights = parse_bytes(value);
  } else if (key == "stash") {
    uniform.stash = parse_bytes(value);
  } else {
    throw UsageError(fmt::format("uniform has no option \"{}\"{}", key,
                                 did_you_mean(std::string(head_of(key, 60)), option_names())));
  }
}

Uniform parse(std::string_view options) {
  Uniform uniform;
  std::vector<std::string> given;
  while (!options.empty()) {
    const std::size_t comma = std::min(options.find(','), options.size());
    const std::string item(options.substr(0, comma));
    options.remove_prefix(std::min(comma + 1, options.size()));
    const std::size_t equals = item.find('=');
    if (equals == std::string::npos) {
      throw UsageError(fmt::format(
          "uniform: \"{}\" is not an option; write them as layers=8,forward=1ms", item));
    }
    const std::string key = item.substr(0, equals);
    if (std::find(given.begin(), given.end(), key) != given.end()) {
      throw UsageError(fmt::format("uniform: \"{}\" is given twice", key));
    }
    given.push_back(key);
    try {
      set(uniform, key, item.substr(equals + 1));
    } catch (const std::invalid_argument& error) {
      throw UsageError(fmt::format("uniform: {}: {}", key, error.what()));
    }
  }
  return uniform;
}

}  // namespace

Model uniform_model(const std::string& options) {
  constexpr std::string_view prefix = "uniform";
  std::string_view rest = options;
  if (rest.substr(0, prefix.size()) == prefix) {
    rest.remove_prefix(prefix.size());
    if (!rest.empty() && rest.front() != ':') {
      throw UsageError(fmt::format("\"{}\" should begin with \"uniform:\"", options));
    }
    if (!rest.empty()) rest.remove_prefix(1);
  }
  const Uniform uniform = parse(rest);
  Model model;
  model.name = fmt::format("uniform{}", uniform.layers);
  model.batch = uniform.batch;
  model.input = uniform.output;
  model.provenance.origin = Origin::synthetic;
  model.provenance.method = "Equal layers of a chain, with costs that were chosen, not measured.";
  Layer layer;
  layer.kind = "uniform";
  layer.forward = uniform.forward;
  layer.input_grad = uniform.input_grad;
  layer.weight_grad = uniform.weight_grad;
  layer.backward = uniform.input_grad + uniform.weight_grad;
  layer.update = uniform.update;
  layer.weights = uniform.weights;
  layer.gradients = uniform.weights;
  layer.output = uniform.output;
  layer.stash_weight_grad = uniform.stash.value_or(uniform.output);
  model.layers.assign(as_size(uniform.layers), layer);
  for (int i = 0; i < uniform.layers; ++i) {
    nth(model.layers, i).name = fmt::format("layer{}", i);
  }
  return model;
}

}  // namespace stageline
