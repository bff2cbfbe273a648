// Sequences of unequal lengths: how many tokens those of each micro-batch have.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/model.hpp"

namespace stageline {

/// Tokens of each sequence of micro-batch n of a pipeline's step, by n. `text`: "2048,4096,512";
/// "lognormal(MEAN,SIGMA)", of which each is drawn, the same ones every time, SIGMA of the
/// logarithm; or a file with such numbers, between white space or commas. What is drawn is rounded
/// up to a multiple of `step`. Throws UsageError unless there are as many as `microbatches`, each
/// from 1 to 2^30.
std::vector<std::int64_t> lengths_of(const std::string& text, int microbatches, std::int64_t step);

/// What drawn lengths are multiples of, so that the ranks of a sharding have equal parts of a
/// sequence and, under context parallelism, of each of its halves.
std::int64_t length_step(const Sharding& sharding);

}  // namespace stageline
