// The pending requests of an engine run, in the order in which they are served: a heap with four
// children a node, whose comparisons are arithmetic instead of branches. The next push usually
// follows a pop, so it fills the root that the pop left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/base/units.hpp"

namespace stageline {

struct ResourceRequest {
  Time asked;  // not negative
  std::uint32_t task;
};

class RequestQueue {
 public:
  bool empty() const { return used_ == (root_is_free_ ? 1U : 0U); }

  void push(const ResourceRequest& request) {
    const Key key = static_cast<Key>(request.asked.count()) << task_bits | request.task;
    if (root_is_free_) {
      root_is_free_ = false;
      sink(key);
      return;
    }
    // Every node has four children, of which those that are unused come last.
    if (heap_.size() < children * used_ + children + 1) {
      heap_.resize(2 * children * (used_ + 1), unused);
    }
    rise(used_++, key);
  }

  /// The first request, which leaves the queue. The queue must not be empty.
  ResourceRequest pop() {
    if (root_is_free_) {
      const Key moved = heap_[--used_];
      heap_[used_] = unused;
      sink(moved);
    }
    root_is_free_ = true;
    return {Time{static_cast<std::int64_t>(heap_[0] >> task_bits)},
            static_cast<std::uint32_t>(heap_[0])};
  }

 private:
  // First come, first served; of equal moments, the lower task number.
  __extension__ using Key = unsigned __int128;
  static constexpr unsigned task_bits = 32;
  static constexpr Key unused = ~Key{0};
  static constexpr std::size_t children = 4;  // 64 bytes: a cache line

  void rise(std::size_t at, Key key) {
    while (at > 0) {
      const std::size_t parent = (at - 1) / children;
      if (heap_[parent] < key) break;
      heap_[at] = heap_[parent];
      at = parent;
    }
    heap_[at] = key;
  }

  // From the root down.
  void sink(Key key) {
    Key* const heap = heap_.data();
    std::size_t at = 0;
    for (std::size_t child = 1; child < used_; child = children * at + 1) {
      const std::size_t left = child + (heap[child + 1] < heap[child] ? 1U : 0U);
      const std::size_t right = child + 2 + (heap[child + 3] < heap[child + 2] ? 1U : 0U);
      const std::size_t first = heap[right] < heap[left] ? right : left;
      if (key < heap[first]) break;
      heap[at] = heap[first];
      at = first;
    }
    heap[at] = key;
  }

  std::vector<Key> heap_;
  std::size_t used_ = 0;       // nodes, including a free root
  bool root_is_free_ = false;  // since the last pop
};

}  // namespace stageline
