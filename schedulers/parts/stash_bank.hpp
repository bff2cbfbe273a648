// What each device holds while a list schedule is made, and whether another forward may start: only
// if afterwards every older micro-batch can still get through all stages of the device, one after
// another (the banker's rule, Dijkstra 1965, EWD 108, with the micro-batches in their order). Every
// device keeps it for itself, and since the order is the same on all, the oldest micro-batch can
// always go on somewhere: nothing ever waits in a circle.
//
//      stage 0   F0 F1 F2 F3     limit 5, one is free: 3F0 may take it. 0F4 may not: 3F0 could
//      stage 3                   never start then, and before it has nothing comes free.
//
// Each stage takes its micro-batches in order.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/index.hpp"
#include "sim/problem.hpp"

namespace stageline {

/// What a device may hold at most, by device; no limit where negative or missing.
struct StashLimit {
  enum class Unit : std::uint8_t {
    stashes,  // of one stage and micro-batch; whole until I and W (or B) have ended
    bytes,    // of stash: I frees what only it reads, W the rest. Where I adds more than it frees,
              // the room for that is taken by F
  };
  Unit unit = Unit::stashes;
  std::vector<std::int64_t> most;
};

/// The same number of stashes on every device.
StashLimit stash_limit(const Problem& problem, std::int64_t stashes);

/// The smallest limit that works for a device: one micro-batch through all its stages, with I and W
/// apart if `split`.
std::int64_t smallest_limit(const Problem& problem, StashLimit::Unit unit, bool split, int device);

/// Stages have one device each.
class StashBank {
 public:
  /// `split`: I and W apart. Throws UsageError when a limit is too small, with the smallest that
  /// works.
  StashBank(const Problem& problem, const StashLimit& limit, bool split);

  /// Whether the stage's next forward may start. O(stages on the device ²).
  bool fits(int stage) const;

  /// It starts.
  void forward(int stage);

  /// I or B is done; W is. O(stages on the device).
  void backward(int stage, std::uint32_t microbatch);
  void weight(int stage, std::uint32_t microbatch);

 private:
  struct Stage {
    int device = 0;
    std::int64_t holds = 0;
    std::int64_t backward_frees = 0;
    std::int64_t weight_frees = 0;
    std::uint32_t forwards = 0;  // started
    std::int64_t older = 0;      // held on the device by micro-batches before `forwards`
  };
  struct Device {
    std::vector<int> stages;
    bool limited = false;
    std::int64_t limit = 0;
    std::int64_t used = 0;
    std::vector<std::int64_t> held;  // by micro-batch, where there is a limit
  };

  Stage& at(int stage) { return nth(stages_, stage); }
  const Stage& at(int stage) const { return nth(stages_, stage); }
  void release(int stage, std::uint32_t microbatch, std::int64_t amount);

  std::uint32_t count_;
  std::vector<Stage> stages_;
  std::vector<Device> devices_;
};

}  // namespace stageline
