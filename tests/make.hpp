// What several test files make: problems of equal or random stages, programs from scheduler specs.
#pragma once

#include <random>
#include <string>

#include "schedulers/parts/spread_vocabulary.hpp"
#include "schedulers/scheduler.hpp"
#include "sim/base/index.hpp"
#include "sim/engine.hpp"
#include "sim/lower/passes.hpp"
#include "sim/problem.hpp"

namespace stageline::test {

inline ScheduleSpec spec(const std::string& text) { return parse_schedules(text).at(0); }

/// The edges of a schedule's stages, where it has no chain of them: with activations and gradients
/// of so many bytes.
inline void connect_shares(const ScheduleSpec& spec, int devices, Costs& costs, Bytes activation,
                           Bytes gradient) {
  const VocabularyBarriers barriers = vocabulary_barriers(spec.knobs);
  if (barriers == VocabularyBarriers::whole) return;
  costs.edges.clear();
  for (const StageEdge edge : spread_edges(devices, barriers)) {
    costs.edges.push_back({edge, activation, gradient});
  }
}

/// How many stages to make costs for; of a scheduler that assigns them itself, some more than there
/// are devices.
inline int stages_for(const ScheduleSpec& spec, int devices) {
  if (spec.scheduler->assign != nullptr) return devices + devices / 2 + 1;
  return spec.scheduler->place(devices, spec.knobs).stages();
}

inline Placement placement_for(const ScheduleSpec& spec, int devices, const Costs& costs) {
  if (spec.scheduler->assign == nullptr) return spec.scheduler->place(devices, spec.knobs);
  return spec.scheduler->assign({costs, std::vector<double>(as_size(devices), 1), spec.knobs});
}

inline Problem problem_for(const ScheduleSpec& spec, int devices, Costs costs, int microbatches,
                           int steps = 1) {
  Problem problem;
  problem.placement = placement_for(spec, devices, costs);
  problem.one_layer.assign(problem.placement.stage.size(), true);
  problem.costs = std::move(costs);
  problem.microbatches = microbatches;
  problem.steps = steps;
  for (int i = 0; i < devices; ++i) problem.devices.push_back("gpu" + std::to_string(i));
  problem.memory.resize(problem.devices.size());
  problem.knobs = spec.knobs;
  return problem;
}

/// Everything from a program that has run.
struct Ran {
  Program program;
  Costs costs;
  TaskGraph graph;
  TaskTimes times;
  Timeline timeline;
};

inline Ran run_program(Program program, const Costs& costs) {
  Ran ran{complete(std::move(program), costs), costs, {}, {}, {}};
  validate(ran.program);
  ran.graph = compile(ran.program, costs);
  ran.times = simulate(ran.graph);
  ran.timeline = timeline_of(ran.program, ran.graph, ran.times);
  return ran;
}

inline Ran run_schedule(const std::string& text, int devices, const Costs& costs, int microbatches,
                        int steps = 1) {
  const ScheduleSpec chosen = spec(text);
  return run_program(
      chosen.scheduler->schedule(problem_for(chosen, devices, costs, microbatches, steps)), costs);
}

/// With all its routes in the table, where a test may change them.
inline Network tabulated(Network network) {
  std::vector<Route> routes;
  for (int from = 0; from < network.devices; ++from) {
    for (int to = 0; to < network.devices; ++to) routes.push_back(network.between(from, to));
  }
  network.routes = std::move(routes);
  return network;
}

/// Costs of unequal stages, seeded; zero now and then. With `transfer`, messages of unequal size
/// over ports that two neighbours share. Stashes and weights of a few bytes, so that nothing
/// cancels.
inline Costs random_costs(std::mt19937& random, int stages, int devices, bool transfer) {
  Costs costs = uniform_costs(stages, devices, Time{1}, Time{1}, Time{1});
  std::uniform_int_distribution<int> time(0, 12);
  std::uniform_int_distribution<int> bytes(0, 9);
  for (StageCosts& stage : costs.stage) {
    stage.forward = Time{time(random)};
    stage.input_grad = Time{time(random)};
    stage.weight_grad = Time{time(random)};
    stage.backward = stage.input_grad + stage.weight_grad;
    stage.recompute = stage.forward;
    stage.update = Time{time(random) / 4};
    stage.boundary = Bytes{bytes(random)};
    stage.stash_input_grad = Bytes{bytes(random)};
    stage.stash_weight_grad = Bytes{bytes(random) + 10};
    stage.weights = Bytes{bytes(random)};
    stage.workspace = Bytes{bytes(random)};
  }
  costs.pair_overlap = time(random) / 12.0;
  if (!transfer) return costs;
  for (EdgeCosts& edge : costs.edges) {
    edge.activation = Bytes{bytes(random)};
    edge.gradient = Bytes{bytes(random)};
  }
  costs.network = tabulated(network_of(uniform_cluster(
      devices, LinkSpec{Bandwidth{1'000'000'000'000}, Time{2 * (bytes(random) / 2)}},
      std::nullopt)));
  return costs;
}

}  // namespace stageline::test
