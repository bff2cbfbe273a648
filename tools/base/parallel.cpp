#include "tools/base/parallel.hpp"

#include <algorithm>
#include <exception>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "tools/base/check_point.hpp"
#include "tools/base/provided_files.hpp"

namespace stageline {
namespace {

// The numbers of calls, given out in order. A call is 100 µs or more, against which a lock is
// nothing: oneTBB's parallel_for takes as long (tests/benchmarks/scenarios.cpp).
class Calls {
 public:
  explicit Calls(std::size_t count) : count_(count) {}

  /// Nothing where all have begun, or one has failed.
  std::optional<std::size_t> next() {
    const std::lock_guard lock(mutex_);
    if (next_ == count_ || error_) return std::nullopt;
    return next_++;
  }

  void fail(std::size_t call, std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (error_ && failed_ < call) return;
    error_ = std::move(error);
    failed_ = call;
  }

  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::mutex mutex_;
  std::size_t count_;
  std::size_t next_ = 0;
  std::exception_ptr error_;
  std::size_t failed_ = 0;  // call
};

// Joins the threads when it goes, as std::jthread does, which clang 14's library may lack.
struct Threads {
  std::vector<std::thread> all;
  Threads() = default;
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
  ~Threads() {
    for (std::thread& one : all) one.join();
  }
};

}  // namespace

int available_cores() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

void in_parallel_with(std::size_t count, int workers,
                      const std::function<std::function<void(std::size_t)>()>& begin) {
  Calls calls(count);
  const CheckPoint* const point = check_point();
  const ProvidedFiles* const files = provided_files();
  const auto take_calls = [&] {
    const LooksAt looks(point);
    const ReadsProvided reads(files);
    std::function<void(std::size_t)> work;
    while (const std::optional<std::size_t> call = calls.next()) {
      try {
        look_at_check_point();
        if (!work) work = begin();
        work(*call);
      } catch (...) {
        calls.fail(*call, std::current_exception());
      }
    }
  };
  {
    Threads threads;
    for (std::size_t i = 1; i < count && i < static_cast<std::size_t>(workers); ++i) {
      try {
        threads.all.emplace_back(take_calls);
      } catch (const std::system_error&) {
        break;  // the system gives no more threads: those that there are do all
      }
    }
    take_calls();
  }
  calls.rethrow();
}

void in_parallel(std::size_t count, int workers, const std::function<void(std::size_t)>& work) {
  in_parallel_with(count, workers, [&] { return work; });
}

}  // namespace stageline
