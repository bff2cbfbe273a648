// The pending requests of an engine run, in the order in which they are served: a heap with four
// children a node, whose comparisons are arithmetic instead of branches. The next push usually
// follows a pop, so it fills the root that the pop left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "sim/units.hpp"

namespace stageline {

struct Request {
  Time asked;
  std::uint32_t task;

  /// First come, first served; of equal moments, the lower task number.
  bool before(const Request& other) const {
    return ((asked < other.asked) | ((asked == other.asked) & (task < other.task))) != 0;
  }
};

class RequestQueue {
 public:
  bool empty() const { return used_ == (root_is_free_ ? 1U : 0U); }

  void push(const Request& request) {
    if (root_is_free_) {
      root_is_free_ = false;
      sink(request);
      return;
    }
    // Every node has four children, of which those that are unused come last.
    if (heap_.size() < children * used_ + children + 1) {
      heap_.resize(2 * children * (used_ + 1), unused);
    }
    rise(used_++, request);
  }

  /// The first request, which leaves the queue. The queue must not be empty.
  Request pop() {
    if (root_is_free_) {
      const Request moved = heap_[--used_];
      heap_[used_] = unused;
      sink(moved);
    }
    root_is_free_ = true;
    return heap_[0];
  }

 private:
  static constexpr std::size_t children = 4;  // 64 bytes: a cache line
  static constexpr Request unused{Time::max(), std::numeric_limits<std::uint32_t>::max()};

  void rise(std::size_t at, const Request& request) {
    while (at > 0) {
      const std::size_t parent = (at - 1) / children;
      if (!request.before(heap_[parent])) break;
      heap_[at] = heap_[parent];
      at = parent;
    }
    heap_[at] = request;
  }

  // From the root down.
  void sink(const Request& request) {
    Request* const heap = heap_.data();
    std::size_t at = 0;
    for (std::size_t child = 1; child < used_; child = children * at + 1) {
      const std::size_t left = child + (heap[child + 1].before(heap[child]) ? 1U : 0U);
      const std::size_t right = child + 2 + (heap[child + 3].before(heap[child + 2]) ? 1U : 0U);
      const std::size_t first = heap[right].before(heap[left]) ? right : left;
      if (!heap[first].before(request)) break;
      heap[at] = heap[first];
      at = first;
    }
    heap[at] = request;
  }

  std::vector<Request> heap_;
  std::size_t used_ = 0;       // nodes, including a free root
  bool root_is_free_ = false;  // since the last pop
};

}  // namespace stageline
