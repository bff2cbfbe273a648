// Sorts what the account holds into categories.
#include "sim/analysis/memory_categories.hpp"

#include "sim/base/index.hpp"

namespace stageline {

std::string_view name(MemoryCategory category) {
  switch (category) {
    case MemoryCategory::reserve:
      return "reserve";
    case MemoryCategory::weights:
      return name(MemoryKind::weights);
    case MemoryCategory::versions:
      return name(MemoryKind::versions);
    case MemoryCategory::gradients:
      return name(MemoryKind::gradients);
    case MemoryCategory::optimizer:
      return name(MemoryKind::optimizer);
    case MemoryCategory::stash_weight_grad:
      return name(StashPart::weight_grad);
    case MemoryCategory::stash_input_grad:
      return name(StashPart::input_grad);
    case MemoryCategory::stash_gradients:
      return name(StashPart::gradients);
    case MemoryCategory::stash_boundary:
      return name(StashPart::boundary);
    case MemoryCategory::buffers:
      return name(MemoryKind::buffers);
    case MemoryCategory::communication:
      return name(MemoryKind::communication);
    case MemoryCategory::workspace:
      return name(MemoryKind::workspace);
  }
  return "";
}

CategoryUse by_category(const MemoryUse& use, const StashUse& stash, Bytes reserve) {
  CategoryUse all{};
  nth(all, MemoryCategory::reserve) = reserve;
  nth(all, MemoryCategory::weights) = nth(use, MemoryKind::weights);
  nth(all, MemoryCategory::versions) = nth(use, MemoryKind::versions);
  nth(all, MemoryCategory::gradients) = nth(use, MemoryKind::gradients);
  nth(all, MemoryCategory::optimizer) = nth(use, MemoryKind::optimizer);
  nth(all, MemoryCategory::stash_weight_grad) = nth(stash, StashPart::weight_grad);
  nth(all, MemoryCategory::stash_input_grad) = nth(stash, StashPart::input_grad);
  nth(all, MemoryCategory::stash_gradients) = nth(stash, StashPart::gradients);
  nth(all, MemoryCategory::stash_boundary) = nth(stash, StashPart::boundary);
  nth(all, MemoryCategory::buffers) = nth(use, MemoryKind::buffers);
  nth(all, MemoryCategory::communication) = nth(use, MemoryKind::communication);
  nth(all, MemoryCategory::workspace) = nth(use, MemoryKind::workspace);
  return all;
}

CategoryUse peak_by_category(const DeviceMemory& memory) {
  return by_category(memory.at_peak, memory.stash_at_peak, memory.reserve);
}

}  // namespace stageline
