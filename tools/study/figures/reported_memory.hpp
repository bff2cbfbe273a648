// What the memory counters of a run show, where a peak counts tensors alone.
#pragma once

#include <optional>
#include <string>

#include "tools/study/case.hpp"
#include "tools/study/outcome.hpp"

namespace stageline {

/// torch.cuda.max_memory_reserved() over torch.cuda.max_memory_allocated(): what torch's allocator
/// holds beyond the tensors, by rounding and fragmentation; mean and extremes of runs.
struct ReservedShare {
  double mean = 0;
  double least = 0;
  double most = 0;
};
/// Megatron-LM on eight B200 without expandable segments, 19 configurations of Llama 3 and DeepSeek
/// (MooreThreads/SimuMax v1.2, docs/b200/b200_release_v1.2_summary.json, read 2026-11-29); the gap
/// is larger where activations are. Assumed of other software, and of expandable segments, which
/// have less.
inline constexpr ReservedShare usual_reserved{1.053, 1.028, 1.093};
/// Megatron-LM and Megatron-DeepSpeed of 2021 with 4 to 64 pipeline ranks that recompute blocks:
/// the most that any rank reserves over the most that any allocates, of seven runs on V100
/// (bigscience-workshop/bigscience, experiments/gpt2-meg and gpt2-meg-ds-3d, "(after 1 iterations)
/// memory", read 2026-11-30). Without a pipeline, two runs with 1.08 and 1.09.
inline constexpr ReservedShare pipelined_2021_reserved{1.230, 1.167, 1.397};

/// The share of a case's software.
ReservedShare reserved_share(const Case& asked);

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
