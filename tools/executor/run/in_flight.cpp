// Makes and drops micro-batches in flight.
#include "tools/executor/run/in_flight.hpp"

#include "tools/executor/run/micro_batches.hpp"
#include "tools/executor/run/stash_payload.hpp"

namespace stageline::executor {
namespace {

// Ops that use the stash of their micro-batch. A prefetch brings it back for an op that does.
bool uses_stash(OpKind kind) {
  switch (class_of(kind)) {
    case OpClass::forward:
    case OpClass::backward:
    case OpClass::recompute:
      return true;
    case OpClass::copy:
      return kind == OpKind::offload;
    case OpClass::update:
    case OpClass::reduction:
    case OpClass::message:
      return false;
  }
  return false;
}

}  // namespace

InFlightTable::InFlightTable(const DeviceModel& here) : here_(here) {
  const Program& program = here.job.program;
  const auto stages = as_size(program.stages());
  const std::size_t total = program.total_microbatches();
  ops_left_.assign(stages, std::vector<std::uint8_t>(total));
  recomputed_.assign(stages, std::vector<bool>(total));
  copied_.assign(stages, std::vector<Copied>(total));
  for (const Op op : nth(program.ops, here.device)) {
    if (op.kind == OpKind::recompute) recomputed_[op.stage][op.microbatch] = true;
    if (op.kind == OpKind::offload) copied_[op.stage][op.microbatch].out = true;
    if (op.kind == OpKind::prefetch) copied_[op.stage][op.microbatch].in = true;
    if (uses_stash(op.kind)) ++ops_left_[op.stage][op.microbatch];
  }
  sliced_.resize(stages);
  for (auto& of_stage : sliced_) of_stage.resize(total);
  slots_.resize(stages);
  for (auto& of_stage : slots_) of_stage.resize(total);
}

InFlight& InFlightTable::at(int stage, std::uint32_t microbatch) {
  auto& slot = nth(slots_, stage)[microbatch];
  if (!slot) {
    slot = std::make_unique<InFlight>();
    slot->tensors = empty_micro_batch(here_.model);
    slot->ops_left = nth(ops_left_, stage)[microbatch];
    slot->tensors.loss_weight = loss_weight_of(here_.job, microbatch);
    slot->tensors.tokens = tokens_of(here_.job, microbatch);
    slot->tensors.slices = slices_of(stage, microbatch);
  }
  return *slot;
}

std::shared_ptr<std::vector<SlicedAttention>> InFlightTable::slices_of(int stage,
                                                                       std::uint32_t microbatch) {
  const auto slices = static_cast<std::uint32_t>(here_.job.program.settings.sequence_chunks);
  if (slices == 1) return nullptr;
  auto& known = nth(sliced_, stage)[microbatch / slices];
  std::shared_ptr<std::vector<SlicedAttention>> sequence = known.lock();
  if (!sequence) {
    sequence = std::make_shared<std::vector<SlicedAttention>>(here_.model.layers.size());
    known = sequence;
  }
  return sequence;
}

void InFlightTable::leave(Op op) {
  auto& slot = slots_[op.stage][op.microbatch];
  if (--slot->ops_left == 0) slot.reset();
}

void InFlightTable::clear() {
  for (auto& of_stage : slots_) {
    for (auto& slot : of_stage) slot.reset();
  }
}

std::int64_t InFlightTable::stash_bytes(Op op) const {
  const std::int64_t waiting = waiting_gradients(op);
  const auto& flight = slots_[op.stage][op.microbatch];
  if (!flight) return waiting;
  Tensors held = flight->inputs;
  for (const auto& layer : flight->tensors.stash) {
    for (const OpStash& of_op : layer) {
      for (const KeptTensor& kept : of_op.kept) held.push_back(kept.tensor);
      held.push_back(of_op.gradient);
    }
  }
  // A layer that reads the data has no I: the gradient at its output waits for its W.
  for (std::size_t l = 0; l < here_.model.layers.size(); ++l) {
    if (here_.model.layers[l].input < 0) held.push_back(flight->tensors.gradients[l]);
  }
  return storage_bytes(held) + waiting;
}

std::int64_t InFlightTable::waiting_gradients(Op op) const {
  const auto slices = static_cast<std::uint32_t>(here_.job.program.settings.sequence_chunks);
  const auto sequence = sliced_[op.stage][op.microbatch / slices].lock();
  if (!sequence) return 0;
  Tensors held;
  for (const SlicedAttention& layer : *sequence) {
    held.insert(held.end(), layer.key_gradients.begin(), layer.key_gradients.end());
    held.insert(held.end(), layer.value_gradients.begin(), layer.value_gradients.end());
  }
  return storage_bytes(held);
}

}  // namespace stageline::executor
