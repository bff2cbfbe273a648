// What the memory counters of a run show, where a peak counts tensors alone.
#pragma once

#include <optional>
#include <string>

#include "tools/study/case.hpp"
#include "tools/study/outcome.hpp"

namespace stageline {

/// torch.cuda.max_memory_reserved() over torch.cuda.max_memory_allocated(): what torch's allocator
/// holds beyond the tensors, by rounding and fragmentation. Megatron-LM on eight B200 without
/// expandable segments, 19 configurations of Llama 3 and DeepSeek (MooreThreads/SimuMax v1.2,
/// docs/b200/b200_release_v1.2_summary.json, read 2026-11-29), mean and extremes; the gap is larger
/// where activations are. Assumed of other software, and of expandable segments, which have less.
inline constexpr double reserved_over_allocated = 1.053;
inline constexpr double least_reserved_over_allocated = 1.028;
inline constexpr double most_reserved_over_allocated = 1.093;

/// The counters of one device.
struct ReportedMemory {
  Bytes allocated{};       // max_memory_allocated(): the peak of the tensors
  Bytes reserved{};        // max_memory_reserved(), as the mean has it
  Bytes least_reserved{};  // and as the extremes do
  Bytes most_reserved{};
  std::optional<Bytes> driver{};  // nvidia-smi: with context, NCCL and workspaces, the device's
                                  // reserve; empty: the cluster states none
};

/// Empty where the case is no language model, or no bytes are known.
std::optional<ReportedMemory> reported_memory(const Case& asked, const Outcome& outcome,
                                              std::size_t device);

/// One line: what the counters of the device with the highest peak read, and what the gap is made
/// of; "" where they are unknown.
std::string reported_line(const Case& asked, const Outcome& outcome);

/// That tensors fit where what the allocator reserves may not, with the amounts; else "".
std::string reserved_note(const Case& asked, const Outcome& outcome);

}  // namespace stageline
