// Runs F, I, W, B, R and U, and copies stashes to the host and back.
#include "tools/executor/run/stage_passes.hpp"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <utility>

#include "tools/executor/devices/device.hpp"
#include "tools/executor/run/micro_batches.hpp"
#include "tools/executor/run/stash_payload.hpp"
#include "tools/executor/tensors/memory_log.hpp"

namespace stageline::executor {
namespace {

using at::Tensor;
using LayerPass = void (*)(TensorModel& model, std::size_t layer, MicroBatch& batch);

// A pass over all layers of a stage, from the last to the first.
void descend(DeviceModel& here, int stage, MicroBatch& batch, LayerPass pass) {
  const std::vector<std::size_t>& layers = here.layers_of(stage);
  for (std::size_t i = layers.size(); i-- > 0;) pass(here.model, layers[i], batch);
}

void drop_outputs(MicroBatch& batch) {
  for (Tensor& output : batch.outputs) output.reset();
}

}  // namespace

StagePasses::StagePasses(const Job& job, int device, at::Device where, Exchange& exchange,
                         MessageHooks hooks)
    : job_(job),
      exchange_(exchange),
      here_(job, device, where),
      planned_(job, device),
      messages_(here_, exchange, std::move(hooks)),
      in_flight_(here_),
      sums_(here_, exchange, messages_),
      weights_(here_, exchange, messages_, planned_),
      reporter_(here_, exchange, weights_, planned_) {
  if (!job.plan && (here_.holds.front() || here_.holds.back())) draw_data();
  restart();
}

void StagePasses::draw_data() {
  const std::uint32_t distinct = distinct_micro_batches(job_);
  for (std::uint32_t m = 0; m < distinct; ++m) {
    data_.push_back(drawn_micro_batch(job_, here_.model, m));
  }
}

void StagePasses::restart() {
  messages_.drop_returned(false);
  in_flight_.clear();
  sums_.clear();
  weights_.restart();
}

std::int64_t StagePasses::optimizer_bytes() const {
  Tensors all;
  for (const LayerWeights& weights : here_.model.weights) {
    all.insert(all.end(), weights.state.begin(), weights.state.end());
  }
  return storage_bytes(all);
}

std::int64_t StagePasses::standing_bytes() const {
  Tensors all;
  const auto add = [&](const Tensors& some) { all.insert(all.end(), some.begin(), some.end()); };
  for (const LayerWeights& weights : here_.model.weights) add(weights.state);
  std::int64_t room = 0;
  for (int stage = 0; stage < job_.program.stages(); ++stage) {
    if (!here_.holds[as_size(stage)]) continue;
    if (!weights_.counts_versions(stage)) {
      for (const Tensors& layer : here_.values_of(stage)) add(layer);
    }
    if (!weights_.has_room_for_next(stage)) continue;
    room += weights_.bytes_of_values(stage);
  }
  for (const auto& of_stage : sums_.spare()) {
    for (const auto& sums : of_stage) {
      for (const Tensors& layer : sums) add(layer);
    }
  }
  return storage_bytes(all) + room;
}

std::uint32_t StagePasses::compute(Op op) {
  const c10::NoGradGuard plain;
  stash_change_ = {};
  weights_.gather(op.stage);
  if (op.kind == OpKind::update) return update(op);
  const std::int64_t before = job_.separate ? in_flight_.stash_bytes(op) : 0;
  weights_.receive(op.stage);
  weights_.await_planned(op);
  if (hands_over_to_host() && op.kind != OpKind::forward && in_flight_.is_prefetched(op))
    take_back(op);
  for (const Tensor& tensor : std::exchange(in_flight_.at(op).prefetched, {})) {
    keep_until_done(tensor);
  }
  switch (class_of(op.kind)) {
    case OpClass::forward:
      forward(op);
      break;
    case OpClass::recompute:
      recompute(op);
      break;
    case OpClass::backward:
      if (op.kind == OpKind::backward) backward(op);
      if (op.kind == OpKind::input_grad) input_grad(op);
      if (op.kind == OpKind::weight_grad) weight_grad(op);
      break;
    case OpClass::update:
    case OpClass::reduction:
    case OpClass::message:
    case OpClass::copy:
      break;  // not on the compute lane, or above
  }
  const bool by_forward = op.kind == OpKind::forward || keeps_versions(job_.program.settings);
  const std::uint32_t read = by_forward ? in_flight_.at(op).version : weights_.newest(op.stage);
  if (job_.separate) {
    note_stash(op, before + messages_.stash_came());
  } else {
    in_flight_.leave(op);
    if (hands_over_to_host() && op.kind == OpKind::forward && in_flight_.is_offloaded(op)) {
      hand_over(op);
    }
  }
  if (job_.plan) {
    planned_.note_pass(op.stage);
    weights_.drop_unneeded(op.stage);
  }
  return read;
}

// Lets the op leave its micro-batch, which may drop that.
void StagePasses::note_stash(Op op, std::int64_t before) {
  const std::int64_t with_op = in_flight_.stash_bytes(op);
  in_flight_.leave(op);
  const std::int64_t after = in_flight_.stash_bytes(op);
  if (op.kind != OpKind::forward && op.kind != OpKind::recompute) {
    stash_change_.at_end = after - before;
    return;
  }
  stash_change_.at_start = with_op - before;
  const bool sent = op.kind == OpKind::forward && messages_.sends_stash(op);
  (sent ? stash_change_.sent : stash_change_.at_end) = sent ? with_op - after : after - with_op;
}

void StagePasses::fill_data(Op op, InFlight& flight) const {
  const bool first = op.stage == 0;
  const bool last = op.stage + std::size_t{1} == here_.holds.size();
  if (job_.plan) {
    if (first || last) {
      job_.plan->data.fill(planned_.microbatch_of(op), here_.model, flight.tensors);
    }
  } else if (!data_.empty()) {
    const MicroBatch& data = data_[op.microbatch % data_.size()];
    flight.tensors.input = job_.separate && first ? data.input.clone() : data.input;
    flight.tensors.target = job_.separate && last ? data.target.clone() : data.target;
  }
}

void StagePasses::forward(Op op) {
  InFlight& flight = in_flight_.at(op);
  fill_data(op, flight);
  messages_.receive_inputs(op, flight);
  flight.version = weights_.version_for_forward(op);
  std::vector<Tensors> read = weights_.weights_for_forward(op, flight.version);
  if (keeps_versions(job_.program.settings) && here_.runs_backward(op.stage) &&
      (job_.plan || here_.backward_reads_weights(op.stage))) {
    flight.weights = read.empty() ? here_.values_of(op.stage) : read;
  }
  const bool recomputed = in_flight_.is_recomputed(op);
  if (recomputed) {
    for (const int edge : job_.graph.in[op.stage]) {
      for (const std::size_t layer : nth(here_.cut.crossing, edge)) {
        flight.inputs.push_back(flight.tensors.outputs[layer]);
      }
    }
    if (op.stage == 0) flight.inputs.push_back(flight.tensors.input);
  }
  {
    const WeightsInUse in_use(here_, op.stage, std::move(read));
    for (const std::size_t layer : here_.layers_of(op.stage)) {
      executor::forward(here_.model, layer, flight.tensors);
      if (recomputed) flight.tensors.stash[layer].clear();
    }
  }
  messages_.send_outputs(op, flight);
  if (op.stage + std::size_t{1} == here_.holds.size()) {
    const Tensor& loss = exchange_.losses[op.microbatch] = flight.tensors.outputs.back();
    if (job_.plan) job_.plan->report_loss(planned_.microbatch_of(op), loss.item<double>());
  }
  drop_outputs(flight.tensors);
  if (job_.plan) reporter_.after_forward(op);
}

void StagePasses::recompute(Op op) {
  InFlight& flight = in_flight_.at(op);
  std::size_t next = 0;
  for (const int edge : job_.graph.in[op.stage]) {
    for (const std::size_t layer : nth(here_.cut.crossing, edge)) {
      flight.tensors.outputs[layer] = flight.inputs[next++];
    }
  }
  flight.inputs.clear();
  const WeightsInUse in_use(here_, op.stage, flight.weights);
  flight.tensors.purpose = Purpose::again;
  for (const std::size_t layer : here_.layers_of(op.stage)) {
    executor::forward(here_.model, layer, flight.tensors);
  }
  drop_outputs(flight.tensors);
}

namespace {

// Gradients that nobody asks for.
std::vector<Tensors> no_sums(const DeviceModel& here, int stage) {
  std::vector<Tensors> sums;
  for (const std::size_t layer : here.layers_of(stage)) {
    sums.emplace_back(here.model.weights[layer].values.size());
  }
  return sums;
}

}  // namespace

// Whether the parts of I are parts of the samples. Then none leaves W what is inside the stage. In
// a training each part is of the whole I, whose bits `train/delayed` has.
bool StagePasses::divides_input_grad(int stage) const {
  const std::vector<std::size_t>& layers = here_.layers_of(stage);
  return !job_.plan && here_.place(stage).parts() > 1 &&
         std::all_of(layers.begin(), layers.end(),
                     [this](std::size_t layer) { return is_by_sample(here_.model, layer); });
}

void StagePasses::input_grad_of_part(Op op, InFlight& flight) {
  std::int64_t first = job_.training.batch;
  std::int64_t last = 0;
  for (const int edge : job_.graph.in[op.stage]) {
    for (const std::size_t layer : nth(here_.cut.crossing, edge)) {
      const StageMessages::Share share = messages_.share_of(op, layer);
      first = std::min(first, share.begin / share.of_sample);
      last = std::max(last, (share.end + share.of_sample - 1) / share.of_sample);
    }
  }
  // One at least, also of a share below an element.
  first = std::min<std::int64_t>(first, job_.training.batch - 1);
  last = std::max(last, first + 1);
  MicroBatch part = samples_of(flight.tensors, here_.layers_of(op.stage), job_.training.batch,
                               first, last - first);
  {
    const WeightsInUse weights(here_, op.stage, weights_.weights_for_backward(op, flight));
    std::vector<Tensors> dropped = no_sums(here_, op.stage);
    const SumsInUse sums(here_, op.stage, dropped);
    descend(here_, op.stage, part, executor::input_grad_alone);
  }
  messages_.send_gradient(op, part, first);
}

void StagePasses::input_grad(Op op) {
  InFlight& flight = in_flight_.at(op);
  messages_.receive_stash(op, flight);
  messages_.receive_gradient(op, flight);
  if (divides_input_grad(op.stage)) return input_grad_of_part(op, flight);
  if (!std::exchange(flight.input_grad_done, true)) {
    const WeightsInUse weights(here_, op.stage, weights_.weights_for_backward(op, flight));
    // Norms add to the gradients of their weights in I. Where W runs by itself it adds them, and
    // those of I are dropped.
    const bool counts = here_.has_role(op.stage, OpKind::weight_grad) && !flight.weight_grad_done;
    std::vector<Tensors> dropped = no_sums(here_, op.stage);
    const SumsInUse sums(here_, op.stage, counts ? sums_.of(op) : dropped);
    descend(here_, op.stage, flight.tensors, executor::input_grad);
  }
  messages_.send_gradient(op, flight.tensors);
}

void StagePasses::weight_grad(Op op) {
  InFlight& flight = in_flight_.at(op);
  std::vector<Tensors>& to = sums_.of(op);
  if (flight.input_grad_done) {
    const SumsInUse sums(here_, op.stage, to);
    descend(here_, op.stage, flight.tensors, executor::weight_grad);
  } else {
    // I is on another device, still to come, or of parts: the gradients inside the stage are
    // computed here, too; that at its input is not, but in a training, for the same bits as in
    // `train/delayed`.
    messages_.receive_stash(op, flight);
    messages_.receive_gradient(op, flight);
    const WeightsInUse weights(here_, op.stage, weights_.weights_for_backward(op, flight));
    const SumsInUse sums(here_, op.stage, to);
    // What I has yet to read stays.
    MicroBatch once = flight.ops_left > 1
                          ? flight.tensors
                          : std::exchange(flight.tensors, empty_micro_batch(here_.model));
    const std::vector<std::size_t>& layers = here_.layers_of(op.stage);
    for (std::size_t i = layers.size(); i-- > 0;) {
      const bool alone = i == 0 && !job_.plan;
      (alone ? executor::weight_grad_alone : executor::backward)(here_.model, layers[i], once);
    }
  }
  flight.weight_grad_done = true;
  sums_.note_weight_grad(op);
}

void StagePasses::backward(Op op) {
  InFlight& flight = in_flight_.at(op);
  messages_.receive_stash(op, flight);
  messages_.receive_gradient(op, flight);
  {
    const WeightsInUse weights(here_, op.stage, weights_.weights_for_backward(op, flight));
    const SumsInUse sums(here_, op.stage, sums_.of(op));
    descend(here_, op.stage, flight.tensors, executor::backward);
  }
  messages_.send_gradient(op, flight.tensors);
  sums_.note_weight_grad(op);
}

std::uint32_t StagePasses::update(Op op) {
  const std::uint32_t made = weights_.update(op, sums_);
  if (job_.plan) {
    reporter_.after_update(op);
    weights_.drop_unneeded(op.stage);
  }
  return made;
}

// ---- copy lanes

// The host's memory is that of a CPU's lanes: there what goes to it is handed over, as messages
// are. Where memory is counted, and between processes, copies are made.
bool StagePasses::hands_over_to_host() const {
  return here_.where.is_cpu() && !job_.separate && exchange_.in_one_process && !job_.imitated;
}

void StagePasses::hand_over(Op op) {
  exchange_.host[op.stage][op.microbatch] =
      pack_stash(in_flight_.at(op).tensors, here_.layers_of(op.stage), in_flight_.at(op).version);
  drop_offloaded(op);
}

void StagePasses::take_back(Op op) {
  Tensors& host = exchange_.host[op.stage][op.microbatch];
  if (host.empty()) return;  // for an earlier op
  InFlight& flight = in_flight_.at(op);
  flight.version = unpack_stash(std::exchange(host, {}), here_.layers_of(op.stage), flight.tensors);
}

void StagePasses::offload(Op op) {
  InFlight& flight = in_flight_.at(op);
  const std::vector<std::size_t>& layers = here_.layers_of(op.stage);
  const bool pinned = !here_.where.is_cpu();
  {
    const auto of_host = MemoryLog::look_away();
    exchange_.host[op.stage][op.microbatch] =
        copied(pack_stash(flight.tensors, layers, flight.version), [&](const Tensor& tensor) {
          Tensor there =
              at::empty_like(tensor, tensor.options().device(at::kCPU).pinned_memory(pinned));
          return there.copy_(tensor, pinned);
        });
  }
  synchronize(here_.where);
}

void StagePasses::drop_offloaded(Op op) {
  InFlight& flight = in_flight_.at(op);
  for (const std::size_t layer : here_.layers_of(op.stage)) flight.tensors.stash[layer].clear();
  flight.tensors.input.reset();  // the stash has it
  flight.tensors.target.reset();
  in_flight_.leave(op);
}

void StagePasses::prefetch(Op op) {
  InFlight& flight = in_flight_.at(op);
  const bool on_cpu = here_.where.is_cpu();
  Tensors host = std::exchange(exchange_.host[op.stage][op.microbatch], {});
  Tensors here = copied(host, [&](const Tensor& tensor) {
    return at::empty_like(tensor, tensor.options().device(here_.where)).copy_(tensor, !on_cpu);
  });
  here[0] = host[0];  // the description, which the host reads
  flight.version = unpack_stash(here, here_.layers_of(op.stage), flight.tensors);
  if (!on_cpu) flight.prefetched = std::move(here);
}

}  // namespace stageline::executor
