// The parameters of a language model that one rank holds.
#pragma once

#include <cstdint>

#include "cost_models/transformers/config.hpp"
#include "sim/model.hpp"

namespace stageline {

/// Matrices, their biases by columns and the vocabulary are divided by the tensor degree, experts
/// by theirs and by the expert degree; norms, routers, biases by rows, the low ranks of latent
/// attention and places are on every rank, as in Megatron-LM, and so are keys' and values' heads
/// where there are fewer of them than ranks. What does not divide is rounded up.
struct RankParameters {
  std::int64_t all = 0;
  std::int64_t experts = 0;  // of all: those of routed experts
};
RankParameters parameters_of_block(const TransformerConfig& config, const Sharding& sharding,
                                   std::int64_t block);
/// With the norm behind it where there is one.
std::int64_t parameters_of_embedding(const TransformerConfig& config, const Sharding& sharding);
/// With the last norm, and with tied weights: a pipeline's last rank holds a copy.
std::int64_t parameters_of_head(const TransformerConfig& config, const Sharding& sharding);
/// The head's parameters that are never tied.
std::int64_t parameters_of_last_norm(const TransformerConfig& config);

}  // namespace stageline
