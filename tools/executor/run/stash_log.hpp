// The bytes of the stashes that one device holds over time, on the clock of the run.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/op.hpp"

namespace stageline::executor {

/// A forward's stash is there from its start; what other ops add or free, from their end.
struct StashChange {
  std::int64_t at_start = 0;
  std::int64_t at_end = 0;
  std::int64_t sent = 0;  // leaves with the last of the messages that carry it
};

/// Used by all threads that work for the device, and by receivers of its messages.
class StashLog {
 public:
  void note(Time at, std::int64_t bytes);
  /// Notes an op that ran from `start` to `end`; `messages` carry what it has sent.
  void note(Op op, const StashChange& change, Time start, Time end, int messages);
  /// A message with the stash of the op's micro-batch has left.
  void left(Op op, Time at);
  void restart();
  /// The most bytes held at once; at one moment frees come first.
  std::int64_t peak() const;

 private:
  struct Sent {
    std::int64_t bytes = 0;
    int messages = 0;
    Time last{};
  };
  mutable std::mutex mutex_;
  std::vector<std::pair<Time, std::int64_t>> changes_;
  std::map<std::pair<int, std::uint32_t>, Sent> sent_;  // by stage and micro-batch
};

}  // namespace stageline::executor
