// The bytes of weights, gradients and optimizer state that a rank holds, by precision recipe and
// ZeRO level (Rajbhandari et al. 2020, arXiv 1910.02054).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "sim/base/units.hpp"
#include "sim/degrees.hpp"
#include "sim/model.hpp"

namespace stageline {

/// A recipe for training with Adam.
struct PrecisionRecipe {
  Precision precision;
  std::string_view source;
  double gathered = 0;  // bytes of a weight that ranks gather; 0: all
};

/// fp32, bf16, fp16, mixed, fp8; with Megatron-LM's recipes of quantized products, by the names of
/// product_recipes(), with their copies of all weights, the embedding's, too; bf16-moments,
/// precision-aware, precision-aware-fp8, mxfp8-precision-aware.
std::span<const PrecisionRecipe> precision_recipes();

/// By name. Throws UsageError with the names there are, and the nearest.
const Precision& find_precision(const std::string& text);

/// The part of a rank's bytes of weights that an all-gather carries: copies that each rank makes
/// itself are none of it. 1 without a recipe.
double gathered_share(const Precision& precision);

/// Bytes of the weights a parameter, over the layers that state both, without those that are
/// another layer's; 0: none does.
double bytes_per_parameter(const Model& model);

struct StateBytes {
  Bytes weights{};
  Bytes gradients{};
  Bytes optimizer{};

  Bytes total() const { return weights + gradients + optimizer; }
  friend bool operator==(const StateBytes&, const StateBytes&) = default;
};

/// Weights by the number of ranks that hold the same.
enum class WeightKind : std::uint8_t {
  all,
  dense,   // on every data- and context-parallel rank
  experts  // divided among expert-parallel ranks, by a tensor degree of their own
};
/// The part of a layer's weights, or of its gradients, that is of that kind: in proportion to the
/// parameters.
Bytes part_of_kind(const Layer& layer, Bytes bytes, WeightKind kind);
/// The devices of a pipeline rank that hold the same weights: data · context, of experts tensor ·
/// context · data / (expert · their tensor degree) (Megatron-LM's expert data parallelism).
int ranks_that_hold(const Degrees& degrees, WeightKind kind);

/// Those of them that divide state under ZeRO, a shard group: of experts, as many of the group's
/// ranks as hold the same ones, so that their groups are as many (Megatron-LM: "Expert DP size must
/// be divisible by the number of optimizer instances").
int ranks_that_divide(const Degrees& degrees, WeightKind kind);

/// What one of `ranks` data-parallel ranks holds of `parameters`. What ZeRO divides is divided by
/// parameters, and the first rank has one more where they do not divide: ⌈parameters / ranks⌉.
/// parameters >= 0, ranks >= 1. Throws UsageError where that is more than `most_bytes_held`.
StateBytes state_bytes(std::int64_t parameters, const Precision& precision, Zero zero, int ranks);

/// The model as one rank of the degrees holds it. Gradients are reduced among data · context ranks,
/// those of experts among ranks_that_hold() them, and ZeRO divides by as many, as in Megatron-LM,
/// or by the ranks of a shard group.
///   * With a precision, weights, gradients and optimizer state are those of the recipe. Weights
///     that are another layer's are as many as their bytes say at the bytes a parameter of the
///     other layers.
///   * ZeRO leaves the rank its part of them, and of the optimizer's step: of the time that the
///     parameters take at the rate of the layer with the fastest step. What a layer takes beyond
///     that (launches, work that is done once a step) every rank takes.
///   * ZeRO 2 and 3 that exchange once a step (ZeroEvery) leave a rank what ZeRO 1 does: from its
///     first F on a stage has whole weights, of which the rank's own part is one, and until they
///     are reduced whole gradients.
///   * Where weights are divided, a layer's ops hold two layers' gathered weights: its own, and
///     that of the next layer forward, or the one before it backward (FSDP's prefetch, also across
///     a cut).
///   * Where gradients are divided, a layer's backward holds its whole gradients.
/// Throws UsageError where a precision is asked for and no layer states its parameters.
Model with_state(Model model, const Degrees& degrees);

}  // namespace stageline
