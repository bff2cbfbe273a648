#include "tools/executor/run/stage_tensors.hpp"

#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "sim/errors.hpp"
#include "sim/index.hpp"
#include "tools/executor/devices/device.hpp"
#include "tools/executor/run/stash_parcel.hpp"
#include "tools/executor/tensors/memory_log.hpp"

namespace stageline {
namespace {

using at::Tensor;

bool keeps_weights(const Program& program) {
  if (program.correction == moving_average) return false;  // it rebuilds them
  switch (program.weights) {
    case WeightRule::stash:
    case WeightRule::vertical_sync:
    case WeightRule::double_buffer:
      return true;
    case WeightRule::flush:
    case WeightRule::latest:
      return false;
  }
  return false;
}

std::vector<bool> layers_held(const Job& job, const std::vector<bool>& stages) {
  std::vector<bool> wanted;
  for (const int stage : job.partition.stage_of) {
    wanted.push_back(nth(stages, stage));
  }
  return wanted;
}

std::vector<bool> stages_on(const Job& job, int device) {
  std::vector<bool> here(as_size(job.program.stages()));
  for (const Op op : nth(job.program.ops, device)) {
    if (lane_of(op.kind) == LaneKind::compute) here[op.stage] = true;
  }
  return here;
}

}  // namespace

class StageTensors::Reading {
 public:
  /// By layer of the stage. Empty: the newest, which are there.
  Reading(StageTensors& tensors, int stage, std::vector<Tensors> weights)
      : tensors_(tensors), stage_(stage), weights_(std::move(weights)) {
    swap();
  }
  ~Reading() { swap(); }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

 private:
  void swap() {
    const auto& layers = nth(tensors_.cut_.layers, stage_);
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      std::swap(tensors_.model_.weights[layers[i]].values, weights_[i]);
    }
  }
  StageTensors& tensors_;
  int stage_;
  std::vector<Tensors> weights_;
};

StageTensors::StageTensors(const Job& job, int device, at::Device where, Exchange& exchange,
                           Mail mail)
    : job_(job),
      device_(device),
      where_(where),
      exchange_(exchange),
      mail_(std::move(mail)),
      holds_(stages_on(job, device)),
      model_(tensor_model(job.training.shape, job.training.optimizer,
                          at::TensorOptions(job.training.dtype).device(where), job.training.seed,
                          layers_held(job, holds_))),
      cut_(cut_of(model_, job.partition, job.program.edges)),
      corrections_(parse_corrections(job.program.correction)) {
  const Program& program = job.program;
  const auto stages = as_size(program.stages());
  const std::size_t total = program.total_microbatches();
  if ((holds_.front() || holds_.back()) && !job.course) {
    const auto distinct = std::min<std::size_t>(total, as_size(std::max(job.training.distinct, 1)));
    for (std::size_t m = 0; m < distinct; ++m) {
      data_.push_back(random_micro_batch(model_, job.training.batch, job.training.seed + 1 + m));
    }
  }
  in_flight_.resize(stages);
  ops_left_.assign(stages, std::vector<std::uint8_t>(total));
  recomputed_.assign(stages, std::vector<bool>(total));
  newest_.resize(stages);
  past_.resize(stages);
  sums_.resize(stages);
  summed_.resize(stages);
  spare_.resize(stages);
  base_.resize(stages);
  memory_.resize(stages);
  oldest_read_.resize(stages);
  passes_done_.resize(stages);
  for (std::size_t s = 0; s < stages; ++s) memory_[s].resize(layers_of(static_cast<int>(s)));
  if (job.course) set_up_course();
  for (const Op op : nth(program.ops, device)) {
    switch (op.kind) {
      case OpKind::recompute:
        recomputed_[op.stage][op.microbatch] = true;
        [[fallthrough]];
      case OpKind::forward:
      case OpKind::input_grad:
      case OpKind::weight_grad:
      case OpKind::backward:
      case OpKind::offload:
        ++ops_left_[op.stage][op.microbatch];
        break;
      case OpKind::update:
      case OpKind::reduce_grad:
      case OpKind::send_forward:
      case OpKind::receive_forward:
      case OpKind::send_backward:
      case OpKind::receive_backward:
      case OpKind::prefetch:
      case OpKind::send_stash:
      case OpKind::receive_stash:
      case OpKind::send_weights:
      case OpKind::receive_weights:
        break;
    }
  }
  for (std::size_t s = 0; s < stages; ++s) {
    in_flight_[s].resize(total);
    // What W adds to is there from the beginning, as an optimizer that zeroes it would have it.
    if (has_role(static_cast<int>(s), OpKind::weight_grad)) {
      std::vector<Tensors> fresh(layers_of(static_cast<int>(s)));
      for (std::size_t i = 0; i < fresh.size(); ++i) {
        for (const Tensor& value : model_.weights[cut_.layers[s][i]].values) {
          fresh[i].push_back(at::zeros_like(value));
        }
      }
      spare_[s].push_back(std::move(fresh));
    }
  }
  restart();
}

bool StageTensors::has_role(int stage, OpKind kind) const {
  const auto& ops = nth(job_.program.ops, device_);
  return std::any_of(ops.begin(), ops.end(), [&](Op op) {
    const bool both =
        op.kind == OpKind::backward && (kind == OpKind::weight_grad || kind == OpKind::input_grad);
    return op.stage == stage && (op.kind == kind || both);
  });
}

void StageTensors::restart() {
  drop_returned(false);
  for (std::size_t s = 0; s < in_flight_.size(); ++s) {
    for (auto& flight : in_flight_[s]) flight.reset();
    newest_[s] = base_[s];
    if (!job_.course) {
      for (Tensors& layer : memory_[s]) layer.clear();
      past_[s].clear();
    }
    sums_[s].clear();
    summed_[s].clear();
    if (!job_.program.weights_transfer && has_role(static_cast<int>(s), OpKind::update)) {
      SharedWeights& shared = *exchange_.weights[s];
      const std::lock_guard lock(shared.mutex);
      shared.versions.clear();
      shared.versions[newest_[s]] = newest_version(static_cast<int>(s));
    }
  }
}

std::int64_t StageTensors::stash_bytes() const {
  const std::lock_guard lock(copies_);
  std::int64_t sum = 0;
  for (const auto& of_stage : in_flight_) {
    for (const auto& flight : of_stage) {
      if (!flight) continue;
      Tensors held = flight->inputs;
      for (const auto& layer : flight->tensors.stash) {
        for (const OpStash& op : layer) {
          for (const Kept& kept : op.kept) held.push_back(kept.tensor);
          held.push_back(op.gradient);
        }
      }
      // A layer that reads the data has no I: the gradient at its output waits for its W.
      for (std::size_t l = 0; l < model_.layers.size(); ++l) {
        if (model_.layers[l].input < 0) held.push_back(flight->tensors.gradients[l]);
      }
      sum += storage_bytes(held);
    }
  }
  return sum;
}

std::int64_t StageTensors::standing_bytes() const {
  Tensors all;
  const auto add = [&](const Tensors& some) { all.insert(all.end(), some.begin(), some.end()); };
  for (const LayerWeights& weights : model_.weights) {
    add(weights.values);
    add(weights.state);
  }
  for (const auto& of_stage : spare_) {
    for (const auto& sums : of_stage) {
      for (const Tensors& layer : sums) add(layer);
    }
  }
  return storage_bytes(all);
}

std::uint32_t StageTensors::compute(Op op) {
  const c10::NoGradGuard plain;
  if (op.kind == OpKind::update) return update(op);
  take_in_weights(op.stage);
  if (job_.course) await_version(op);
  for (const Tensor& tensor : std::exchange(in_flight(op.stage, op.microbatch).prefetched, {})) {
    keep_until_done(tensor);
  }
  switch (op.kind) {
    case OpKind::forward:
      forward(op);
      break;
    case OpKind::recompute:
      recompute(op);
      break;
    case OpKind::input_grad:
      input_grad(op);
      break;
    case OpKind::weight_grad:
      weight_grad(op);
      break;
    case OpKind::backward:
      backward(op);
      break;
    case OpKind::update:
    case OpKind::reduce_grad:
    case OpKind::send_forward:
    case OpKind::receive_forward:
    case OpKind::send_backward:
    case OpKind::receive_backward:
    case OpKind::offload:
    case OpKind::prefetch:
    case OpKind::send_stash:
    case OpKind::receive_stash:
    case OpKind::send_weights:
    case OpKind::receive_weights:
      break;  // not compute
  }
  const InFlight& flight = in_flight(op.stage, op.microbatch);
  const bool reads_forward = op.kind == OpKind::forward || keeps_weights(job_.program);
  const std::uint32_t read = reads_forward ? flight.version : newest_[op.stage];
  leave(op);
  if (job_.course) {
    ++passes_done_[op.stage];
    drop_old_versions(op.stage);
  }
  return read;
}

InFlight& StageTensors::in_flight(int stage, std::uint32_t microbatch) {
  auto& slot = nth(in_flight_, stage)[microbatch];
  if (!slot) {
    slot = std::make_unique<InFlight>();
    slot->tensors = empty_micro_batch(model_);
    slot->ops_left = nth(ops_left_, stage)[microbatch];
    if (updates_by_step(job_.program.weights)) {
      slot->tensors.loss_weight = 1.0 / job_.program.microbatches;
    }
  }
  return *slot;
}

void StageTensors::leave(Op op) {
  auto& slot = in_flight_[op.stage][op.microbatch];
  if (--slot->ops_left == 0) slot.reset();
}

Tensors StageTensors::take(Cargo cargo, int wire_number, std::uint32_t number) {
  Tensors taken = std::exchange(exchange_.parcels.at(cargo, wire_number, number), {});
  if (!job_.separate) {
    for (Tensor& tensor : taken) tensor = for_use_here(tensor);
    return taken;
  }
  Tensors mine = copied(taken, [this](const Tensor& tensor) {
    const Tensor here = for_use_here(tensor);
    return here.is_alias_of(tensor) ? here.clone() : here;
  });
  const Mail::Moment through = mail_.took(cargo, wire_number, number, storage_bytes(mine));
  const Ends ends = ends_of(job_.program.placement, wire(job_.graph, cargo, wire_number), number);
  Exchange::Returned& back = *nth(exchange_.returned, ends.from);
  const std::lock_guard lock(back.mutex);
  for (Tensor& tensor : taken) back.tensors.push_back({std::move(tensor), through});
  return mine;
}

// A tensor that another lane allocated. One on another GPU is copied, and has been when this
// returns.
Tensor StageTensors::for_use_here(const Tensor& made_elsewhere) const {
  if (!made_elsewhere.defined() || made_elsewhere.device().is_cpu()) return made_elsewhere;
  if (made_elsewhere.device() == where_) {
    keep_until_done(made_elsewhere);
    return made_elsewhere;
  }
  Tensor mine = made_elsewhere.to(where_);
  synchronize(where_);
  return mine;
}

void StageTensors::drop_returned(bool counted) {
  Exchange::Returned& back = *nth(exchange_.returned, device_);
  std::vector<Exchange::Sent> dropped;
  {
    const std::lock_guard lock(back.mutex);
    std::swap(dropped, back.tensors);
  }
  for (Exchange::Sent& one : dropped) {
    // What a stash holds too is freed with that: its backward comes later than the receiver's op.
    const bool last = one.tensor.defined() && one.tensor.use_count() == 1 &&
                      one.tensor.storage().use_count() == 1;
    const auto bytes = last ? static_cast<std::int64_t>(one.tensor.storage().nbytes()) : 0;
    one.tensor.reset();
    if (counted && last) mail_.freed(one.through, bytes);
  }
}

// ---- messages

void StageTensors::receive_inputs(Op op, InFlight& flight) {
  for (const int w : nth(job_.graph.receives, Cargo::activation)[op.stage]) {
    const auto edge = as_size(wire(job_.graph, Cargo::activation, w).edge);
    const Tensors came = take(Cargo::activation, w, op.microbatch);
    for (std::size_t i = 0; i < came.size(); ++i) {
      flight.tensors.outputs[cut_.crossing[edge][i]] = came[i];
    }
  }
}

void StageTensors::send_outputs(Op op, InFlight& flight) {
  for (const int w : nth(job_.graph.sends, Cargo::activation)[op.stage]) {
    const auto edge = as_size(wire(job_.graph, Cargo::activation, w).edge);
    Tensors& parcel = exchange_.parcels.at(Cargo::activation, w, op.microbatch);
    for (const std::size_t layer : cut_.crossing[edge]) {
      parcel.push_back(flight.tensors.outputs[layer]);
    }
  }
  for (const int w : nth(job_.graph.sends, Cargo::stash)[op.stage]) {
    exchange_.parcels.at(Cargo::stash, w, op.microbatch) =
        pack_stash(flight.tensors, cut_.layers[op.stage], flight.version);
  }
}

void StageTensors::receive_stash(Op op, InFlight& flight) {
  const auto& layers = cut_.layers[op.stage];
  if (!flight.tensors.stash[layers.front()].empty()) return;
  for (const int w : nth(job_.graph.receives, Cargo::stash)[op.stage]) {
    if (wire(job_.graph, Cargo::stash, w).to != device_) continue;
    flight.version = unpack_stash(take(Cargo::stash, w, op.microbatch), layers, flight.tensors);
  }
}

// The stage's parts of I each send their share of the flattened gradient.
void StageTensors::send_gradient(Op op, InFlight& flight) {
  const StagePlace& place = job_.program.placement.stage[op.stage];
  for (const int w : nth(job_.graph.sends, Cargo::gradient)[op.stage]) {
    const Wire& way = wire(job_.graph, Cargo::gradient, w);
    if (way.part != static_cast<int>(op.part)) continue;
    Tensors& parcel = exchange_.parcels.at(Cargo::gradient, w, op.microbatch);
    for (const std::size_t layer : nth(cut_.crossing, way.edge)) {
      const Tensor& gradient = flight.tensors.gradients[layer];
      if (place.parts() == 1) {
        parcel.push_back(gradient);
        continue;
      }
      const std::int64_t whole = gradient.numel();
      std::int64_t from = 0;
      for (int part = 0; part < way.part; ++part) from += part_of(whole, place, part);
      parcel.push_back(gradient.reshape({-1}).narrow(0, from, part_of(whole, place, way.part)));
    }
  }
  if (place.parts() > 1) return;  // the next part may be made here, too
  for (const int edge : job_.graph.in[op.stage]) {
    for (const std::size_t layer : nth(cut_.crossing, edge)) {
      flight.tensors.gradients[layer].reset();
    }
  }
}

void StageTensors::receive_gradient(Op op, InFlight& flight) {
  if (std::exchange(flight.has_gradient, true)) return;
  const bool apart = job_.program.placement.stage[op.stage].apart();
  std::map<int, std::vector<Tensors>> by_edge;  // parts in order
  for (const int w : nth(job_.graph.receives, Cargo::gradient)[op.stage]) {
    const Wire& way = wire(job_.graph, Cargo::gradient, w);
    if (apart && way.to != device_) continue;
    auto& parts = by_edge[way.edge];
    parts.resize(std::max(parts.size(), as_size(way.part) + 1));
    nth(parts, way.part) = take(Cargo::gradient, w, op.microbatch);
  }
  for (const auto& [edge, parts] : by_edge) {
    const auto& layers = nth(cut_.crossing, edge);
    for (std::size_t i = 0; i < layers.size(); ++i) {
      Tensor came = parts[0][i];
      if (parts.size() > 1) {
        Tensors pieces;
        for (const Tensors& part : parts) pieces.push_back(part[i]);
        std::vector<int64_t> size{job_.training.batch};
        const auto& output = model_.shape.layers[layers[i]].output;
        size.insert(size.end(), output.begin(), output.end());
        came = at::cat(pieces).view(size);
      }
      Tensor& there = flight.tensors.gradients[layers[i]];
      there = there.defined() ? there.add(came) : came;
    }
  }
}

// ---- weights

std::vector<Tensors> StageTensors::newest(int stage) const {
  std::vector<Tensors> all;
  for (const std::size_t layer : nth(cut_.layers, stage)) {
    all.push_back(model_.weights[layer].values);
  }
  return all;
}

// Where another device updates them: those that have come.
void StageTensors::take_in_weights(int stage) {
  const auto s = as_size(stage);
  const StagePlace& place = job_.program.placement.stage[s];
  if (!place.apart()) return;
  const int updater = place.weight_grad.empty() ? place.replicas[0] : place.weight_grad[0];
  if (updater == device_) return;
  if (!job_.program.weights_transfer) {
    SharedWeights& shared = *exchange_.weights[s];
    const std::lock_guard lock(shared.mutex);
    for (auto one = shared.versions.upper_bound(newest_[s]); one != shared.versions.end(); ++one) {
      StageVersion version = one->second;
      for (auto* const tensors : {&version.values, &version.memory}) {
        for (Tensors& layer : *tensors) {
          for (Tensor& tensor : layer) tensor = for_use_here(tensor);
        }
      }
      take_in(stage, std::move(version), one->first);
    }
    return;
  }
  for (const int w : nth(job_.graph.receives, Cargo::weights)[s]) {
    if (wire(job_.graph, Cargo::weights, w).to != device_) continue;
    const auto all = base_[s] + static_cast<std::uint32_t>(updates(job_.program, stage));
    while (newest_[s] < all && mail_.arrived(w, newest_[s] - base_[s])) {
      const Tensors flat = take(Cargo::weights, w, newest_[s] - base_[s]);
      StageVersion version;
      std::size_t next = 0;
      for (const std::size_t layer : cut_.layers[s]) {
        const std::size_t count = model_.weights[layer].values.size();
        version.values.emplace_back(flat.begin() + static_cast<std::ptrdiff_t>(next),
                                    flat.begin() + static_cast<std::ptrdiff_t>(next + count));
        next += count;
      }
      const std::vector<Tensors> before = newest(stage);
      for (std::size_t i = 0; i < before.size(); ++i) {
        version.memory.push_back(
            corrections_.remember(memory_[s][i], before[i], version.values[i]));
      }
      take_in(stage, std::move(version), newest_[s] + 1);
    }
  }
}

void StageTensors::take_in(int stage, StageVersion version, std::uint32_t number) {
  const auto s = as_size(stage);
  if (job_.course || keeps_weights(job_.program)) past_[s][newest_[s]] = newest_version(stage);
  for (std::size_t i = 0; i < version.values.size(); ++i) {
    model_.weights[cut_.layers[s][i]].values = std::move(version.values[i]);
  }
  memory_[s] = std::move(version.memory);
  newest_[s] = number;
}

void StageTensors::send_weights(int stage, std::uint32_t number) {
  const auto s = as_size(stage);
  const std::vector<Tensors> values = newest(stage);
  for (const int w : nth(job_.graph.sends, Cargo::weights)[s]) {
    Tensors& parcel = exchange_.parcels.at(Cargo::weights, w, number);
    for (const Tensors& layer : values) parcel.insert(parcel.end(), layer.begin(), layer.end());
  }
  if (job_.program.weights_transfer || !job_.program.placement.stage[s].apart()) return;
  SharedWeights& shared = *exchange_.weights[s];
  const std::lock_guard lock(shared.mutex);
  if (!job_.course) shared.versions.clear();
  shared.versions[newest_[s]] = newest_version(stage);
  if (job_.course) {
    const std::vector<std::uint32_t>& oldest = job_.course->reads.stage[s].oldest;
    const std::size_t next =
        newest_[s] * std::size_t{1} * as_size(job_.course->reads.stage[s].group);
    const std::uint32_t needed = next < oldest.size() ? oldest[next] : newest_[s];
    shared.versions.erase(shared.versions.begin(),
                          shared.versions.lower_bound(std::min(needed, newest_[s])));
  }
}

// An older version, or the oldest that is still there; the newest where there is none.
StageVersion StageTensors::version(int stage, std::uint32_t wanted) const {
  const auto& past = nth(past_, stage);
  const auto found = past.lower_bound(wanted);
  if (job_.course && (found == past.end() || found->first != wanted)) {
    throw std::logic_error(
        fmt::format("version {} of stage {} is not there: it was dropped", wanted, stage));
  }
  return found == past.end() ? newest_version(stage) : found->second;
}

// What a forward reads of a version: a prediction of what it will be, where that is wanted.
std::vector<Tensors> StageTensors::predicted(int stage, const StageVersion& version) const {
  const int delay = job_.staleness.empty() ? 0 : nth(job_.staleness, stage);
  std::vector<Tensors> result;
  for (std::size_t i = 0; i < version.values.size(); ++i) {
    result.push_back(corrections_.for_forward(version.values[i], version.memory[i], delay));
  }
  return result;
}

// What a backward reads of a version, so many updates behind its forward's.
std::vector<Tensors> StageTensors::rebuilt(const StageVersion& version,
                                           std::uint32_t updates) const {
  std::vector<Tensors> result;
  for (std::size_t i = 0; i < version.values.size(); ++i) {
    result.push_back(
        corrections_.for_backward(version.values[i], version.memory[i], static_cast<int>(updates)));
  }
  return result;
}

// What is remembered beside the newest weights, which were `before`.
std::vector<Tensors> StageTensors::remembered(int stage, const std::vector<Tensors>& before) const {
  const std::vector<Tensors> after = newest(stage);
  std::vector<Tensors> result;
  for (std::size_t i = 0; i < after.size(); ++i) {
    result.push_back(corrections_.remember(memory_of(stage)[i], before[i], after[i]));
  }
  return result;
}

void StageTensors::swap_sums(int stage, std::vector<Tensors>& sums) {
  const auto& layers = nth(cut_.layers, stage);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    std::swap(model_.weights[layers[i]].gradients, sums[i]);
  }
}

std::vector<Tensors>& StageTensors::sums(int stage, std::uint32_t number) {
  const auto s = as_size(stage);
  const auto [at, fresh] = sums_[s].try_emplace(number);
  if (!fresh) return at->second;
  if (!spare_[s].empty()) {
    at->second = std::move(spare_[s].back());
    spare_[s].pop_back();
    return at->second;
  }
  for (const std::size_t layer : cut_.layers[s]) {
    Tensors& zeros = at->second.emplace_back();
    for (const Tensor& value : model_.weights[layer].values) {
      zeros.push_back(at::zeros_like(value));
    }
  }
  return at->second;
}

// A replica that has all its gradients of an update shows them to the others.
void StageTensors::note_weight_grad(Op op) {
  const auto s = as_size(op.stage);
  const auto& replicas = job_.program.placement.stage[s].replicas;
  if (replicas.size() < 2) return;
  const auto size = static_cast<std::uint32_t>(microbatches_per_update(job_.program, op.stage));
  const std::uint32_t number = update_of(op);
  const std::uint32_t last = std::min((number + 1) * size, job_.program.total_microbatches());
  int mine = 0;
  for (std::uint32_t m = number * size; m < last; ++m) {
    mine += replicas[m % replicas.size()] == device_ ? 1 : 0;
  }
  if (++summed_[s][number] != mine) return;
  Tensors& shown = exchange_.reductions[s][number]->of_replica[op.microbatch % replicas.size()];
  for (const Tensors& layer : sums(op.stage, number)) {
    shown.insert(shown.end(), layer.begin(), layer.end());
  }
  sums_[s].erase(number);
}

// The sum over the replicas, by everyone in the same order; else what this device has added up.
std::vector<Tensors> StageTensors::reduced(Op op) {
  const auto s = as_size(op.stage);
  const std::size_t replicas = job_.program.placement.stage[s].replicas.size();
  if (replicas < 2) {
    std::vector<Tensors> mine = std::move(sums(op.stage, op.microbatch));
    sums_[s].erase(op.microbatch);
    return mine;
  }
  Reduction& reduction = *exchange_.reductions[s][op.microbatch];
  std::vector<Tensors> sum(layers_of(op.stage));
  double count = 0;
  for (const Tensors& of_replica : reduction.of_replica) {
    if (of_replica.empty()) continue;  // no micro-batch of this update was its own
    count += 1;
    std::size_t next = 0;
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i].resize(model_.weights[cut_.layers[s][i]].values.size());
      for (Tensor& gradient : sum[i]) {
        const Tensor its = for_use_here(of_replica[next++]);
        gradient = gradient.defined() ? gradient.add_(its) : its.clone();
      }
    }
  }
  if (!updates_by_step(job_.program.weights) && count > 1) {  // each micro-batch is a mini-batch
    for (Tensors& layer : sum) {
      for (Tensor& gradient : layer) gradient.div_(count);
    }
  }
  if (++reduction.read == static_cast<int>(replicas)) reduction.of_replica.clear();
  return sum;
}

std::uint32_t StageTensors::update(Op op) {
  const auto s = as_size(op.stage);
  const auto& layers = cut_.layers[s];
  std::vector<Tensors> sum = reduced(op);
  const std::vector<Tensors> before = newest(op.stage);
  const bool apart = job_.program.placement.stage[s].apart();
  const WeightRule rule = job_.program.weights;
  if (job_.course || rule == WeightRule::vertical_sync || rule == WeightRule::double_buffer ||
      (apart && keeps_weights(job_.program))) {
    past_[s][newest_[s]] = {before, memory_[s]};
  }
  // Whoever still reads this version keeps it; the next one is then made beside it.
  std::atomic_thread_fence(std::memory_order_acquire);
  swap_sums(op.stage, sum);
  const OptimizerStep step = step_of_update(op.stage);
  for (const std::size_t layer : layers) {
    const Tensors& values = model_.weights[layer].values;
    const bool is_read = job_.course || corrections_.remembers() ||
                         std::any_of(values.begin(), values.end(), [](const Tensor& v) {
                           return v.use_count() > 2;  // `before` has one
                         });
    stageline::update(model_, layer, step, is_read ? NewWeights::beside : NewWeights::in_place);
    zero_gradients(model_.weights[layer]);
  }
  swap_sums(op.stage, sum);
  memory_[s] = remembered(op.stage, before);
  if (spare_[s].empty()) spare_[s].push_back(std::move(sum));
  summed_[s].erase(op.microbatch);
  ++newest_[s];
  send_weights(op.stage, op.microbatch);
  if (job_.course) {
    show_weights(op.stage);
    drop_old_versions(op.stage);
  }
  return newest_[s];
}

// ---- ops

void StageTensors::forward(Op op) {
  const auto s = as_size(op.stage);
  const Program& program = job_.program;
  InFlight& flight = in_flight(op.stage, op.microbatch);
  if (job_.course && (holds_.front() || holds_.back())) {
    if (s == 0 || s + 1 == holds_.size()) {
      job_.course->data.fill(microbatch_of(op), model_, flight.tensors);
    }
  } else if (!data_.empty()) {
    const MicroBatch& data = data_[op.microbatch % data_.size()];
    flight.tensors.input = job_.separate && s == 0 ? data.input.clone() : data.input;
    flight.tensors.target = data.target;
  }
  receive_inputs(op, flight);
  flight.version = newest_[s];
  if (const std::optional<std::uint32_t> told = version_told(op)) {
    flight.version = *told;
  } else if (program.weights == WeightRule::vertical_sync) {
    const auto group = static_cast<std::uint32_t>(microbatches_per_update(program, op.stage));
    if (s == 0) {
      exchange_.entered[op.microbatch] = newest_[s] * group;
    } else {
      flight.version = std::min(newest_[s], exchange_.entered[op.microbatch] / group);
    }
    past_[s].erase(past_[s].begin(), past_[s].lower_bound(flight.version));
  } else if (program.weights == WeightRule::double_buffer) {
    flight.version = std::min(newest_[s], delayed_version(program, op));
    past_[s].erase(past_[s].begin(), past_[s].lower_bound(flight.version));
  }
  std::vector<Tensors> read;  // empty: the newest, as they are
  if (flight.version != newest_[s]) read = version(op.stage, flight.version).values;
  if (corrections_.predicts()) read = predicted(op.stage, version_at(op.stage, flight.version));
  if (keeps_weights(program)) flight.weights = read.empty() ? newest(op.stage) : read;
  if (recomputed_[s][op.microbatch]) {
    for (const int edge : job_.graph.in[op.stage]) {
      for (const std::size_t layer : nth(cut_.crossing, edge)) {
        flight.inputs.push_back(flight.tensors.outputs[layer]);
      }
    }
    if (s == 0) flight.inputs.push_back(flight.tensors.input);
  }
  {
    const Reading reading(*this, op.stage, std::move(read));
    for (const std::size_t layer : cut_.layers[s]) {
      stageline::forward(model_, layer, flight.tensors);
      if (recomputed_[s][op.microbatch]) flight.tensors.stash[layer].clear();
    }
  }
  send_outputs(op, flight);
  if (holds_.back() && s + 1 == holds_.size()) {
    const Tensor& loss = exchange_.losses[op.microbatch] = flight.tensors.outputs.back();
    if (job_.course) job_.course->lost(microbatch_of(op), loss.item<double>());
  }
  for (Tensor& output : flight.tensors.outputs) output.reset();
  if (job_.course && !gathers_at_update()) show_statistics(op);
}

void StageTensors::recompute(Op op) {
  InFlight& flight = in_flight(op.stage, op.microbatch);
  std::size_t next = 0;
  for (const int edge : job_.graph.in[op.stage]) {
    for (const std::size_t layer : nth(cut_.crossing, edge)) {
      flight.tensors.outputs[layer] = flight.inputs[next++];
    }
  }
  flight.inputs.clear();
  const Reading reading(*this, op.stage, flight.weights);
  flight.tensors.purpose = Purpose::again;
  for (const std::size_t layer : cut_.layers[op.stage]) {
    stageline::forward(model_, layer, flight.tensors);
  }
  for (Tensor& output : flight.tensors.outputs) output.reset();
}

// Empty: the newest. Where the forward was elsewhere, its version has come here before.
std::vector<Tensors> StageTensors::weights_for_backward(Op op, const InFlight& flight) {
  const auto s = as_size(op.stage);
  const bool keeps = keeps_weights(job_.program);
  if (keeps && !flight.weights.empty()) return flight.weights;
  const std::uint32_t reads = keeps ? flight.version : version_told(op).value_or(newest_[s]);
  if (corrections_.rebuilds()) {
    if (reads > flight.version) {
      return rebuilt(version_at(op.stage, reads), reads - flight.version);
    }
  } else if (keeps && corrections_.predicts()) {
    return predicted(op.stage, version_at(op.stage, reads));
  }
  if (reads == newest_[s]) return {};
  if (!job_.course) past_[s].erase(past_[s].begin(), past_[s].lower_bound(reads));
  return version(op.stage, reads).values;
}

std::uint32_t StageTensors::update_of(Op op) const {
  return op.microbatch /
         static_cast<std::uint32_t>(microbatches_per_update(job_.program, op.stage));
}

void StageTensors::input_grad(Op op) {
  InFlight& flight = in_flight(op.stage, op.microbatch);
  receive_stash(op, flight);
  receive_gradient(op, flight);
  if (!std::exchange(flight.input_grad_done, true)) {
    const Reading reading(*this, op.stage, weights_for_backward(op, flight));
    // Norms add to their weights' gradients here; where W does that itself, it is dropped.
    const bool counts = has_role(op.stage, OpKind::weight_grad) && !flight.weight_grad_done;
    std::vector<Tensors> dropped(layers_of(op.stage));
    for (std::size_t i = 0; i < dropped.size(); ++i) {
      dropped[i].resize(model_.weights[cut_.layers[op.stage][i]].values.size());
    }
    std::vector<Tensors>& to = counts ? sums(op.stage, update_of(op)) : dropped;
    swap_sums(op.stage, to);
    const auto& layers = cut_.layers[op.stage];
    for (std::size_t i = layers.size(); i-- > 0;) {
      stageline::input_grad(model_, layers[i], flight.tensors);
    }
    swap_sums(op.stage, to);
  }
  send_gradient(op, flight);
}

void StageTensors::weight_grad(Op op) {
  InFlight& flight = in_flight(op.stage, op.microbatch);
  const auto& layers = cut_.layers[op.stage];
  std::vector<Tensors>& to = sums(op.stage, update_of(op));
  if (flight.input_grad_done) {
    swap_sums(op.stage, to);
    for (std::size_t i = layers.size(); i-- > 0;) {
      stageline::weight_grad(model_, layers[i], flight.tensors);
    }
  } else {
    // I is elsewhere, or still to come: the gradients inside the stage are made here, too.
    receive_stash(op, flight);
    receive_gradient(op, flight);
    const Reading reading(*this, op.stage, weights_for_backward(op, flight));
    swap_sums(op.stage, to);
    MicroBatch once = flight.tensors;
    for (std::size_t i = layers.size(); i-- > 0;) stageline::backward(model_, layers[i], once);
  }
  swap_sums(op.stage, to);
  flight.weight_grad_done = true;
  note_weight_grad(op);
}

void StageTensors::backward(Op op) {
  InFlight& flight = in_flight(op.stage, op.microbatch);
  receive_stash(op, flight);
  receive_gradient(op, flight);
  {
    const Reading reading(*this, op.stage, weights_for_backward(op, flight));
    std::vector<Tensors>& to = sums(op.stage, update_of(op));
    swap_sums(op.stage, to);
    const auto& layers = cut_.layers[op.stage];
    for (std::size_t i = layers.size(); i-- > 0;) {
      stageline::backward(model_, layers[i], flight.tensors);
    }
    swap_sums(op.stage, to);
  }
  send_gradient(op, flight);
  note_weight_grad(op);
}

// ---- copies

void StageTensors::offload(Op op) {
  InFlight& flight = [&]() -> InFlight& {
    const std::lock_guard lock(copies_);
    return in_flight(op.stage, op.microbatch);
  }();
  const auto& layers = cut_.layers[op.stage];
  const bool pinned = !where_.is_cpu();
  {
    const auto of_host = MemoryLog::look_away();
    exchange_.host[op.stage][op.microbatch] =
        copied(pack_stash(flight.tensors, layers, flight.version), [&](const Tensor& tensor) {
          Tensor there =
              at::empty_like(tensor, tensor.options().device(at::kCPU).pinned_memory(pinned));
          return there.copy_(tensor, pinned);
        });
  }
  synchronize(where_);
  const std::lock_guard lock(copies_);
  for (const std::size_t layer : layers) flight.tensors.stash[layer].clear();
  leave(op);
}

void StageTensors::prefetch(Op op) {
  InFlight& flight = [&]() -> InFlight& {
    const std::lock_guard lock(copies_);
    return in_flight(op.stage, op.microbatch);
  }();
  Tensors host = std::exchange(exchange_.host[op.stage][op.microbatch], {});
  Tensors here = copied(host, [&](const Tensor& tensor) {
    return at::empty_like(tensor, tensor.options().device(where_)).copy_(tensor, !where_.is_cpu());
  });
  here[0] = host[0];  // words, read by the host
  const std::lock_guard lock(copies_);
  flight.version = unpack_stash(here, cut_.layers[op.stage], flight.tensors);
  if (!where_.is_cpu()) flight.prefetched = std::move(here);
}

}  // namespace stageline
