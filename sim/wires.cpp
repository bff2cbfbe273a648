// Builds the stage graph: its edges by stage, and the wires of each cargo.
#include "sim/wires.hpp"

#include <algorithm>

#include "sim/base/index.hpp"

namespace stageline {
namespace {

// The devices that read something of a stage in the backward pass. -1 is the replica that the
// micro-batch picks.
std::vector<int> backward_readers(const StagePlace& place) {
  if (!place.apart()) return {-1};
  std::vector<int> readers;
  for_stash_readers(place, [&](int device) { readers.push_back(device); });
  return readers;
}

// The device of a role's part; -1: that of the replica that the micro-batch picks, or none.
int fixed_device(const StagePlace& place, Role role, int part = 0) {
  return place.apart() && !place.replicas.empty() ? place.device(role, part) : -1;
}

void add_wires(StageGraph& graph, const Placement& placement) {
  const auto add = [&](Cargo cargo, const Wire& wire) {
    auto& wires = nth(graph.wires, cargo);
    const int number = static_cast<int>(wires.size());
    nth(nth(graph.sends, cargo), wire.sender).push_back(number);
    nth(nth(graph.receives, cargo), wire.receiver).push_back(number);
    wires.push_back(wire);
  };
  for (std::size_t cargo = 0; cargo < cargoes; ++cargo) {
    graph.sends[cargo].resize(placement.stage.size());
    graph.receives[cargo].resize(placement.stage.size());
  }
  for (std::size_t e = 0; e < graph.edges.size(); ++e) {
    const StageEdge edge = graph.edges[e];
    const StagePlace& from = placement.stage[edge.from];
    const StagePlace& to = placement.stage[edge.to];
    const int number = static_cast<int>(e);
    add(Cargo::activation, {number, edge.from, edge.to, 0, fixed_device(from, Role::forward),
                            fixed_device(to, Role::forward)});
    for (int part = 0; part < to.parts(); ++part) {
      const int maker = fixed_device(to, Role::input_grad, part);
      for (const int reader : backward_readers(from)) {
        add(Cargo::gradient, {number, edge.to, edge.from, part, maker, reader});
      }
    }
  }
  for (std::size_t s = 0; s < placement.stage.size(); ++s) {
    const StagePlace& place = placement.stage[s];
    if (!place.apart() || place.replicas.empty()) continue;
    const int stage = static_cast<int>(s);
    const int f = place.device(Role::forward);
    const int w = place.device(Role::weight_grad);
    for (const int reader : backward_readers(place)) {
      if (reader != f) add(Cargo::stash, {-1, stage, stage, 0, f, reader});
    }
    if (f != w) add(Cargo::weights, {-1, stage, stage, 0, w, f});
    std::vector<int> seen{f, w};
    for (const int device : place.input_grad) {
      if (std::find(seen.begin(), seen.end(), device) != seen.end()) continue;
      add(Cargo::weights, {-1, stage, stage, 0, w, device});
      seen.push_back(device);
    }
  }
}

// Ops out of range, of a program that has not been checked, are left out.
void find_issuers(StageGraph& graph, const Program& program) {
  graph.issuer.resize(program.placement.stage.size());
  for (const std::vector<Op>& list : program.ops) {
    std::optional<Op> before;
    for (const Op op : list) {
      if (lane_of(op.kind) == LaneKind::compute && op.kind != OpKind::update) before = plain(op);
      if (op.kind != OpKind::prefetch || op.stage >= graph.issuer.size()) continue;
      if (op.microbatch >= program.total_microbatches()) continue;
      const auto readers = as_size(stash_readers(program.placement.stage[op.stage]));
      if (op.part >= readers) continue;
      auto& of_stage = graph.issuer[op.stage];
      of_stage.resize(program.total_microbatches() * readers);
      of_stage[op.microbatch * readers + op.part] = before;
    }
  }
}

void find_recomputed(StageGraph& graph, const Program& program) {
  graph.recomputed.resize(program.placement.stage.size());
  for (const std::vector<Op>& list : program.ops) {
    for (const Op op : list) {
      if (op.kind != OpKind::recompute || op.stage >= graph.recomputed.size()) continue;
      if (op.microbatch >= program.total_microbatches()) continue;
      graph.recomputed[op.stage].resize(program.total_microbatches());
      graph.recomputed[op.stage][op.microbatch] = true;
    }
  }
}

}  // namespace

StageGraph stage_graph(const Program& program) {
  StageGraph graph;
  graph.edges = program.edges;
  graph.in.resize(as_size(program.stages()));
  graph.out.resize(as_size(program.stages()));
  for (std::size_t e = 0; e < program.edges.size(); ++e) {
    graph.out[program.edges[e].from].push_back(static_cast<int>(e));
    graph.in[program.edges[e].to].push_back(static_cast<int>(e));
  }
  add_wires(graph, program.placement);
  graph.updates_are_awaited = program.settings.clock == Clock::lockstep ||
                              !program.settings.delay.empty() ||
                              !nth(graph.wires, Cargo::weights).empty();
  if (program.settings.copies == Copies::issued) find_issuers(graph, program);
  find_recomputed(graph, program);
  return graph;
}

Op other_end(const StageGraph& graph, Op message) {
  const Cargo cargo = *cargo_of(message.kind);
  const int number = wire_of(graph, message);
  const Wire& way = wire(graph, cargo, number);
  const bool sent = is_send(message.kind);
  Op other = message;
  other.kind = sent ? receive_of(cargo) : send_of(cargo);
  other.stage = static_cast<std::uint16_t>(sent ? way.receiver : way.sender);
  const auto& ways = nth(sent ? graph.receives : graph.sends, cargo)[other.stage];
  other.part = static_cast<std::uint8_t>(
      (std::find(ways.begin(), ways.end(), number) - ways.begin()) & 0x7f);
  return other;
}

}  // namespace stageline
