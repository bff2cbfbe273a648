// The devices that a program runs on, by name.
//
//   cpu:2       two cores
//   cuda:2      two GPUs; where there are fewer, one GPU cut in two (green_contexts.hpp)
//   cuda:2@32   one GPU, of which two accelerators have 32 SMs each
//
// Includes ATen: for the files of this folder only.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Stream.h>

#include <optional>
#include <string>
#include <vector>

#include "sim/op.hpp"

namespace stageline::executor {

/// The streams of an accelerator that runs behind its host, one for each lane of ops.
struct LaneStreams {
  c10::Stream compute;
  c10::Stream copy_out;
  c10::Stream copy_in;
};

/// One accelerator: where its tensors are, which cores its threads stay on, and its streams.
struct Accelerator {
  at::Device where = at::kCPU;
  std::vector<int> cores;  // empty: any
  std::optional<LaneStreams> streams{};
  int processors = 0;  // SMs, where it is a part of a GPU
};

/// The accelerators of that name. GPUs compute in fp32 as a CPU does, not in TF32, from here on;
/// the cores of this process are dealt out among them. Throws UsageError where there are too few
/// cores, no GPU, or a GPU that cannot be cut so.
std::vector<Accelerator> accelerators_called(const std::string& name);

/// Those of cpu:N or process:N, as many as are asked for, on whatever cores there are: for imitated
/// computing, and for runs whose times do not matter. Throws UsageError for another name, which
/// does not go with `flag`.
std::vector<Accelerator> unpinned_accelerators(const std::string& name, const std::string& flag);

/// "NVIDIA H200, 2 parts of 64 SMs", "2 × NVIDIA H200"; of cores, empty.
std::string title_of(const std::vector<Accelerator>& accelerators);

/// Makes the calling thread a worker for that lane: it stays on the accelerator's cores, and its
/// work for the accelerator goes on the lane's stream from now on. Throws UsageError where the
/// cores cannot be used.
void enter(const Accelerator& accelerator, LaneKind lane);

}  // namespace stageline::executor
