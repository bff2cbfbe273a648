// Independent tasks on several threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>

namespace stageline {

/// Thrown where `interrupted` is set before all tasks are done.
struct FitInterrupted {};

/// in_parallel() of `task` on at most `threads` threads, of which the caller's calls
/// `done(tasks begun so far)` behind each of its tasks.
void on_threads(std::size_t count, int threads, const std::atomic<bool>* interrupted,
                const std::function<void(std::size_t)>& task,
                const std::function<void(std::size_t)>& done = {});

}  // namespace stageline
