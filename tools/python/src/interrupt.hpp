// Long calls without the interpreter's lock, which Ctrl-C ends.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <optional>
#include <thread>

#include "tools/base/check_point.hpp"

namespace stageline::python {

/// Holds the work of one call. The thread that makes it asks the interpreter for signals at check
/// points, at most every 50 ms; the threads that help it are told to stop by the next of theirs.
class Signals {
 public:
  Signals() : caller_(std::this_thread::get_id()), asked_(Clock::now()) {}

  void look() {
    if (stop_) throw CalledOff();
    if (std::this_thread::get_id() != caller_ || Clock::now() - asked_ < pause) return;
    {
      const nanobind::gil_scoped_acquire lock;
      if (PyErr_CheckSignals() != 0) raised_ = std::make_exception_ptr(nanobind::python_error());
    }
    asked_ = Clock::now();
    if (!raised_) return;
    stop_ = true;
    throw CalledOff();
  }
  const std::exception_ptr& raised() const { return raised_; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds pause{50};
  std::thread::id caller_;
  Clock::time_point asked_;
  std::atomic<bool> stop_{false};
  std::exception_ptr raised_;
};

/// What `work` returns. Throws what it throws, and KeyboardInterrupt (or what else a handler of a
/// signal raises) soon after the signal.
template <class Work>
auto without_lock(const Work& work) {
  Signals signals;
  const CheckPoint look = [&] { signals.look(); };
  try {
    const nanobind::gil_scoped_release unlocked;
    const LooksAt looks(&look);
    return work();
  } catch (const CalledOff&) {
    std::rethrow_exception(signals.raised());
  }
}

}  // namespace stageline::python
