// The next event of each lane, first by time: a heap of four children a node that knows where each
// lane is, so that an event can move.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/base/units.hpp"

namespace stageline {

class EventQueue {
 public:
  explicit EventQueue(std::size_t lanes) : at_(lanes, absent) { heap_.reserve(lanes); }

  bool empty() const { return heap_.empty(); }
  /// The time of the first event. The queue must not be empty.
  Time first() const { return heap_.front().time; }

  /// The lane's event is at `time` from now on.
  void set(std::uint32_t lane, Time time) {
    std::size_t at = at_[lane];
    if (at == absent) {
      at = heap_.size();
      heap_.emplace_back();
    } else if (heap_[at].time < time) {
      sink(at, {time, lane});
      return;
    }
    rise(at, {time, lane});
  }

  /// The lane of the first event, which leaves the queue; of equal moments, the lower lane.
  std::uint32_t pop() {
    const std::uint32_t lane = heap_.front().lane;
    const Event last = heap_.back();
    heap_.pop_back();
    at_[lane] = absent;
    if (!heap_.empty()) sink(0, last);
    return lane;
  }

 private:
  struct Event {
    Time time{};
    std::uint32_t lane = 0;
    friend bool operator<(const Event& a, const Event& b) {
      return a.time < b.time || (a.time == b.time && a.lane < b.lane);
    }
  };
  static constexpr std::uint32_t absent = 0xffffffff;
  static constexpr std::size_t children = 4;

  void put(std::size_t at, const Event& event) {
    heap_[at] = event;
    at_[event.lane] = static_cast<std::uint32_t>(at);
  }

  void rise(std::size_t at, Event event) {
    while (at > 0) {
      const std::size_t parent = (at - 1) / children;
      if (!(event < heap_[parent])) break;
      put(at, heap_[parent]);
      at = parent;
    }
    put(at, event);
  }

  void sink(std::size_t at, Event event) {
    while (true) {
      const std::size_t begin = children * at + 1;
      if (begin >= heap_.size()) break;
      const std::size_t end = std::min(begin + children, heap_.size());
      std::size_t first = begin;
      for (std::size_t child = begin + 1; child < end; ++child) {
        if (heap_[child] < heap_[first]) first = child;
      }
      if (!(heap_[first] < event)) break;
      put(at, heap_[first]);
      at = first;
    }
    put(at, event);
  }

  std::vector<Event> heap_;
  std::vector<std::uint32_t> at_;  // by lane: index into heap_
};

}  // namespace stageline
