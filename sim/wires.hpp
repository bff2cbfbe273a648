// The stage graph, and the wires that messages travel on.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/op.hpp"
#include "sim/program.hpp"
#include "sim/stash_readers.hpp"

namespace stageline {

/// A route that one kind of message takes from stage to stage.
struct Wire {
  int edge = -1;     // of the stage graph; -1: stash and weights
  int sender = 0;    // stage
  int receiver = 0;  // stage
  int part = 0;      // of the sender's I: the share of the gradient that the message carries
  int from = -1;     // device; -1: that of the micro-batch's replica of the sender
  int to = -1;       // device; -1: that of the micro-batch's replica of the receiver
};

/// The stage graph's edges by stage, as indices into Program::edges; and the wires of each cargo,
/// with those that leave and reach a stage. In a usual placement there is one wire each way per
/// edge, numbered as the edges are. With split roles, every part of I sends its share of the
/// gradient to each device that reads it (those of I and W), F sends its stash to the devices other
/// than its own, and U its weights to the devices of F and I. A wire that joins a device to itself
/// carries no message.
struct StageGraph {
  std::vector<StageEdge> edges;
  std::vector<std::vector<int>> in;   // by stage: edges that reach it
  std::vector<std::vector<int>> out;  // by stage: edges that leave it
  std::array<std::vector<Wire>, cargoes> wires;
  std::array<std::vector<std::vector<int>>, cargoes> sends;     // by stage: wires that leave it
  std::array<std::vector<std::vector<int>>, cargoes> receives;  // by stage: wires that reach it
  bool updates_are_awaited = false;                             // by other ops than the next update
  /// Where copies are issued, by stage and by micro-batch and part (issuer_of); otherwise empty.
  std::vector<std::vector<std::optional<Op>>> issuer;
  /// By stage, the micro-batches that have an R; empty of a stage that has none.
  std::vector<std::vector<bool>> recomputed;
};
StageGraph stage_graph(const Program& program);

/// Whether the stage has an R; where its roles are split, then all its stashes are rebuilt.
inline bool is_recomputed(const StageGraph& graph, int stage) {
  return !graph.recomputed[static_cast<std::size_t>(stage)].empty();
}
/// Whether R makes the stash of that op's micro-batch again.
inline bool is_recomputed(const StageGraph& graph, Op op) {
  return is_recomputed(graph, op.stage) && graph.recomputed[op.stage][op.microbatch];
}

/// The bytes of an OFFLOAD or a PREFETCH.
inline Bytes copy_bytes(const Costs& costs, const StageGraph& graph, Op copy) {
  return left_by_forward(costs.of(copy), is_recomputed(graph, copy));
}

/// Where copies are issued: the compute op before a PREFETCH in its list, if there is one. Updates
/// do not count.
inline std::optional<Op> issuer_of(const StageGraph& graph, const StagePlace& place, Op prefetch) {
  const auto& of_stage = graph.issuer[prefetch.stage];
  const auto readers = static_cast<std::size_t>(stash_readers(place));
  const std::size_t at = prefetch.microbatch * readers + prefetch.part;
  return at < of_stage.size() ? of_stage[at] : std::nullopt;
}

/// The wire a message travels on, as an index into the wires of its cargo; -1 if the stage has no
/// wire of that number.
inline int wire_of(const StageGraph& graph, Op op) {
  const auto cargo = static_cast<std::size_t>(*cargo_of(op.kind));
  const auto& wires =
      is_send(op.kind) ? graph.sends[cargo][op.stage] : graph.receives[cargo][op.stage];
  return op.part < wires.size() ? wires[op.part] : -1;
}
inline const Wire& wire(const StageGraph& graph, Cargo cargo, int number) {
  return graph.wires[static_cast<std::size_t>(cargo)][static_cast<std::size_t>(number)];
}

/// The RECV of a SEND, or the SEND of a RECV.
Op other_end(const StageGraph& graph, Op message);

/// The devices at the two ends of a wire for one micro-batch.
struct Ends {
  int from = 0;
  int to = 0;
};
inline Ends ends_of(const Placement& placement, const Wire& wire, std::uint32_t microbatch) {
  const auto home = [&](int stage) {
    const auto& replicas = placement.stage[static_cast<std::size_t>(stage)].replicas;
    return replicas[microbatch % replicas.size()];
  };
  return {wire.from < 0 ? home(wire.sender) : wire.from,
          wire.to < 0 ? home(wire.receiver) : wire.to};
}

/// Calls each(message, ends) for the tensors of one cargo that `op` on `device` sends, or that it
/// receives there: one per wire of the op's stage with that device at this end; of the wires for
/// gradients only those of the op's own part are sent on. `message` is the SEND or RECV on the
/// wire. Where both ends are one device no message is needed. None for weights if the program
/// transfers none.
template <class Each>
void tensors_of(const StageGraph& graph, const Program& program, Op op, Cargo cargo, bool sends,
                int device, Each&& each) {
  if (cargo == Cargo::weights && !program.settings.weights_transfer) return;
  const auto c = static_cast<std::size_t>(cargo);
  const std::vector<int>& wires = (sends ? graph.sends : graph.receives)[c][op.stage];
  for (std::size_t i = 0; i < wires.size(); ++i) {
    const Wire& way = graph.wires[c][static_cast<std::size_t>(wires[i])];
    const Ends ends = ends_of(program.placement, way, op.microbatch);
    if ((sends ? ends.from : ends.to) != device) continue;
    if (cargo == Cargo::gradient && sends && way.part != op.part) continue;
    Op message;
    message.kind = sends ? send_of(cargo) : receive_of(cargo);
    message.part = static_cast<std::uint8_t>(i & 0x7f);
    message.stage = op.stage;
    message.microbatch = op.microbatch;
    each(message, ends);
  }
}

/// Calls each(message) for the messages of one cargo that belong to `op` on `device`: its SENDs, or
/// its RECVs. There is one per tensor that joins `device` to another device.
template <class Each>
void messages_of(const StageGraph& graph, const Program& program, Op op, Cargo cargo, bool sends,
                 int device, Each&& each) {
  tensors_of(graph, program, op, cargo, sends, device, [&](Op message, Ends ends) {
    if (ends.from != ends.to) each(message);
  });
}

/// The device an op belongs to, messages included; -1 if the op is on no device.
inline int device_of(const StageGraph& graph, const Placement& placement, Op op) {
  const std::optional<Cargo> cargo = cargo_of(op.kind);
  if (!cargo) return device_of(placement, op);
  const int number = wire_of(graph, op);
  if (number < 0) return -1;
  const Ends ends = ends_of(placement, wire(graph, *cargo, number), op.microbatch);
  return is_send(op.kind) ? ends.from : ends.to;
}

}  // namespace stageline
