// How long the slices of a sequence are.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cost_models/slices.hpp"

namespace stageline {

/// A sequence that is cut, and into how many slices.
struct CutSequence {
  std::int64_t tokens = 0;
  int slices = 1;
  int ranks = 1;  // each has whole tokens of every slice
};

/// Tokens of each slice that `text` gives: "8192-4096-4096", or a file with such numbers, between
/// white space, commas or '-'. Throws UsageError unless there are as many as slices, each at least
/// 1 and a multiple of the ranks, and they make up the sequence.
std::vector<std::int64_t> given_slices(const std::string& text, const CutSequence& of);

/// Lengths at which slices take as nearly as possible the same time, which `seconds` says of one:
/// later ones, which attend to more, are shorter (the computation-wise cut of arXiv 2406.03488).
/// Multiples of `balanced_step`, or of the ranks where a sequence is too short for that. Those of
/// which the longest takes least among some that are tried, equal ones first.
std::vector<std::int64_t> balanced_slices(
    const CutSequence& of, const std::function<double(const SequenceSlice&)>& seconds);

/// Tokens on each rank: rows of the tiles of products and of fused attention (CUTLASS and
/// flash-attention have 128; assumed of all chips).
inline constexpr std::int64_t balanced_step = 128;

/// The slice of that number among such lengths; equal ones, as if none had been given.
SequenceSlice slice_of(const std::vector<std::int64_t>& lengths, int number);

}  // namespace stageline
