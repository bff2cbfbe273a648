// The memory that one device holds now, and its peaks.
#pragma once

#include <algorithm>
#include <vector>

#include "sim/analysis/memory.hpp"
#include "sim/index.hpp"

namespace stageline {

class HeldMemory {
 public:
  HeldMemory(MemoryProfile& profile, int device, Curves curves)
      : stages_(profile.stage),
        result_(nth(profile.device, device)),
        curves_(curves),
        stashes_of_(profile.stage.size()) {}

  void add(MemoryKind kind, Bytes bytes) {
    nth(use_, kind) += bytes;
    sum_ += bytes;
  }
  void drop(MemoryKind kind, Bytes bytes) { add(kind, Bytes{-bytes.count}); }

  /// Instead of what it was before: workspace, or where negative less of the stash.
  void hold_beyond(Bytes bytes) {
    const Bytes none{};
    if (std::min(bytes, beyond_) >= none) {
      add(MemoryKind::workspace, bytes - beyond_);
      beyond_ = bytes;
      return;
    }
    add(MemoryKind::workspace, std::max(bytes, none) - std::max(beyond_, none));
    add(MemoryKind::stash, std::min(bytes, none) - std::min(beyond_, none));
    beyond_ = bytes;
  }

  /// Counts the stashes of a stage: +1 for one that is held from now on, -1 for one that is freed.
  void hold(std::size_t stage, int change) {
    int& here = stashes_of_[stage];
    here += change;
    stashes_ += change;
    int& peak = stages_[stage].stash_peak;
    peak = std::max(peak, here);
    stash_peak_ = std::max(stash_peak_, stashes_);
  }

  /// Goes on to another moment; what is held now is held until then.
  void go_to(Time at) {
    if (at == now_) return;
    settle();
    now_ = at;
  }
  /// Ends the last moment. Returns the most stashes held at once.
  int finish() {
    settle();
    result_.at_end = use_;
    return stash_peak_;
  }

 private:
  void settle() {
    if (sum_ > result_.peak || result_.peak == Bytes{}) {
      result_.peak = sum_;
      result_.peak_at = now_;
      result_.at_peak = use_;
    }
    if (curves_ == Curves::all) result_.curve.push_back({now_, use_});
  }

  std::vector<StageMemory>& stages_;
  DeviceMemory& result_;
  // Not beside use_: the compiler would add to both at once, and wait for the store of each half.
  Bytes sum_{};
  Bytes beyond_{};
  Curves curves_;
  Time now_{};
  MemoryUse use_{};
  std::vector<int> stashes_of_;  // by stage, on this device
  int stashes_ = 0;
  int stash_peak_ = 0;
};

}  // namespace stageline
