// Which tasks of a run are done: the one value that all its workers and links read.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "sim/base/units.hpp"

namespace stageline::executor {

/// By task, the time since the start of the run from which its result can be used.
class CompletionBoard {
 public:
  static constexpr std::int64_t unknown = -1;
  explicit CompletionBoard(std::uint32_t tasks) : available_(tasks) { clear(); }
  void clear() {
    for (auto& one : available_) one.store(unknown, std::memory_order_relaxed);
  }
  void publish(std::uint32_t task, Time at) {
    available_[task].store(at.count(), std::memory_order_release);
  }
  bool known(std::uint32_t task) const { return get(task) != unknown; }
  Time at(std::uint32_t task) const { return Time{get(task)}; }
  bool is_there(std::uint32_t task, Time now) const {
    const std::int64_t at = get(task);
    return at != unknown && at <= now.count();
  }

 private:
  std::int64_t get(std::uint32_t task) const {
    return available_[task].load(std::memory_order_acquire);
  }
  std::vector<std::atomic<std::int64_t>> available_;
};

}  // namespace stageline::executor
