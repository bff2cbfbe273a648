// The bytes that a device's tensors hold over time, as its allocator reports them: allocations and
// frees of all threads that work for it.
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
  /// While it lives, this thread's allocations and frees are counted.
  std::unique_ptr<c10::DebugInfoGuard> listen() const;
  /// While it lives, this thread's allocations and frees are counted as of that moment.
  std::unique_ptr<c10::DebugInfoGuard> date(std::chrono::steady_clock::time_point at) const;
  /// While it lives, this thread's allocations are not counted, nor is their freeing: host memory
  /// where the device is a CPU, too.
  static std::unique_ptr<c10::DebugInfoGuard> look_away();
  /// Counts so many bytes as this thread's, of memory that is allocated elsewhere: those of a
  /// buffer that stands all the time, less while something in it is counted by itself.
  static void count(at::Device device, std::int64_t bytes);
  void restart();
  /// The most bytes held beyond those at the start; at least 0. At one moment frees come first.
  std::int64_t peak() const;

 private:
  struct Listener;
  std::shared_ptr<Listener> listener_;
};

}  // namespace stageline::executor
