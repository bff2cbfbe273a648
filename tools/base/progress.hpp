// How far work of several threads is.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>

namespace stageline {

/// Called with what is done and all there is, by one thread at a time. Null: nobody asks.
using Progress = std::function<void(std::int64_t, std::int64_t)>;

/// Adds up what the threads have done, and reports it.
class ProgressCount {
 public:
  ProgressCount(const Progress& progress, std::int64_t all) : progress_(progress), all_(all) {}

  void add(std::int64_t more) {
    if (!progress_) return;
    const std::lock_guard<std::mutex> held(access_);
    done_ += more;
    progress_(done_, all_);
  }

 private:
  const Progress& progress_;
  std::int64_t all_;
  std::int64_t done_ = 0;
  std::mutex access_;
};

}  // namespace stageline
