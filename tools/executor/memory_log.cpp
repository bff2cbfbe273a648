#include "tools/executor/memory_log.hpp"

#include <c10/core/Allocator.h>

#include <algorithm>
#include <mutex>

#include "tools/executor/reported_total.hpp"

namespace stageline {

struct MemoryLog::Listener : c10::MemoryReportingInfoBase {
  explicit Listener(at::Device of) : device(of) {}
  void reportMemoryUsage(void*, int64_t change, ReportedTotal, ReportedTotal,
                         c10::Device where) override {
    if (where.type() != device.type()) return;
    const std::lock_guard lock(mutex);
    held += change;
    peak = std::max(peak, held);
  }
  bool memoryProfilingEnabled() const override { return true; }
  at::Device device;
  std::mutex mutex;
  std::int64_t held = 0;
  std::int64_t peak = 0;
};

MemoryLog::MemoryLog(at::Device device) : listener_(std::make_shared<Listener>(device)) {}

std::unique_ptr<c10::DebugInfoGuard> MemoryLog::listen() const {
  return std::make_unique<c10::DebugInfoGuard>(c10::DebugInfoKind::PROFILER_STATE, listener_);
}

void MemoryLog::restart() {
  const std::lock_guard lock(listener_->mutex);
  listener_->held = 0;
  listener_->peak = 0;
}

std::int64_t MemoryLog::peak() const {
  const std::lock_guard lock(listener_->mutex);
  return listener_->peak;
}

}  // namespace stageline
