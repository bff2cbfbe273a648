// Costs of micro-batches that differ: sequences of unequal lengths, slices of a sequence.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/costs.hpp"

namespace stageline {

/// `costs`, of whose micro-batches number n takes factors[n % factors.size()] times what `costs`
/// says: times of F, I, W, B and R with their collectives, stash, boundary, workspaces and
/// messages, rounded. Weights, gradients, updates, reductions and their buffers stay. Equal factors
/// are one kind; where all are 1, or there are none, nothing changes. Throws UsageError unless each
/// is finite and at least 0, or if a time or a number of bytes does not fit.
Costs scaled_by_microbatch(Costs costs, const std::vector<double>& factors);

/// The same of costs that are known for each kind, with those of weights, updates and reductions
/// from `costs`: micro-batch n is of kind kind_of[n % kind_of.size()]. What the result says of all
/// stages: of times the mean over micro-batches, rounded down, so that no sum of theirs is longer
/// than the run; of bytes the most.
Costs with_kinds(Costs costs, const std::vector<Costs>& kinds, std::vector<std::uint16_t> kind_of);

/// Factors, one a micro-batch, of `replicas` pipelines side by side: each has those of one.
template <class T>
std::vector<T> side_by_side(const std::vector<T>& one, int replicas) {
  std::vector<T> all;
  for (const T& value : one) all.insert(all.end(), static_cast<std::size_t>(replicas), value);
  return all;
}

/// Back to those of one.
template <class T>
std::vector<T> of_one_pipeline(const std::vector<T>& all, int replicas) {
  std::vector<T> one;
  for (std::size_t i = 0; i < all.size(); i += static_cast<std::size_t>(replicas)) {
    one.push_back(all[i]);
  }
  return one;
}

}  // namespace stageline
