// Calls that do not depend on one another, on several threads.
#pragma once

#include <cstddef>
#include <functional>

namespace stageline {

/// The processor cores that this process may use, at least 1.
int available_cores();

/// Calls work(0) … work(count − 1), each once and begun in this order, on up to `workers` threads,
/// one of which is the caller's. Where calls throw, no further one begins, and the exception of the
/// first of them is thrown when all have ended: the one that a single thread would have met. Each
/// thread looks at the caller's check point (tools/base/check_point.hpp) before each call, and
/// reads what the caller reads (tools/base/provided_files.hpp). Where the system gives fewer
/// threads, those that there are do all.
void in_parallel(std::size_t count, int workers, const std::function<void(std::size_t)>& work);

/// The same where each thread has something of its own to work with: begin() is called once by each
/// of them, and gives what it calls.
void in_parallel_with(std::size_t count, int workers,
                      const std::function<std::function<void(std::size_t)>()>& begin);

}  // namespace stageline
