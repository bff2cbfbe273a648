// Moves tensors between the ops of a device and the slots of the exchange.
#include "tools/executor/run/stage_messages.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

#include "tools/executor/devices/device.hpp"
#include "tools/executor/run/micro_batches.hpp"
#include "tools/executor/run/stash_payload.hpp"

namespace stageline::executor {

using at::Tensor;

StageMessages::StageMessages(const DeviceModel& here, Exchange& exchange, MessageHooks hooks)
    : here_(here),
      exchange_(exchange),
      hooks_(std::move(hooks)),
      offloaded_(as_size(here.job.program.stages())) {
  for (const Op op : nth(here.job.program.ops, here.device)) {
    if (op.kind == OpKind::offload) offloaded_[op.stage] = true;
  }
}

Tensors StageMessages::take(Cargo cargo, int wire_number, std::uint32_t number) {
  Tensors taken = std::exchange(exchange_.mailbox.at(cargo, wire_number, number), {});
  if (!here_.job.separate) {
    for (Tensor& tensor : taken) tensor = for_use_here(tensor);
    return taken;
  }
  const Ends ends =
      ends_of(here_.job.program.placement, wire(here_.job.graph, cargo, wire_number), number);
  MessageHooks::Moment left = std::chrono::steady_clock::now();
  std::unique_ptr<c10::DebugInfoGuard> since_it_came;
  // Between stages of one device, a tensor is its maker's until it is read.
  if (ends.from != ends.to) {
    const MessageHooks::Passage passage = hooks_.passage(cargo, wire_number, number);
    left = passage.left;
    since_it_came = hooks_.date(passage.comes);
  }
  Tensors mine = copied(taken, [this](const Tensor& tensor) {
    const Tensor here = for_use_here(tensor);
    return here.is_alias_of(tensor) ? here.clone() : here;
  });
  give_back(std::move(taken), ends.from, left);
  return mine;
}

void StageMessages::give_back(Tensors taken, int sender, MessageHooks::Moment left) {
  Exchange::Returned& back = *nth(exchange_.returned, sender);
  const std::lock_guard lock(back.mutex);
  for (Tensor& tensor : taken) back.tensors.push_back({std::move(tensor), left});
}

void StageMessages::take_weights(int wire_number, std::uint32_t number,
                                 const std::function<void(const Tensors& flat)>& read) {
  if (!here_.job.separate) return read(take(Cargo::weights, wire_number, number));
  Tensors taken = std::exchange(exchange_.mailbox.at(Cargo::weights, wire_number, number), {});
  {
    Tensors here;
    for (const Tensor& tensor : taken) here.push_back(for_use_here(tensor));
    read(here);
  }
  give_back_weights(std::move(taken), wire_number, number);
}

void StageMessages::leave_weights(int wire_number, std::uint32_t number) {
  Tensors taken = std::exchange(exchange_.mailbox.at(Cargo::weights, wire_number, number), {});
  give_back_weights(std::move(taken), wire_number, number);
}

void StageMessages::give_back_weights(Tensors taken, int wire_number, std::uint32_t number) {
  const MessageHooks::Moment left = hooks_.passage(Cargo::weights, wire_number, number).left;
  const Wire& way = wire(here_.job.graph, Cargo::weights, wire_number);
  give_back(std::move(taken), ends_of(here_.job.program.placement, way, number).from, left);
}

Tensor StageMessages::for_use_here(const Tensor& made_elsewhere) const {
  if (!made_elsewhere.defined() || made_elsewhere.device().is_cpu()) return made_elsewhere;
  if (made_elsewhere.device() == here_.where) {
    keep_until_done(made_elsewhere);
    return made_elsewhere;
  }
  Tensor mine = made_elsewhere.to(here_.where);
  synchronize(here_.where);
  return mine;
}

void StageMessages::drop_returned(bool counted) {
  Exchange::Returned& back = *nth(exchange_.returned, here_.device);
  std::vector<Exchange::Sent> dropped;
  {
    const std::lock_guard lock(back.mutex);
    std::swap(dropped, back.tensors);
  }
  for (Exchange::Sent& one : dropped) {
    // A tensor that a stash holds too is freed with the stash: its backward comes later than the
    // receiver's op.
    const bool last = one.tensor.defined() && one.tensor.use_count() == 1 &&
                      one.tensor.storage().use_count() == 1;
    const auto dated = counted && last ? hooks_.date(one.left) : nullptr;
    one.tensor.reset();
  }
}

void StageMessages::receive_inputs(Op op, InFlight& flight) {
  for (const int w : nth(here_.job.graph.receives, Cargo::activation)[op.stage]) {
    const auto edge = as_size(wire(here_.job.graph, Cargo::activation, w).edge);
    const Tensors came = take(Cargo::activation, w, op.microbatch);
    for (std::size_t i = 0; i < came.size(); ++i) {
      flight.tensors.outputs[here_.cut.crossing[edge][i]] = came[i];
    }
  }
}

void StageMessages::send_outputs(Op op, InFlight& flight) {
  for (const int w : nth(here_.job.graph.sends, Cargo::activation)[op.stage]) {
    const auto edge = as_size(wire(here_.job.graph, Cargo::activation, w).edge);
    Tensors& payload = exchange_.mailbox.at(Cargo::activation, w, op.microbatch);
    for (const std::size_t layer : here_.cut.crossing[edge]) {
      payload.push_back(flight.tensors.outputs[layer]);
    }
  }
  if (!sends_stash(op)) return;
  for (const int w : nth(here_.job.graph.sends, Cargo::stash)[op.stage]) {
    exchange_.mailbox.at(Cargo::stash, w, op.microbatch) =
        pack_stash(flight.tensors, here_.layers_of(op.stage), flight.version);
  }
}

void StageMessages::receive_stash(Op op, InFlight& flight) {
  const std::vector<std::size_t>& layers = here_.layers_of(op.stage);
  if (!flight.tensors.stash[layers.front()].empty()) return;
  for (const int w : nth(here_.job.graph.receives, Cargo::stash)[op.stage]) {
    if (wire(here_.job.graph, Cargo::stash, w).to != here_.device) continue;
    const Tensors came = take(Cargo::stash, w, op.microbatch);
    flight.version = unpack_stash(came, layers, flight.tensors);
    if (!here_.job.separate) continue;
    const std::int64_t bytes = storage_bytes({came.begin() + 1, came.end()});  // [0] describes them
    stash_came_ += bytes;
    hooks_.stash_came(w, op.microbatch, bytes);
  }
}

StageMessages::Share StageMessages::share_of(Op op, std::size_t layer) const {
  Share share;
  const std::vector<std::int64_t> sizes = output_of(here_.job, layer, op.microbatch);
  const std::int64_t whole =
      std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
  share.of_sample = whole / here_.job.training.batch;
  const StagePlace& place = here_.place(op.stage);
  for (int part = 0; part < static_cast<int>(op.part); ++part) {
    share.begin += part_of(whole, place, part);
  }
  share.end = share.begin + part_of(whole, place, static_cast<int>(op.part));
  return share;
}

void StageMessages::send_gradient(Op op, MicroBatch& made, std::int64_t first) {
  const StagePlace& place = here_.place(op.stage);
  for (const int w : nth(here_.job.graph.sends, Cargo::gradient)[op.stage]) {
    const Wire& way = wire(here_.job.graph, Cargo::gradient, w);
    if (way.part != static_cast<int>(op.part)) continue;
    Tensors& payload = exchange_.mailbox.at(Cargo::gradient, w, op.microbatch);
    for (const std::size_t layer : nth(here_.cut.crossing, way.edge)) {
      const Tensor& gradient = made.gradients[layer];
      if (place.parts() == 1) {
        payload.push_back(gradient);
        continue;
      }
      const Share share = share_of(op, layer);
      const std::int64_t begin = share.begin - first * share.of_sample;
      payload.push_back(gradient.reshape({-1}).narrow(0, begin, share.end - share.begin));
    }
  }
  if (place.parts() > 1) return;  // the next part may be computed here, too
  for (const int edge : here_.job.graph.in[op.stage]) {
    for (const std::size_t layer : nth(here_.cut.crossing, edge)) {
      made.gradients[layer].reset();
    }
  }
}

void StageMessages::receive_gradient(Op op, InFlight& flight) {
  if (std::exchange(flight.has_gradient, true)) return;
  const bool apart = here_.place(op.stage).apart();
  std::map<int, std::vector<Tensors>> by_edge;  // parts in order
  for (const int w : nth(here_.job.graph.receives, Cargo::gradient)[op.stage]) {
    const Wire& way = wire(here_.job.graph, Cargo::gradient, w);
    if (apart && way.to != here_.device) continue;
    auto& parts = by_edge[way.edge];
    parts.resize(std::max(parts.size(), as_size(way.part) + 1));
    nth(parts, way.part) = take(Cargo::gradient, w, op.microbatch);
  }
  for (const auto& [edge, parts] : by_edge) {
    const auto& layers = nth(here_.cut.crossing, edge);
    for (std::size_t i = 0; i < layers.size(); ++i) {
      Tensor came = parts[0][i];
      if (parts.size() > 1) {
        Tensors pieces;
        for (const Tensors& part : parts) pieces.push_back(part[i]);
        came = at::cat(pieces).view(output_of(here_.job, layers[i], op.microbatch));
      }
      Tensor& there = flight.tensors.gradients[layers[i]];
      there = there.defined() ? there.add(came) : came;
    }
  }
}

void StageMessages::send_weights(int stage, std::uint32_t number,
                                 const std::vector<Tensors>& values) {
  for (const int w : nth(nth(here_.job.graph.sends, Cargo::weights), stage)) {
    Tensors& payload = exchange_.mailbox.at(Cargo::weights, w, number);
    for (const Tensors& layer : values) payload.insert(payload.end(), layer.begin(), layer.end());
  }
}

}  // namespace stageline::executor
