// The memory that one device holds now, and its peaks.
#pragma once

#include <algorithm>
#include <vector>

#include "sim/analysis/memory.hpp"
#include "sim/analysis/memory_changes.hpp"
#include "sim/base/index.hpp"

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

  /// The stash changes by `bytes`, of which so many are of the part that I alone reads, and the
  /// others of the part that W reads.
  void add_stash(Bytes bytes, Bytes for_input_grad) {
    add(MemoryKind::stash, bytes);
    for_input_grad_ += for_input_grad;
  }
  void drop_stash(Bytes bytes, Bytes for_input_grad) {
    add_stash(Bytes{-bytes.count}, Bytes{-for_input_grad.count});
  }
  /// The gradients that are kept for W, or for earlier slices.
  void add_gradients(Bytes bytes) {
    add(MemoryKind::stash, bytes);
    gradients_ += bytes;
  }
  void drop_gradients(Bytes bytes) { add_gradients(Bytes{-bytes.count}); }
  /// The inputs of recomputed micro-batches.
  void add_boundary(Bytes bytes) {
    add(MemoryKind::stash, bytes);
    boundaries_ += bytes;
  }
  void drop_boundary(Bytes bytes) { add_boundary(Bytes{-bytes.count}); }

  void change(const MemoryChange& change) {
    add(change.kind, change.bytes);
    if (change.kind != MemoryKind::stash) return;
    for_input_grad_ += change.for_input_grad;
    boundaries_ += change.boundary;
    if (change.stashes != 0) hold(as_size(change.stage), change.stashes);
  }

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
    if (sum_ > result_.peak || result_.peak == Bytes{}) note_peak();
    if (curves_ == Curves::all) note_point();
  }

  void note_point() {
    result_.curve.push_back({now_, use_, stash_use()});
    const Bytes missing = std::max(Bytes{-beyond_.count}, Bytes{});
    result_.stash_peak = std::max(result_.stash_peak, nth(use_, MemoryKind::stash) + missing);
  }

  // Not within settle(), which is in the loop over all events.
  [[gnu::noinline]] void note_peak() {
    result_.peak = sum_;
    result_.peak_at = now_;
    result_.at_peak = use_;
    result_.stash_at_peak = stash_use();
    result_.stashes_at_peak = stashes_;
  }

  // What W reads is the rest of the stash. While a part of it is not there, that is taken off one
  // part after the other.
  StashUse stash_use() const {
    Bytes missing = std::max(Bytes{-beyond_.count}, Bytes{});
    const Bytes others = for_input_grad_ + gradients_ + boundaries_;
    StashUse parts{nth(use_, MemoryKind::stash) + missing - others, for_input_grad_, gradients_,
                   boundaries_};
    for (Bytes& part : parts) {
      const Bytes less = std::min(part, missing);
      part -= less;
      missing -= less;
    }
    return parts;
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
  // Parts of the stash; what W reads is the rest, so that most changes are one addition.
  Bytes for_input_grad_{};
  Bytes gradients_{};
  Bytes boundaries_{};
};

}  // namespace stageline
