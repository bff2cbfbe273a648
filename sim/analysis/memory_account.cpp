// The account of one device's memory, op by op.
#include "sim/analysis/memory_account.hpp"

#include <algorithm>

namespace stageline {
namespace {

bool has(const std::vector<int>& devices, int device) {
  return std::find(devices.begin(), devices.end(), device) != devices.end();
}

}  // namespace

DeviceAccount::DeviceAccount(const MemoryTables& tables, int device, Curves curves,
                             MemoryProfile& profile)
    : tables_(tables),
      device_(device),
      held_(profile, device, curves),
      split_(tables, device, held_),
      half_done_(profile.stage.size()) {
  for (const MemoryTables::Stage& stage : tables.stages()) add_state(stage);
}

void DeviceAccount::add_state(const MemoryTables::Stage& stage) {
  const StageCosts& costs = *stage.costs;
  if (tables_.program().settings.correction == moving_average &&
      has(stage.place->homes(Role::weight_grad), device_)) {
    held_.add(MemoryKind::optimizer, costs.gradients);
  }
  if (stage.split) return add_split_state(stage);
  if (!has(stage.place->replicas, device_)) return;
  held_.add(MemoryKind::weights, costs.weights);
  held_.add(MemoryKind::gradients, costs.gradients);
  held_.add(MemoryKind::optimizer, costs.optimizer_state);
}

// Every device of the stage has a copy of the weights, and room for new ones if they arrive by
// message; gradients and optimizer state are where W is.
void DeviceAccount::add_split_state(const MemoryTables::Stage& stage) {
  const StagePlace& place = *stage.place;
  const StageCosts& costs = *stage.costs;
  if (place.device(Role::weight_grad) == device_) {
    held_.add(MemoryKind::weights, costs.weights);
    held_.add(MemoryKind::gradients, costs.gradients);
    held_.add(MemoryKind::optimizer, costs.optimizer_state);
  } else if (place.device(Role::forward) == device_ || has(place.input_grad, device_)) {
    held_.add(MemoryKind::weights,
              costs.weights * (tables_.program().settings.weights_transfer ? 2 : 1));
    const bool averages = tables_.program().settings.correction == moving_average;
    if (averages && has(place.input_grad, device_)) held_.add(MemoryKind::optimizer, costs.weights);
  }
}

void DeviceAccount::drop_stash(Op op) {
  const MemoryTables::Stage& stage = tables_.stage(op);
  held_.drop_stash(stage.stash, stage.stash_input_grad);
  held_.hold(op.stage, -1);
}

void DeviceAccount::started(Op op) {
  const MemoryTables::Stage& stage = tables_.stage(op);
  switch (class_of(op.kind)) {
    case OpClass::forward:
      return forward_started(op);
    case OpClass::recompute:
      add_stash(op);
      if (stage.split) return split_.recompute_started(op);
      return held_.drop_boundary(stage.costs->boundary);
    case OpClass::backward:
      if (stage.split) return split_.backward_started(op);
      if (tables_.takes_output_gradient(op)) drop_messages(op, Cargo::gradient, Side::receives);
      return;
    case OpClass::update:
    case OpClass::reduction:
    case OpClass::message:
    case OpClass::copy:
      return;
  }
}

void DeviceAccount::forward_started(Op op) {
  const MemoryTables::Stage& stage = tables_.stage(op);
  drop_messages(op, Cargo::activation, Side::receives);
  if (tables_.is_recomputed(op)) {
    held_.add_boundary(stage.costs->boundary);
  } else {
    held_.add_stash(stage.stash, stage.stash_input_grad);
    held_.hold(op.stage, +1);
  }
  if (stage.split) split_.forward_started(op);
}

// Where it is rebuilt, received or copied in.
void DeviceAccount::add_stash(Op op) {
  const MemoryTables::Stage& stage = tables_.stage(op);
  held_.add_stash(stage.stash, stage.stash_input_grad);
  held_.hold(op.stage, +1);
}

// The stash, or the input from which R will make it, comes by a message or from the host.
void DeviceAccount::add_arrived(Op op) {
  const MemoryTables::Stage& stage = tables_.stage(op);
  if (tables_.is_recomputed(op)) {
    held_.add_boundary(stage.costs->boundary);
  } else {
    add_stash(op);
  }
  if (stage.split) split_.received(op);
}

void DeviceAccount::ended(Op op) {
  switch (class_of(op.kind)) {
    case OpClass::forward:
      return add_messages(op, Cargo::activation, Side::sends);
    case OpClass::backward:
      return backward_ended(op);
    case OpClass::recompute:
    case OpClass::update:
    case OpClass::reduction:
    case OpClass::message:
    case OpClass::copy:
      return;
  }
}

void DeviceAccount::backward_ended(Op op) {
  const MemoryTables::Stage& stage = tables_.stage(op);
  if (stage.split) {
    split_.backward_ended(op);
  } else if (op.kind == OpKind::input_grad) {
    held_.drop_stash(stage.stash_input_grad, stage.stash_input_grad);
    if (!other_half_ended(op)) held_.add_gradients(stage.costs->stash_gradient);
  } else if (op.kind == OpKind::weight_grad && tables_.has_input_grad(op)) {
    held_.drop_stash(stage.costs->stash_weight_grad, Bytes{});
    if (other_half_ended(op)) held_.drop_gradients(stage.costs->stash_gradient);
  } else {
    drop_stash(op);
  }
  if (op.kind != OpKind::weight_grad || !tables_.has_input_grad(op)) {
    held_.add_gradients(stage.costs->earlier_gradients);
  }
  if (op.kind != OpKind::weight_grad) add_messages(op, Cargo::gradient, Side::sends);
}

// Whether the other one of I and W had ended before. The stash is no longer held then.
bool DeviceAccount::other_half_ended(Op op) {
  std::vector<bool>& half_done = half_done_[op.stage];
  if (half_done.empty()) half_done.resize(tables_.program().total_microbatches());
  const bool both = half_done[op.microbatch];
  if (both) held_.hold(op.stage, -1);
  half_done[op.microbatch] = true;
  return both;
}

void DeviceAccount::sent(Op op) {
  if (op.kind == OpKind::reduce_grad || op.kind == OpKind::send_weights) return;
  if (op.kind == OpKind::send_stash) return split_.read_by_message(op);
  held_.drop(MemoryKind::buffers, tables_.sent_bytes(op));
}

void DeviceAccount::received(Op op) {
  if (op.kind == OpKind::receive_weights) return;  // add_split_state() has made room for them
  if (op.kind == OpKind::receive_stash) return add_arrived(op);
  held_.add(MemoryKind::buffers, tables_.bytes(op));
}

void DeviceAccount::copied_out(Op op) {
  if (tables_.stage(op).split) return split_.read_by_message(op);
  if (tables_.is_recomputed(op)) return held_.drop_boundary(tables_.stage(op).costs->boundary);
  drop_stash(op);
}

}  // namespace stageline
