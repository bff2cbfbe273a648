// The micro-batches in flight on one device: tensors and stashes between a micro-batch's first op
// there and its last.
//
// Includes ATen: for the files of this folder only.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tools/executor/run/device_model.hpp"

namespace stageline::executor {

/// A micro-batch in a stage on this device.
struct InFlight {
  MicroBatch tensors;
  std::vector<Tensors> weights;  // by layer of the stage: what its forward read, if kept
  std::uint32_t version = 0;     // of these weights
  Tensors inputs;                // kept by a recomputed stage
  bool has_gradient = false;     // at the stage's outputs
  bool input_grad_done = false;
  bool weight_grad_done = false;
  int ops_left = 0;    // that use the stash on this device
  Tensors prefetched;  // brought back by the copy lane, and not read yet
};

/// By stage and micro-batch. A slot is used by one thread at a time, in the order of the program.
class InFlightTable {
 public:
  explicit InFlightTable(const DeviceModel& here);

  /// Made at its first use.
  InFlight& at(int stage, std::uint32_t microbatch);
  InFlight& at(Op op) { return at(op.stage, op.microbatch); }
  /// After each op that uses the stash: the last one drops the micro-batch.
  void leave(Op op);
  void clear();

  /// Whether this device recomputes the forward of the op's micro-batch.
  bool is_recomputed(Op op) const { return recomputed_[op.stage][op.microbatch]; }
  /// Whether this device copies the stash of the op's micro-batch to the host; back from there.
  bool is_offloaded(Op op) const { return copied_[op.stage][op.microbatch].out; }
  bool is_prefetched(Op op) const { return copied_[op.stage][op.microbatch].in; }
  /// Bytes of the stash of the op's micro-batch, every storage once, with the gradients of keys and
  /// values that wait for slices of its sequence; 0 where there is none.
  std::int64_t stash_bytes(Op op) const;

 private:
  /// What the slices of the micro-batch's sequence share; null where sequences are whole.
  std::shared_ptr<std::vector<SlicedAttention>> slices_of(int stage, std::uint32_t microbatch);

  std::int64_t waiting_gradients(Op op) const;

  const DeviceModel& here_;
  std::vector<std::vector<std::unique_ptr<InFlight>>> slots_;  // stages × micro-batches
  std::vector<std::vector<std::uint8_t>> ops_left_;            // the same: at the start
  std::vector<std::vector<bool>> recomputed_;                  // the same
  // Stages × sequences: lives as long as a slice of it is in flight.
  std::vector<std::vector<std::weak_ptr<std::vector<SlicedAttention>>>> sliced_;
  struct Copied {
    bool out = false;
    bool in = false;
  };
  std::vector<std::vector<Copied>> copied_;  // the same
};

}  // namespace stageline::executor
