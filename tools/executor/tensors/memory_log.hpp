// What a device's tensors hold over time, by what its allocator reports: allocations and frees of
// all threads that work for it.
//
// Includes ATen: for the files of this folder only.
#pragma once

#include <ATen/ATen.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <chrono>
#include <cstdint>
#include <memory>

namespace stageline::executor {

class MemoryLog {
 public:
  explicit MemoryLog(at::Device device);
  /// While it lives, what this thread allocates and frees counts.
  std::unique_ptr<c10::DebugInfoGuard> listen() const;
  /// While it lives, what this thread allocates does not count, nor when it is freed: the memory of
  /// a host, where the device is a CPU too.
  static std::unique_ptr<c10::DebugInfoGuard> look_away();
  /// Bytes more or less from some moment on, which may have passed.
  void note(std::chrono::steady_clock::time_point at, std::int64_t bytes);
  void restart();
  /// The most held beyond what was held at the start; less than that is 0.
  std::int64_t peak() const;

 private:
  struct Listener;
  std::shared_ptr<Listener> listener_;
};

}  // namespace stageline::executor
