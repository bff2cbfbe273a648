// Counts updates, and builds blank programs, stage graphs and product indices.
#include "sim/program.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/errors.hpp"
#include "sim/index.hpp"
#include "sim/problem.hpp"
#include "sim/rules.hpp"

namespace stageline {

std::string_view name(WeightRule rule) {
  switch (rule) {
    case WeightRule::flush:
      return "flush";
    case WeightRule::stash:
      return "stash";
    case WeightRule::vertical_sync:
      return "vertical_sync";
    case WeightRule::double_buffer:
      return "double_buffer";
    case WeightRule::latest:
      return "latest";
  }
  return "";
}

std::string_view name(Clock clock) {
  switch (clock) {
    case Clock::free:
      return "free";
    case Clock::lockstep:
      return "lockstep";
  }
  return "";
}

std::string_view name(Copies copies) {
  switch (copies) {
    case Copies::free:
      return "free";
    case Copies::full:
      return "full";
    case Copies::half:
      return "half";
    case Copies::blocking:
      return "blocking";
  }
  return "";
}

std::string_view name(Messages messages) {
  switch (messages) {
    case Messages::async:
      return "async";
    case Messages::blocking:
      return "blocking";
    case Messages::batched:
      return "batched";
  }
  return "";
}

int microbatches_per_update(const Program& program, int stage) {
  if (updates_by_step(program.weights)) return program.microbatches;
  const StagePlace& place = nth(program.placement.stage, stage);
  return static_cast<int>(place.replicas.size());
}

int updates(const Program& program, int stage) {
  const int size = microbatches_per_update(program, stage);
  return (static_cast<int>(program.total_microbatches()) + size - 1) / size;
}

namespace {

// The devices that read a part of a stage in the backward pass: those of I's parts, then that of W;
// each once. -1 is the replica that the micro-batch selects.
std::vector<int> backward_readers(const StagePlace& place) {
  if (!place.apart()) return {-1};
  std::vector<int> devices = place.input_grad;
  const int f = place.replicas.empty() ? -1 : place.replicas[0];
  if (devices.empty()) devices.push_back(f);
  devices.push_back(place.weight_grad.empty() ? f : place.weight_grad[0]);
  std::vector<int> once;
  for (const int device : devices) {
    if (std::find(once.begin(), once.end(), device) == once.end()) once.push_back(device);
  }
  return once;
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
  const auto home = [](const StagePlace& place) {
    return place.apart() && !place.replicas.empty() ? place.replicas[0] : -1;
  };
  for (std::size_t e = 0; e < graph.edges.size(); ++e) {
    const StageEdge edge = graph.edges[e];
    const StagePlace& from = placement.stage[edge.from];
    const StagePlace& to = placement.stage[edge.to];
    const int number = static_cast<int>(e);
    add(Cargo::activation, {number, edge.from, edge.to, 0, home(from), home(to)});
    for (int part = 0; part < to.parts(); ++part) {
      const int maker = to.input_grad.empty() ? home(to) : nth(to.input_grad, part);
      for (const int reader : backward_readers(from)) {
        add(Cargo::gradient, {number, edge.to, edge.from, part, maker, reader});
      }
    }
  }
  for (std::size_t s = 0; s < placement.stage.size(); ++s) {
    const StagePlace& place = placement.stage[s];
    if (!place.apart() || place.replicas.empty()) continue;
    const int stage = static_cast<int>(s);
    const int f = place.replicas[0];
    const int w = place.weight_grad.empty() ? f : place.weight_grad[0];
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
  graph.updates_are_awaited = program.clock == Clock::lockstep || !program.delay.empty() ||
                              !nth(graph.wires, Cargo::weights).empty();
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

ProductIndex::ProductIndex(const Program& program, const StageGraph& graph) {
  for (Row& row : row_) row.columns = program.total_microbatches();
  // Rows numbered by update, one per replica.
  Row by_update;
  by_update.columns = 1;
  for (const StagePlace& place : program.placement.stage) {
    by_update.parts = std::max(by_update.parts, static_cast<int>(place.replicas.size()));
  }
  for (int s = 0; s < program.stages(); ++s) {
    by_update.columns =
        std::max(by_update.columns, static_cast<std::uint32_t>(updates(program, s)));
  }
  nth(row_, Product::reduced) = by_update;
  nth(row_, Product::updated) = by_update;
  bool seen[op_kinds] = {};
  Row& gradient = nth(row_, Product::gradient);
  for (const auto& list : program.ops) {
    for (const Op op : list) {
      nth(seen, op.kind) = true;
      if (op.kind == OpKind::input_grad) gradient.parts = std::max(gradient.parts, op.part + 1);
    }
  }
  bool made[products] = {};
  for (std::size_t kind = 0; kind < op_kinds; ++kind) {
    if (!seen[kind]) continue;
    Op op;
    op.kind = static_cast<OpKind>(kind);
    // Only the kinds of products of stage 0's ops matter here; their edges may not exist.
    makes(graph, op, [&](Product product, int, std::uint32_t, int) { nth(made, product) = true; });
  }
  std::int64_t base = 0;
  for (std::size_t product = 0; product < products; ++product) {
    Row& row = row_[product];
    if (!made[product]) {
      row.columns = 0;
      continue;
    }
    const auto cargo = cargo_of(static_cast<Product>(product));
    const std::size_t rows = cargo ? nth(graph.wires, *cargo).size() : graph.in.size();
    row.base = base;
    // An odd number of cache lines (16 numbers of 4 bytes) apart: stages are walked side by side,
    // and powers of two of micro-batches would map them all to one set of the cache.
    row.stride = 16 * ((static_cast<std::int64_t>(row.columns) * row.parts / 16 + 1) | 1);
    base += static_cast<std::int64_t>(rows) * row.stride;
  }
  size_ = as_size(base);
}

Program blank_program(const Problem& problem, std::string schedule, WeightRule weights) {
  if (problem.microbatches < 1) {
    throw UsageError(
        fmt::format("--microbatches must be at least 1 (it is {})", problem.microbatches));
  }
  if (problem.steps < 1) {
    throw UsageError(fmt::format("--steps must be at least 1 (it is {})", problem.steps));
  }
  // A forward and its backward need some 400 bytes by the time they are drawn.
  const int stages = problem.placement.stages();
  const double forwards = static_cast<double>(problem.microbatches) * problem.steps * stages;
  if (forwards > most_forwards) {
    throw UsageError(fmt::format(
        "{} micro-batches × {} steps × {} stages are more forwards than the {} that are simulated "
        "at a time; ask for fewer micro-batches or steps",
        problem.microbatches, problem.steps, stages, most_forwards));
  }
  Program program;
  program.schedule = std::move(schedule);
  program.microbatches = problem.microbatches;
  program.steps = problem.steps;
  program.weights = weights;
  program.devices = problem.devices;
  program.placement = problem.placement;
  for (const EdgeCosts& edge : problem.costs.edges) program.edges.push_back(edge.edge);
  program.independent_w.assign(problem.placement.stage.size(), false);
  program.ops.resize(problem.devices.size());
  return program;
}

}  // namespace stageline
