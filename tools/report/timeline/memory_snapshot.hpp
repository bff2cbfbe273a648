// The memory of a run as PyTorch's memory snapshot, which https://pytorch.org/memory_viz draws.
#pragma once

#include <string>

#include "tools/report/timeline/drawing.hpp"

namespace stageline::report {

/// A pickle (protocol 2) of {"segments", "device_traces"}, as torch.cuda.memory._dump_snapshot()
/// writes it (torch/csrc/cuda/memory_snapshot.cpp; read by torch/utils/viz/MemoryViz.js, seen
/// 2026-11-30). A category of a device's memory that grows is an allocation, whose frame names the
/// category and the op that begins then, or has ended; one that gets smaller frees its oldest
/// allocations, and the rest of one that is freed in part is allocated anew. What is allocated at
/// any moment is the device's memory, without its reserve. Addresses are assumed: each allocation
/// takes the first gap with room. Times are whole microseconds, rounded down. Throws UsageError
/// where the drawing has no curves of memory.
std::string memory_snapshot(const Drawing& drawing);

}  // namespace stageline::report
