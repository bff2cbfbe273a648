// Threads that work in rounds: all begin a round together, and one that fails stops the others.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace stageline::executor {

/// Thrown by a run that was asked to stop.
struct Stopped : std::exception {
  const char* what() const noexcept override { return "stopped"; }
};

/// Throws Stopped once `stop` is true; null: never.
inline void stop_if(const std::atomic<bool>* stop) {
  if (stop != nullptr && *stop) throw Stopped();
}

class WorkerPool {
 public:
  WorkerPool() = default;
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;
  ~WorkerPool() { end(); }

  /// Called in the thread that fails, before the others are stopped. Set it before add().
  void on_failure(std::function<void(const std::exception_ptr&)> report) {
    report_ = std::move(report);
  }
  /// Starts a thread: `set_up` once, then `work` in every round. `work` calls await_release()
  /// before it begins, and throws Stopped where stopped() tells it to end. Throws UsageError where
  /// there can be no more threads.
  void add(std::function<void()> set_up, std::function<void()> work);
  /// Returns when no thread is setting up or working.
  void wait_until_idle();

  /// Wakes all threads; returns when each of them is in await_release().
  void begin_round();
  void release() { released_.store(true, std::memory_order_release); }
  void await_release();

  bool stopped() const { return stopped_; }
  /// Throws the first failure of a thread. While all are idle.
  void rethrow_failure() const;
  /// Ends the threads; no round may be in progress.
  void end();

 private:
  void run(const std::function<void()>& set_up, const std::function<void()>& work);
  void fail(std::exception_ptr why);

  std::vector<std::thread> threads_;
  std::function<void(const std::exception_ptr&)> report_;
  std::atomic<std::size_t> arrived_{0};
  std::atomic<bool> released_{false};
  std::atomic<bool> stopped_{false};

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::uint64_t round_ = 0;
  std::size_t idle_ = 0;
  bool ending_ = false;
  std::exception_ptr failure_;
};

/// Looks again at once for a while, then lets other threads of this core run: a copy engine, say.
/// (No pause instruction: a hypervisor takes a loop of them for idleness and takes the core away.)
class SpinWait {
 public:
  void wait();

 private:
  int looked_ = 0;
};

}  // namespace stageline::executor
