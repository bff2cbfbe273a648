// Slices of sequences: what schedules that cut sequences pass through the pipeline one behind the
// other.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "sim/model.hpp"

namespace stageline {

/// What is priced of a sequence: one of so many slices, which come one behind the other.
struct SequenceSlice {
  int count = 1;            // 1: the whole sequence
  int number = -1;          // from 0; -1: the mean one
  std::int64_t begin = 0;   // tokens before it, and of its own, of all context-parallel ranks
  std::int64_t tokens = 0;  // together; 0: slices are equal

  double tokens_of(double sequence) const {
    return tokens > 0 ? static_cast<double>(tokens) : sequence / count;
  }
  friend auto operator<=>(const SequenceSlice&, const SequenceSlice&) = default;
};

/// Ranks among which the tokens of a slice are divided: each has whole ones.
int ranks_of_slices(const Sharding& sharding);

/// Throws UsageError, with the nearest numbers that do, unless so many equal slices make up a
/// sequence of `tokens`, each of whole tokens on every rank that it is divided among. `model`: its
/// name, for the message.
void check_slices(const std::string& model, std::int64_t tokens, const Sharding& sharding,
                  int slices);
/// The same of one slice, which may be longer or shorter than others.
void check_slices(const std::string& model, std::int64_t tokens, const Sharding& sharding,
                  const SequenceSlice& slice);

/// The model of one of `slices` equal shares of a micro-batch, where nothing but the whole is
/// known: times and bytes divided and rounded up, those of weights and updates whole. For times a
/// lower bound: launches do not get shorter, nor do smaller products run as efficiently.
Model equal_share(Model model, int slices);

}  // namespace stageline
