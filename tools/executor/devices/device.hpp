// Where passes run: a clock and a memory meter that do the same on a CPU and on an accelerator.
// Accelerators are driven through c10's device-independent interface, so that this compiles, and is
// compiled, where there is none.
//
// Includes ATen: for the files of this folder only.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/base/units.hpp"

namespace stageline::executor {

/// "cpu", "cuda", "cuda:1" (no others are known to work); "cuda" is the first. Throws UsageError
/// when there is no such device, or when this LibTorch is too old to time it (events came to the
/// common interface with 2.4).
at::Device device_called(const std::string& name);

/// The device's product name ("NVIDIA H200"), or its name here where no driver can be asked.
std::string title_of(at::Device device);

/// The libraries that compute on it ("CUDA 13.0, cuDNN 9.15.1"); empty for a CPU.
std::string libraries_of(at::Device device);

/// Waits until all work that this thread has put on its stream of the device is done.
void synchronize(at::Device device);

/// Keeps a tensor of an accelerator that was made on another stream from being overwritten while
/// this thread uses it: once it is freed, its memory is reused only after the work that is on this
/// thread's stream by then. Call it before the first use. Does nothing for a tensor on a CPU.
void keep_until_done(const at::Tensor& tensor);

/// Measures the time between marks: by the host's clock on a CPU, by events on an accelerator,
/// which runs behind the host.
class Stopwatch {
 public:
  explicit Stopwatch(at::Device device) : device_(device) {}
  void mark();
  /// The times between one mark and the next, after waiting for the device; forgets the marks.
  std::vector<Time> laps();

 private:
  at::Device device_;
  std::vector<std::chrono::steady_clock::time_point> moments_;
  std::vector<c10::Event> events_;  // reused
  std::size_t marked_ = 0;
};

/// Bytes that tensors of this thread hold while it lives: all allocations of the device's
/// allocator. Memory that a library takes elsewhere (oneDNN's scratchpads) is not seen.
class MemoryMeter {
 public:
  explicit MemoryMeter(at::Device device);
  ~MemoryMeter();
  MemoryMeter(const MemoryMeter&) = delete;
  MemoryMeter& operator=(const MemoryMeter&) = delete;

  std::int64_t held() const;
  /// The most bytes held since the last call.
  std::int64_t take_peak();

 private:
  struct Listener;
  std::shared_ptr<Listener> listener_;
  std::unique_ptr<c10::DebugInfoGuard> guard_;
};

}  // namespace stageline::executor
