#include "sim/program.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/errors.hpp"
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

int microbatches_per_update(const Program& program, int stage) {
  switch (program.weights) {
    case WeightRule::flush:
    case WeightRule::double_buffer:
      return program.microbatches;
    case WeightRule::stash:
    case WeightRule::vertical_sync:
    case WeightRule::latest:
      break;
  }
  const StagePlace& place = program.placement.stage[static_cast<std::size_t>(stage)];
  return static_cast<int>(place.replicas.size());
}

int updates(const Program& program, int stage) {
  const int size = microbatches_per_update(program, stage);
  return (static_cast<int>(program.total_microbatches()) + size - 1) / size;
}

StageGraph stage_graph(const Program& program) {
  StageGraph graph;
  graph.edges = program.edges;
  graph.in.resize(static_cast<std::size_t>(program.stages()));
  graph.out.resize(static_cast<std::size_t>(program.stages()));
  for (std::size_t e = 0; e < program.edges.size(); ++e) {
    graph.out[program.edges[e].from].push_back(static_cast<int>(e));
    graph.in[program.edges[e].to].push_back(static_cast<int>(e));
  }
  return graph;
}

ProductIndex::ProductIndex(const Program& program, const StageGraph& graph) {
  for (Row& row : row_) row.columns = program.total_microbatches();
  Row& reduced = row_[static_cast<std::size_t>(Product::reduced)];
  reduced.columns = 1;
  for (const StagePlace& place : program.placement.stage) {
    reduced.parts = std::max(reduced.parts, static_cast<int>(place.replicas.size()));
  }
  for (int s = 0; s < program.stages(); ++s) {
    reduced.columns = std::max(reduced.columns, static_cast<std::uint32_t>(updates(program, s)));
  }
  bool seen[op_kinds] = {};
  Row& gradient = row_[static_cast<std::size_t>(Product::gradient)];
  for (const auto& list : program.ops) {
    for (const Op op : list) {
      seen[static_cast<std::size_t>(op.kind)] = true;
      if (op.kind == OpKind::input_grad) gradient.parts = std::max(gradient.parts, op.part + 1);
    }
  }
  bool made[products] = {};
  for (std::size_t kind = 0; kind < op_kinds; ++kind) {
    if (!seen[kind]) continue;
    Op op;
    op.kind = static_cast<OpKind>(kind);
    // Of an op of stage 0 only the kind of product counts here; its edge may not exist.
    makes(graph, op, [&](Product product, int, std::uint32_t, int) {
      made[static_cast<std::size_t>(product)] = true;
    });
  }
  std::int64_t base = 0;
  for (std::size_t product = 0; product < products; ++product) {
    Row& row = row_[product];
    if (!made[product]) {
      row.columns = 0;
      continue;
    }
    const bool by_edge = static_cast<Product>(product) == Product::sent_activation ||
                         static_cast<Product>(product) == Product::sent_gradient;
    const std::size_t rows = by_edge ? graph.edges.size() : graph.in.size();
    row.base = base;
    // An odd number of cache lines (16 numbers of 4 bytes) apart, for stages are walked side by
    // side: micro-batches in powers of two would put them all in one set of the cache.
    row.stride = 16 * ((static_cast<std::int64_t>(row.columns) * row.parts / 16 + 1) | 1);
    base += static_cast<std::int64_t>(rows) * row.stride;
  }
  size_ = static_cast<std::size_t>(base);
}

Program blank_program(const Problem& problem, std::string schedule, WeightRule weights) {
  if (problem.microbatches < 1) {
    throw UsageError(
        fmt::format("--microbatches must be at least 1 (it is {})", problem.microbatches));
  }
  if (problem.steps < 1) {
    throw UsageError(fmt::format("--steps must be at least 1 (it is {})", problem.steps));
  }
  // A forward and its backward come to some 400 bytes by the time they are drawn.
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
