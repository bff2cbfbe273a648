// Changes of what devices hold that follow from no op of the device alone: older versions of
// weights, tensors that no message carries, buffers of collectives, stashes of other devices.
#pragma once

#include <vector>

#include "sim/analysis/memory.hpp"
#include "sim/analysis/memory_tables.hpp"

namespace stageline {

/// A change of what one device or host holds.
struct MemoryChange {
  Time at{};
  Bytes bytes{};  // signed
  MemoryKind kind = MemoryKind::stash;
  Bytes for_input_grad{};  // of a stash: the part that I alone reads
  Bytes boundary{};        // the same: the stage's input, from which R rebuilds the rest
  int stage = 0;           // of a whole stash
  int stashes = 0;         // +1: one is held from now on, -1: one is freed; 0: it is none
};

/// What is held elsewhere of the stash that is copied by an OFFLOAD (`sign` 1) or PREFETCH (-1).
MemoryChange change_of_copy(const MemoryTables& tables, const Costs& costs, Op copy, Time at,
                            int sign);

/// In order of time; at one moment frees come first.
void sort(std::vector<MemoryChange>& changes);

/// By device, sorted. Linear in the spans, except for sorting.
std::vector<std::vector<MemoryChange>> changes_of(const MemoryTables& tables, const Costs& costs,
                                                  const Timeline& timeline);

}  // namespace stageline
