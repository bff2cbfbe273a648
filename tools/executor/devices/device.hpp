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

#include "sim/units.hpp"

namespace stageline::executor {

/// "cpu", "cuda", "cuda:1" (no others are known to work); "cuda" is the first. Throws UsageError
/// when there is no such device, or when this LibTorch is too old to time it (events came to the
/// common interface with 2.4).
at::Device device_called(const std::string& name);

/// What it is called on the box ("NVIDIA H200"), or its name here where nobody can be asked.
std::string title_of(at::Device device);

/// The libraries that compute there ("CUDA 13.0, cuDNN 9.15.1"); of a CPU nothing.
std::string libraries_of(at::Device device);

/// Waits until all that this thread has asked of the device is done: what is on its stream there.
void synchronize(at::Device device);

/// Keeps an accelerator's tensor, made on another stream, from being overwritten under this
/// thread's hands: once it is freed, its memory is given away only when all is done that this
/// thread's stream had been asked for by then. Call it before the first use. Of a CPU's tensor
/// nothing is to be kept.
void keep_until_done(const at::Tensor& tensor);

/// Times what lies between marks: by the host's clock on a CPU, by events on an accelerator, which
/// runs behind the host.
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

/// Bytes that tensors hold, while it lives, in this thread: all that the allocator of the device
/// hands out. What a library takes elsewhere (oneDNN's scratchpads) is not seen.
class MemoryMeter {
 public:
  explicit MemoryMeter(at::Device device);
  ~MemoryMeter();
  MemoryMeter(const MemoryMeter&) = delete;
  MemoryMeter& operator=(const MemoryMeter&) = delete;

  std::int64_t held() const;
  /// The most held since the last call, and from here on anew.
  std::int64_t take_peak();

 private:
  struct Listener;
  std::shared_ptr<Listener> listener_;
  std::unique_ptr<c10::DebugInfoGuard> guard_;
};

}  // namespace stageline::executor
