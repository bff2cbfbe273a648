// Listens to LibTorch's allocator.
#include "tools/executor/tensors/memory_log.hpp"

#include <c10/core/Allocator.h>
#include <c10/util/Logging.h>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "tools/executor/profile/reported_total.hpp"

namespace stageline::executor {

struct Change {
  std::chrono::steady_clock::time_point at;
  std::int64_t bytes = 0;
};

struct MemoryLog::Listener : c10::MemoryReportingInfoBase {
  explicit Listener(at::Device of) : device(of) {}
  void reportMemoryUsage(void*, int64_t change, ReportedTotal, ReportedTotal,
                         c10::Device where) override {
    if (where.type() == device.type()) note(std::chrono::steady_clock::now(), change);
  }
  bool memoryProfilingEnabled() const override { return true; }
  void note(std::chrono::steady_clock::time_point at, std::int64_t bytes) {
    const std::lock_guard lock(mutex);
    changes.push_back({at, bytes});
  }
  at::Device device;
  std::mutex mutex;
  std::vector<Change> changes;
};

MemoryLog::MemoryLog(at::Device device) : listener_(std::make_shared<Listener>(device)) {
  // LibTorch warns of each thousand blocks that are freed here and were made before anyone
  // listened.
  constexpr int errors_alone = 2;
  FLAGS_caffe2_log_level = std::max<int>(FLAGS_caffe2_log_level, errors_alone);
}

std::unique_ptr<c10::DebugInfoGuard> MemoryLog::listen() const {
  return std::make_unique<c10::DebugInfoGuard>(c10::DebugInfoKind::PROFILER_STATE, listener_);
}

std::unique_ptr<c10::DebugInfoGuard> MemoryLog::date(
    std::chrono::steady_clock::time_point at) const {
  struct Dated : c10::MemoryReportingInfoBase {
    Dated(std::shared_ptr<Listener> listener, std::chrono::steady_clock::time_point moment)
        : to(std::move(listener)), at(moment) {}
    void reportMemoryUsage(void*, int64_t change, ReportedTotal, ReportedTotal,
                           c10::Device where) override {
      if (where.type() == to->device.type()) to->note(at, change);
    }
    bool memoryProfilingEnabled() const override { return true; }
    std::shared_ptr<Listener> to;
    std::chrono::steady_clock::time_point at;
  };
  return std::make_unique<c10::DebugInfoGuard>(c10::DebugInfoKind::PROFILER_STATE,
                                               std::make_shared<Dated>(listener_, at));
}

// An allocation that no listener wanted is not known to the allocator when it is freed.
std::unique_ptr<c10::DebugInfoGuard> MemoryLog::look_away() {
  struct Nobody : c10::MemoryReportingInfoBase {
    void reportMemoryUsage(void*, int64_t, ReportedTotal, ReportedTotal, c10::Device) override {}
    bool memoryProfilingEnabled() const override { return false; }
  };
  return std::make_unique<c10::DebugInfoGuard>(c10::DebugInfoKind::PROFILER_STATE,
                                               std::make_shared<Nobody>());
}

void MemoryLog::count(at::Device device, std::int64_t bytes) {
  c10::reportMemoryUsageToProfiler(nullptr, bytes, 0, 0, device);
}

void MemoryLog::restart() {
  const std::lock_guard lock(listener_->mutex);
  listener_->changes.clear();
}

std::int64_t MemoryLog::peak() const {
  const std::lock_guard lock(listener_->mutex);
  std::sort(listener_->changes.begin(), listener_->changes.end(),
            [](const Change& a, const Change& b) {
              return a.at != b.at ? a.at < b.at : a.bytes < b.bytes;
            });
  std::int64_t held = 0;
  std::int64_t most = 0;
  for (const Change& change : listener_->changes) {
    held += change.bytes;
    most = std::max(most, held);
  }
  return most;
}

}  // namespace stageline::executor
