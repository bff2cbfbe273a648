// The account of stashes of stages with split roles.
#include "sim/analysis/split_stash.hpp"

#include <algorithm>
#include <utility>

namespace stageline {

// Ops on this device that read the stash: parts of I, or B.
int SplitStash::input_grad_ops(Op op) const {
  const MemoryTables::Stage& stage = tables_.stage(op);
  if (!tables_.has_input_grad(op) && !stage.whole) return 0;
  const std::vector<int>& homes = stage.place->homes(Role::input_grad);
  return static_cast<int>(std::count(homes.begin(), homes.end(), device_));
}

// The same of W, or B.
int SplitStash::weight_grad_ops(Op op) const {
  return tables_.stage(op).place->device(Role::weight_grad) == device_ ? 1 : 0;
}

void SplitStash::keep(Op op, int other_readers, Reads reads) {
  const bool here_too = reads == Reads::here;
  const StageCosts& costs = *tables_.stage(op).costs;
  Kept& here = kept(op);
  here.there = true;
  here.for_input_grad = costs.stash_input_grad;
  here.for_weight_grad = costs.stash_weight_grad;
  here.input_grad_readers += (here_too ? input_grad_ops(op) : 0) + other_readers;
  here.weight_grad_readers += (here_too ? weight_grad_ops(op) : 0) + other_readers;
  here.ops += here_too ? readers_here(op) : 0;
}

void SplitStash::keep_input(Op op, int readers) {
  Kept& here = kept(op);
  here.input = tables_.stage(op).costs->boundary;
  here.input_readers += readers;
}

void SplitStash::release(Op op) {
  const auto found = kept_.find({op.stage, op.microbatch});
  Kept& here = found->second;
  if (here.input_readers == 0) {
    held_.drop_boundary(here.input);
    here.input = Bytes{};
  }
  const bool done = here.input_grad_readers == 0 && here.weight_grad_readers == 0;
  const bool whole = tables_.stage(op).place->weight_grad_apart();
  if (here.there && (whole ? done : here.input_grad_readers == 0)) {
    held_.drop_stash(here.for_input_grad, here.for_input_grad);
    here.for_input_grad = Bytes{};
  }
  if (here.there && (whole ? done : here.weight_grad_readers == 0)) {
    held_.drop_stash(here.for_weight_grad, Bytes{});
    held_.drop_gradients(here.gradient);
    here.for_weight_grad = here.gradient = Bytes{};
  }
  if (!done) return;
  if (here.there) held_.hold(op.stage, -1);
  here.there = false;
  if (here.input_readers == 0) kept_.erase(found);
}

// What is offloaded comes back by PREFETCH for the ops here, too.
void SplitStash::forward_started(Op op) {
  const MemoryTables::Stage& stage = tables_.stage(op);
  const int others = stage.offloaded ? 1 : tables_.stash_sends(op);
  if (tables_.is_recomputed(op)) {
    keep_input(op, others + (!stage.offloaded && readers_here(op) > 0 ? 1 : 0));
  } else {
    keep(op, others, stage.offloaded ? Reads::elsewhere : Reads::here);
  }
  release(op);
}

void SplitStash::recompute_started(Op op) {
  --kept(op).input_readers;
  keep(op, 0, Reads::here);
  release(op);
}

// Where I and W are apart, the output gradient waits for the last op here, and a W that is that
// takes it with it.
void SplitStash::backward_started(Op op) {
  Kept& here = kept(op);
  const bool apart = tables_.stage(op).place->weight_grad_apart();
  const bool independent = tables_.program().independent_w[op.stage];
  if (tables_.takes_output_gradient(op) || independent) here.gradient_waits = true;
  if (!apart || (here.ops == 1 && op.kind == OpKind::weight_grad)) drop_output_gradient(op, here);
}

void SplitStash::drop_output_gradient(Op op, Kept& here) {
  if (!std::exchange(here.gradient_waits, false)) return;
  held_.drop(MemoryKind::buffers, tables_.messages(op, Cargo::gradient, Side::receives, device_));
}

void SplitStash::backward_ended(Op op) {
  Kept& here = kept(op);
  const bool apart = tables_.stage(op).place->weight_grad_apart();
  if (op.kind != OpKind::weight_grad) --here.input_grad_readers;
  if (op.kind != OpKind::input_grad) --here.weight_grad_readers;
  if (--here.ops == 0 && apart) drop_output_gradient(op, here);
  if (!apart && op.kind == OpKind::input_grad && here.weight_grad_readers > 0) {
    here.gradient = tables_.stage(op).costs->stash_gradient;
    held_.add_gradients(here.gradient);
  }
  release(op);
}

void SplitStash::read_by_message(Op op) {
  Kept& here = kept(op);
  if (tables_.is_recomputed(op)) {
    --here.input_readers;
  } else {
    --here.input_grad_readers;
    --here.weight_grad_readers;
  }
  release(op);
}

void SplitStash::received(Op op) {
  if (tables_.is_recomputed(op)) return keep_input(op, 1);
  keep(op, 0, Reads::here);
}

}  // namespace stageline
