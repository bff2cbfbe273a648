// Stashes of stages with split roles, on one device: each is kept until its last reader is done.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "sim/analysis/held_memory.hpp"
#include "sim/analysis/memory_tables.hpp"

namespace stageline {

class SplitStash {
 public:
  SplitStash(const MemoryTables& tables, int device, HeldMemory& held)
      : tables_(tables), device_(device), held_(held) {}

  /// F keeps the stash until the ops here, and the messages or the copy to the host, have read it.
  void forward_started(Op op);
  /// I, W or B.
  void backward_started(Op op);
  void backward_ended(Op op);
  /// SEND_STASH or OFFLOAD has ended.
  void read_by_message(Op op);
  /// RECV_STASH has started.
  void received(Op op);
  /// PREFETCH has started.
  void copied_in(Op op);

 private:
  // What this device keeps of one micro-batch.
  struct Kept {
    Bytes for_input_grad{};
    Bytes for_weight_grad{};
    Bytes gradient{};             // that I has left for W
    int input_grad_readers = 0;   // ops here and messages that have yet to read for_input_grad
    int weight_grad_readers = 0;  // ops here and messages that have yet to read for_weight_grad
    bool gradient_read = false;   // the first reader has taken over the output gradient
    bool gradient_kept = false;   // I has left it
    bool there = false;
  };

  Kept& kept(Op op) { return kept_[{op.stage, op.microbatch}]; }
  int input_grad_ops(Op op) const;
  int weight_grad_ops(Op op) const;
  void keep(Op op, StashRead bytes, int other_readers);
  void release(Op op);

  const MemoryTables& tables_;
  int device_;
  HeldMemory& held_;
  std::map<std::pair<int, std::uint32_t>, Kept> kept_;  // by stage and micro-batch; in flight only
};

}  // namespace stageline
