// The memory account of one device, op by op.
#pragma once

#include <vector>

#include "sim/analysis/held_memory.hpp"
#include "sim/analysis/memory_changes.hpp"
#include "sim/analysis/memory_tables.hpp"
#include "sim/analysis/split_stash.hpp"

namespace stageline {

/// Takes all events of a device in order of time. At one moment frees come before allocations.
class DeviceAccount {
 public:
  DeviceAccount(const MemoryTables& tables, int device, Curves curves, MemoryProfile& profile);

  /// Sets the time of the events that follow.
  void go_to(Time at) { held_.go_to(at); }
  /// From now on an op runs that holds so much beyond the stash; less: part of that is not there.
  void hold_beyond(Bytes bytes) { held_.hold_beyond(bytes); }
  void started(Op op);  // of the compute lane
  void ended(Op op);
  void sent(Op op);                           // a SEND or a REDUCE_GRAD has ended
  void received(Op op);                       // a RECV has started
  void copied_out(Op op);                     // an OFFLOAD has ended
  void copied_in(Op op) { add_arrived(op); }  // a PREFETCH has started
  void change(const MemoryChange& change) { held_.change(change); }
  /// Ends the last moment. Returns the most stashes held at once.
  int finish() { return held_.finish(); }

 private:
  void add_state(const MemoryTables::Stage& stage);
  void add_split_state(const MemoryTables::Stage& stage);
  void forward_started(Op op);
  void add_stash(Op op);
  void add_arrived(Op op);
  void backward_ended(Op op);
  bool other_half_ended(Op op);
  void drop_stash(Op op);
  void add_messages(Op op, Cargo cargo, Side side) {
    held_.add(MemoryKind::buffers, tables_.messages(op, cargo, side, device_));
  }
  void drop_messages(Op op, Cargo cargo, Side side) {
    held_.drop(MemoryKind::buffers, tables_.messages(op, cargo, side, device_));
  }

  const MemoryTables& tables_;
  int device_;
  HeldMemory held_;
  SplitStash split_;
  std::vector<std::vector<bool>>
      half_done_;  // by stage and micro-batch: I or W of a pair has ended
};

}  // namespace stageline
