// What NVIDIA's recipes set that its tables of performance do not print.
#pragma once

#include <string_view>

#include "tools/published/points.hpp"

namespace stageline {

/// Products of a row as NVIDIA's recipes name them.
enum class RecipePrecision : std::uint8_t { bf16, current_scaling, mxfp8, nvfp4 };

/// Settings of scripts/performance/configs of NVIDIA-NeMo/Megatron-Bridge for a model on a chip.
struct BridgeRecipe {
  std::string_view graphs = "none";    // "none", "partial", "full"
  std::string_view dispatch = "nccl";  // "nccl", "deepep", "hybridep"
  bool overlap = false;                // of experts' exchanges with the other micro-batch's compute
  std::string_view modules = "";       // recomputed: "mla_up_proj+mlp"
  int block_layers = 0;                // recomputed whole, of each stage
  int offloaded = 0;                   // layers whose activations wait in the host's memory
  bool fused_experts = false;          // products of the experts cast and multiplied by one kernel
  bool attention_8bit = false;         // attention's products in 8 bits
};

/// The NeMo container of a row, year and month: 2602 of "26.02.01 NeMo Container"; 0: none is said.
int container_of(const Point& point);

/// That of the row's container, model, chip and degrees: the nearest where none is exact. Null:
/// there is none of the model on the chip.
const BridgeRecipe* bridge_recipe(const Point& point, std::string_view kind,
                                  RecipePrecision precision);

}  // namespace stageline
