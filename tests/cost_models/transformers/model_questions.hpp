// What tests of a family ask: of a config.json, and of the kernels of a block.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/transformers/hugging_face.hpp"
#include "cost_models/transformers/kernels.hpp"
#include "sim/base/errors.hpp"

namespace stageline::test {

inline TransformerConfig read_config(const nlohmann::json& json) {
  return read_hugging_face(json.dump(), "config.json");
}

/// The sentence that refuses the file; empty: it is read.
inline std::string refusal_of_config(const nlohmann::json& json) {
  try {
    read_config(json);
  } catch (const TraceError& error) {
    return error.what();
  }
  return "";
}

/// Sums over the kernels with that name.
inline double flops_of(const std::vector<Kernel>& kernels, std::string_view name) {
  double sum = 0;
  for (const Kernel& kernel : kernels) {
    if (kernel.name == name) sum += kernel.flops;
  }
  return sum;
}

inline double bytes_of(const std::vector<Kernel>& kernels, std::string_view name) {
  double sum = 0;
  for (const Kernel& kernel : kernels) {
    if (kernel.name == name) sum += kernel.bytes;
  }
  return sum;
}

}  // namespace stageline::test
