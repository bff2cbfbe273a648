// Threads that take the next task each.
#include "tools/evidence/published/on_threads.hpp"

#include <algorithm>
#include <exception>
#include <thread>
#include <vector>

#include "sim/index.hpp"

namespace stageline {

void on_threads(std::size_t count, int threads, const std::atomic<bool>* interrupted,
                const std::function<void(std::size_t)>& task,
                const std::function<void(std::size_t)>& done) {
  const auto stopped = [interrupted] { return interrupted != nullptr && *interrupted; };
  std::vector<std::exception_ptr> failures(count);
  std::atomic<std::size_t> next{0};
  const auto work = [&](bool reports) {
    while (!stopped()) {
      const std::size_t i = next++;
      if (i >= count) break;
      try {
        task(i);
      } catch (...) {
        failures[i] = std::current_exception();
      }
      if (reports && done) done(std::min(next.load(), count));
    }
  };
  {
    std::vector<std::jthread> others;
    const std::size_t most = std::min(as_size(std::max(threads, 1)), count);
    for (std::size_t t = 1; t < most; ++t) others.emplace_back(work, false);
    work(true);
  }
  if (stopped()) throw FitInterrupted{};
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace stageline
