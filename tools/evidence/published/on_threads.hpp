// Independent tasks on several threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>

namespace stageline {

/// Thrown where `interrupted` is set before all tasks are done.
struct FitInterrupted {};

/// Calls task(0) … task(count − 1), each once, on at most `threads` threads, the caller's among
/// them, which calls `done(tasks begun so far)` behind each of its tasks. An exception of a task is
/// thrown when all are done: that of the first task that threw, whatever the threads.
void on_threads(std::size_t count, int threads, const std::atomic<bool>* interrupted,
                const std::function<void(std::size_t)>& task,
                const std::function<void(std::size_t)>& done = {});

}  // namespace stageline
