// The degrees of parallelism beside the pipeline, and what they do to weights and gradients.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "sim/model.hpp"

namespace stageline {

/// Bytes that training holds for each parameter.
struct Precision {
  std::string_view name = "";  // "bf16"; empty: as the trace says
  double weights = 0;          // of the copy that compute reads
  double gradients = 0;
  double optimizer = 0;  // moments, and a master copy in fp32
  friend bool operator==(const Precision&, const Precision&) = default;
};

/// What is divided among data-parallel ranks: nothing; the optimizer's state; gradients too;
/// weights too, gathered where they are needed (FSDP).
enum class Zero : std::uint8_t { none, optimizer, gradients, weights };
inline constexpr std::array all_zeros{Zero::none, Zero::optimizer, Zero::gradients, Zero::weights};
/// "0" to "3", as in --zero.
std::string_view name(Zero zero);
/// Whether gradients are reduced in every backward: a rank that keeps a part of them cannot add up
/// those of several micro-batches first (DeepSpeed refuses no_sync() from stage 2 on; FSDP's
/// SHARD_GRAD_OP). Else once a step.
constexpr bool reduces_in_every_backward(Zero zero) { return zero >= Zero::gradients; }

/// The ranks of a run. Their product is the number of devices; but expert parallelism, and the
/// tensor parallelism of experts, divide the tensor-, context- and data-parallel ranks of a
/// pipeline rank once more, and do not count.
struct Degrees {
  int tensor = 1;
  int context = 1;
  int expert = 1;
  int data = 1;
  int pipeline = 0;       // 0: the number of devices over the others
  int expert_tensor = 0;  // ranks that share each expert; 0: as many as `tensor`
  /// The nesting of the ranks on the devices, from the fastest to the slowest.
  std::array<Dimension, 5> order{Dimension::tensor, Dimension::context, Dimension::expert,
                                 Dimension::data, Dimension::pipeline};
  Zero zero = Zero::none;
  Precision precision{};

  /// Devices that do the work of one pipeline rank.
  int width() const { return tensor * context * data; }
  int expert_tensor_ranks() const { return expert_tensor > 0 ? expert_tensor : tensor; }
  /// Whether experts are divided by another tensor degree than the rest.
  bool folded() const { return expert_tensor_ranks() != tensor; }
  /// Devices that hold one copy of all experts of a layer.
  int expert_width() const { return expert * expert_tensor_ranks(); }
  /// Whether there is nothing beside the pipeline.
  bool plain() const {
    return width() == 1 && expert == 1 && !folded() && pipeline == 0 && zero == Zero::none &&
           precision.name.empty();
  }
  friend bool operator==(const Degrees&, const Degrees&) = default;
};

}  // namespace stageline
