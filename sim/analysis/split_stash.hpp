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

  /// F keeps the stash, or its input if R makes the stash again, until the ops here, and the
  /// messages or the copy to the host, have read it.
  void forward_started(Op op);
  /// R makes what the ops here read.
  void recompute_started(Op op);
  /// I, W or B.
  void backward_started(Op op);
  void backward_ended(Op op);
  /// SEND_STASH or OFFLOAD has ended.
  void read_by_message(Op op);
  /// RECV_STASH or PREFETCH has started.
  void received(Op op);

 private:
  // What this device keeps of one micro-batch.
  struct Kept {
    Bytes for_input_grad{};
    Bytes for_weight_grad{};
    Bytes gradient{};             // that I has left for W
    Bytes input{};                // of the stage, for R
    int input_grad_readers = 0;   // ops here and messages that have yet to read for_input_grad
    int weight_grad_readers = 0;  // ops here and messages that have yet to read for_weight_grad
    int ops = 0;                  // here, still to come
    int input_readers = 0;        // R here and messages that have yet to read the input
    bool gradient_waits = false;  // an op here has read the output gradient, which is still there
    bool there = false;
  };

  enum class Reads : std::uint8_t { here, elsewhere };

  Kept& kept(Op op) { return kept_[{op.stage, op.microbatch}]; }
  int input_grad_ops(Op op) const;
  int weight_grad_ops(Op op) const;
  int readers_here(Op op) const { return input_grad_ops(op) + weight_grad_ops(op); }
  void keep(Op op, int other_readers, Reads reads);
  void keep_input(Op op, int readers);
  void drop_output_gradient(Op op, Kept& here);
  void release(Op op);

  const MemoryTables& tables_;
  int device_;
  HeldMemory& held_;
  std::map<std::pair<int, std::uint32_t>, Kept> kept_;  // by stage and micro-batch; in flight only
};

}  // namespace stageline
