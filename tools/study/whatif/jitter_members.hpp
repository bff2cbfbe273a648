// Which devices do an op together, so that it is as slow as the slowest of them.
#pragma once

#include "cost_models/perturbation/perturbation.hpp"
#include "sim/costs.hpp"
#include "sim/task_graph.hpp"
#include "tools/study/case.hpp"

namespace stageline {

/// The members of the tasks of a graph compiled of the costs. The tensor- and context-parallel
/// ranks of a simulated device do every op together. Replicas of which a stage's ops exchange
/// weights, gradients or tokens (ZeRO 2 and 3 in every micro-batch, experts) do all its ops
/// together, those that each simulated pipeline represents included; where the update alone
/// gathers, that one.
JitterMembers jitter_members(const Case& asked, const Costs& costs, const TaskGraph& graph);

}  // namespace stageline
