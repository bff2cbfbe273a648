// The degrees of parallelism beside the pipeline, and what they do to weights and gradients.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
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

/// How often ZeRO 2 and 3 reduce gradients, and ZeRO 3 gathers weights.
///   step        weights stay gathered, and gradients are added up whole, as with ZeRO 1. So do
///               frameworks beside a pipeline: TorchTitan does not reshard after the forward where
///               there is one, and PyTorch's pipelines reduce in the last backward
///               (torch/distributed/pipelining/stage.py, set_requires_gradient_sync); Llama 3
///               (arXiv 2407.21783, section 3.3.2); MegaScale (arXiv 2402.15627, section 3.2)
///   microbatch  in every F and B: a rank that keeps a part of the gradients cannot add up those of
///               several micro-batches first (FSDP's default; DeepSpeed refuses no_sync() from
///               stage 2 on)
enum class ZeroEvery : std::uint8_t { step, microbatch };
inline constexpr std::array all_zero_everys{ZeroEvery::step, ZeroEvery::microbatch};
/// "step", as in --zero-every.
std::string_view name(ZeroEvery every);

/// Which of the ranks that hold the same weights divide state among them (ZeRO): all, so many
/// neighbours, or those in one machine or in what NVLink joins.
enum class ShardSpan : std::uint8_t { all, ranks, machine, domain };
/// A shard group: PyTorch's HSDP, hpZ of ZeRO++ (arXiv 2306.10209), MiCS (arXiv 2205.00119),
/// Megatron-LM's num_distributed_optimizer_instances, which is the number of groups. The groups add
/// up the parts of gradients that they have reduced.
struct ShardGroup {
  ShardSpan span = ShardSpan::all;
  int ranks = 0;  // of ShardSpan::ranks
  friend bool operator==(const ShardGroup&, const ShardGroup&) = default;
};

/// The ranks of an encoder (of images, of sound) before a language model, with devices of its own:
/// Megatron-LM's encoder_tensor_model_parallel_size and encoder_pipeline_model_parallel_size;
/// DistTrain (arXiv 2408.04275).
struct EncoderDegrees {
  int pipeline = 0;  // of the pipeline's ranks, the first; 0: there is none
  int tensor = 0;    // of each of them; 0: as many as the model
  friend bool operator==(const EncoderDegrees&, const EncoderDegrees&) = default;
};

/// The ranks of a run. Their product is the number of devices, unless an encoder has other ones;
/// but expert parallelism, and the tensor parallelism of experts, divide the tensor-, context- and
/// data-parallel ranks of a pipeline rank once more, and do not count.
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
  std::optional<ZeroEvery> zero_every;  // empty: step beside a pipeline, else microbatch
  ShardGroup shard_group{};             // of state that ZeRO divides
  Precision precision{};
  EncoderDegrees encoder{};

  /// Devices that do the work of one pipeline rank: of the model's, where an encoder has others.
  int width() const { return tensor * context * data; }
  int tensor_of_encoder() const { return encoder.tensor > 0 ? encoder.tensor : tensor; }
  /// Tensor-parallel ranks of a pipeline rank.
  int tensor_at(int rank) const { return rank < encoder.pipeline ? tensor_of_encoder() : tensor; }
  /// Devices of that many of the first pipeline ranks.
  int devices_of(int ranks) const {
    const int of_encoder = ranks < encoder.pipeline ? ranks : encoder.pipeline;
    return (of_encoder * tensor_of_encoder() + (ranks - of_encoder) * tensor) * context * data;
  }
  int expert_tensor_ranks() const { return expert_tensor > 0 ? expert_tensor : tensor; }
  /// Whether experts are divided by another tensor degree than the rest.
  bool folded() const { return expert_tensor_ranks() != tensor; }
  /// Devices that hold one copy of all experts of a layer.
  int expert_width() const { return expert * expert_tensor_ranks(); }
  /// Whether there is nothing beside the pipeline.
  bool plain() const {
    return width() == 1 && expert == 1 && !folded() && pipeline == 0 && zero == Zero::none &&
           precision.name.empty() && encoder.pipeline == 0;
  }
  friend bool operator==(const Degrees&, const Degrees&) = default;
};

/// How often the ranks exchange what ZeRO 2 and 3 divide. `pipeline` must be set.
constexpr ZeroEvery exchanges_every(const Degrees& degrees) {
  return degrees.zero_every.value_or(degrees.pipeline > 1 ? ZeroEvery::step
                                                          : ZeroEvery::microbatch);
}
/// Whether gradients are reduced in every backward. Else once a step.
constexpr bool reduces_in_every_backward(const Degrees& degrees) {
  return degrees.zero >= Zero::gradients && exchanges_every(degrees) == ZeroEvery::microbatch;
}
/// The number of shard groups: 1 with ZeRO 0, and until a machine or domain is known to have so
/// many ranks (RankRoutes).
constexpr int shard_groups(const Degrees& degrees) {
  if (degrees.zero == Zero::none || degrees.shard_group.span != ShardSpan::ranks) return 1;
  const int groups = degrees.data * degrees.context / degrees.shard_group.ranks;
  return groups > 1 ? groups : 1;
}
/// Whether a step has a reduction behind its backwards: of gradients, or of the parts of them that
/// shard groups have reduced.
constexpr bool reduces_once(const Degrees& degrees) {
  return !reduces_in_every_backward(degrees) || shard_groups(degrees) > 1;
}
/// What a rank holds divided at the peak of a step: where gradients are reduced once a step, they
/// and gathered weights are whole by then, and the optimizer's state alone is divided.
constexpr Zero divided_at_peak(const Degrees& degrees) {
  if (degrees.zero < Zero::gradients || reduces_in_every_backward(degrees)) return degrees.zero;
  return Zero::optimizer;
}

}  // namespace stageline
