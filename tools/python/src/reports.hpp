// How far a long call is, told to Python.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <functional>
#include <thread>
#include <utility>

namespace stageline::python {

/// What Python is called with: how many are done, and how many there are.
using Progress = std::function<void(std::int64_t, std::int64_t)>;

/// Calls Python from the thread that made the call; what the others do is reported with the next
/// of its own, or by end(). To be called by one thread at a time, without the interpreter's lock.
class Reports {
 public:
  explicit Reports(Progress to) : to_(std::move(to)), caller_(std::this_thread::get_id()) {}

  void operator()(std::int64_t done, std::int64_t wanted) {
    done_ = done;
    wanted_ = wanted;
    if (std::this_thread::get_id() == caller_) end();
  }
  void end() {
    if (!to_ || done_ == told_) return;
    const nanobind::gil_scoped_acquire lock;
    told_ = done_;
    to_(done_, wanted_);
  }

 private:
  const Progress to_;
  const std::thread::id caller_;
  std::int64_t done_ = 0;
  std::int64_t wanted_ = 0;
  std::int64_t told_ = 0;
};

}  // namespace stageline::python
