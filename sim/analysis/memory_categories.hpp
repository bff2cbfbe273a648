// Memory by category, as reports and pictures stack it: the kinds of the account, its stash by
// parts, and the reserve of the device below all.
#pragma once

#include "sim/analysis/memory.hpp"

namespace stageline {

/// In the order of a stack, from below.
enum class MemoryCategory : std::uint8_t {
  reserve,            // context and communication library: not in DeviceMemory::peak
  weights,            // as MemoryKind
  versions,           // as MemoryKind
  gradients,          // as MemoryKind
  optimizer,          // as MemoryKind
  stash_weight_grad,  // as StashPart
  stash_input_grad,   // as StashPart
  stash_gradients,    // as StashPart
  stash_boundary,     // as StashPart
  buffers,            // as MemoryKind
  communication,      // as MemoryKind
  workspace,          // as MemoryKind
};
inline constexpr int memory_categories = 12;
/// "stash_input_grad": the key in JSON.
std::string_view name(MemoryCategory category);

using CategoryUse = std::array<Bytes, memory_categories>;

/// The sum is that of `use`, and the reserve. `stash`: the parts of its stash.
CategoryUse by_category(const MemoryUse& use, const StashUse& stash, Bytes reserve);

/// At the peak of a device.
CategoryUse peak_by_category(const DeviceMemory& memory);

}  // namespace stageline
