#include "schedulers/parts/stage_times.hpp"

#include "sim/base/index.hpp"

namespace stageline {

std::vector<StageTimes> stage_times(const Problem& problem, bool split) {
  const Costs& costs = problem.costs;
  std::vector<StageTimes> stages;
  for (int s = 0; s < problem.placement.stages(); ++s) {
    const StageCosts& from = nth(costs.stage, s);
    StageTimes to;
    to.device = nth(problem.placement.stage, s).replicas[0];
    to.forward = from.forward;
    to.backward = split ? from.input_grad : from.backward;
    to.weight = from.weight_grad;
    stages.push_back(to);
  }
  const auto way = [&](int from, int to, Bytes bytes) {
    Way one;
    one.stage = to;
    const int a = nth(stages, from).device;
    const int b = nth(stages, to).device;
    one.over_a_link = a != b;
    if (a == b) return one;
    const Route& route = costs.network.between(a, b);
    one.wire = transfer_time(bytes, route.bandwidth);
    one.latency = route.latency;
    return one;
  };
  for (const EdgeCosts& edge : costs.edges) {
    const int from = edge.edge.from;
    const int to = edge.edge.to;
    nth(stages, from).to.push_back(way(from, to, edge.activation));
    nth(stages, to).back.push_back(way(to, from, edge.gradient));
    nth(stages, to).needs.push_back(from);
  }
  return stages;
}

}  // namespace stageline
