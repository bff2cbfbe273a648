// in_parallel() with a report of how far it is.
#include "tools/published/on_threads.hpp"

#include <thread>

#include "tools/base/parallel.hpp"

namespace stageline {

void on_threads(std::size_t count, int threads, const std::atomic<bool>* interrupted,
                const std::function<void(std::size_t)>& task,
                const std::function<void(std::size_t)>& done) {
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<std::size_t> begun{0};
  in_parallel(count, threads, [&](std::size_t i) {
    if (interrupted != nullptr && *interrupted) throw FitInterrupted{};
    ++begun;
    task(i);
    if (done && std::this_thread::get_id() == caller) done(begun);
  });
  if (interrupted != nullptr && *interrupted) throw FitInterrupted{};
}

}  // namespace stageline
