// Starts threads, begins their rounds, and collects their failures.
#include "tools/executor/run/worker_pool.hpp"

#include <sched.h>

#include <system_error>
#include <utility>

#include "sim/base/errors.hpp"

namespace stageline::executor {

void WorkerPool::add(std::function<void()> set_up, std::function<void()> work) {
  try {
    threads_.emplace_back(
        [this, set_up = std::move(set_up), work = std::move(work)] { run(set_up, work); });
  } catch (const std::system_error& error) {
    throw UsageError("a thread for a lane cannot be started: " + error.code().message());
  }
}

void WorkerPool::wait_until_idle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return idle_ == threads_.size(); });
}

void WorkerPool::begin_round() {
  stopped_ = false;
  arrived_ = 0;
  released_ = false;
  {
    const std::lock_guard lock(mutex_);
    ++round_;
  }
  changed_.notify_all();
  while (arrived_ != threads_.size()) std::this_thread::yield();
}

void WorkerPool::await_release() {
  ++arrived_;
  SpinWait spin;
  while (!released_.load(std::memory_order_acquire)) spin.wait();
}

void WorkerPool::rethrow_failure() const {
  if (failure_) std::rethrow_exception(failure_);
}

void WorkerPool::end() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void WorkerPool::run(const std::function<void()>& set_up, const std::function<void()>& work) {
  bool ready = false;
  try {
    set_up();
    ready = true;
  } catch (...) {
    fail(std::current_exception());
  }
  std::uint64_t seen = 0;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      ++idle_;
      changed_.notify_all();
      changed_.wait(lock, [&] { return ending_ || round_ != seen; });
      if (ending_) return;
      seen = round_;
      --idle_;
    }
    if (!ready) continue;
    try {
      work();
    } catch (const Stopped&) {
    } catch (...) {
      fail(std::current_exception());
    }
  }
}

void WorkerPool::fail(std::exception_ptr why) {
  if (report_) report_(why);
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = std::move(why);
  stopped_ = true;
}

void SpinWait::wait() {
  if (++looked_ % 64 == 0) sched_yield();
}

}  // namespace stageline::executor
