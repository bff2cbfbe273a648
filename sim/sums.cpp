// Bounds the sums of times and bytes of a case.
#include "sim/sums.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "sim/base/errors.hpp"
#include "sim/stash_readers.hpp"

namespace stageline {
namespace {

__extension__ using Wide = __int128;

double seconds(Wide picoseconds) { return static_cast<double>(picoseconds) / 1e12; }

std::vector<int> homes(const StagePlace& place) {
  std::set<int> all(place.replicas.begin(), place.replicas.end());
  all.insert(place.input_grad.begin(), place.input_grad.end());
  all.insert(place.weight_grad.begin(), place.weight_grad.end());
  return {all.begin(), all.end()};
}

// The narrowest bandwidth and the longest latency of all routes from one stage to another.
Route worst_route(const Network& network, const StagePlace& from, const StagePlace& to) {
  Route worst;
  for (const int a : homes(from)) {
    for (const int b : homes(to)) {
      if (a < 0 || b < 0 || a >= network.devices || b >= network.devices) continue;
      const Route& route = network.between(a, b);
      worst.bandwidth = std::min(worst.bandwidth, route.bandwidth);
      worst.latency = std::max(worst.latency, route.latency);
    }
  }
  return worst;
}

Wide message_time(const EdgeCosts& edge, std::string_view cargo, Bytes bytes, const Route& route,
                  int parts) {
  try {
    return Wide{transfer_time(bytes, route.bandwidth).count()} +
           Wide{route.latency.count()} * parts;
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("the {} between stages {} and {}: {}", cargo, edge.edge.from,
                                 edge.edge.to, error.what()));
  }
}

void check_time(const Costs& costs, const Placement& placement, std::int64_t microbatches,
                std::int64_t steps) {
  Wide compute = 0;
  Wide updates = 0;
  for (std::size_t s = 0; s < costs.stage.size(); ++s) {
    const StageCosts& stage = costs.stage[s];
    compute += Wide{stage.forward.count()} +
               Wide{stage.recompute.count()} * stash_readers(placement.stage[s]) +
               std::max(Wide{stage.backward.count()},
                        Wide{stage.input_grad.count()} + stage.weight_grad.count());
    // One per micro-batch, or one per replica and step.
    const auto replicas = static_cast<std::int64_t>(placement.stage[s].replicas.size());
    updates += Wide{stage.update.count()} * std::max(Wide{microbatches}, Wide{replicas} * steps);
  }
  Wide messages = 0;
  for (const EdgeCosts& edge : costs.edges) {
    const StagePlace& from = placement.stage[edge.edge.from];
    const StagePlace& to = placement.stage[edge.edge.to];
    messages +=
        message_time(edge, "activations", edge.activation, worst_route(costs.network, from, to), 1);
    messages += message_time(edge, "gradients", edge.gradient, worst_route(costs.network, to, from),
                             to.parts());
  }
  const Wide longest = (compute + messages) * microbatches + updates;
  if (longest <= longest_run.count()) return;
  throw UsageError(fmt::format(
      "the run could last {:.3g} s, longer than the clock's {:.3g} s (53 days): {} micro-batches in {} "
      "step{}, each {:.3g} s of compute and {:.3g} s of messages; check the units of times and links",
      seconds(longest), to_seconds(longest_run), microbatches, steps, steps == 1 ? "" : "s",
      seconds(compute), seconds(messages)));
}

void check_bytes(const Costs& costs, const Placement& placement, std::int64_t microbatches) {
  Wide weights = 0;
  Wide state = 0;
  Wide stash = 0;
  for (std::size_t s = 0; s < costs.stage.size(); ++s) {
    const StageCosts& stage = costs.stage[s];
    const auto copies =
        static_cast<Wide>(std::max<std::size_t>(homes(placement.stage[s]).size(), 1));
    weights += Wide{stage.weights.count} * copies;
    // Including a moving average of the gradients, and the buffers of a reduction and of an op.
    state += (Wide{stage.gradients.count} * 2 + stage.optimizer_state.count +
              Wide{stage.communication_buffer.count} * 2) *
             copies;
    // The stage's input and its stash: one on the forward's device and one on each reader's.
    stash += (Wide{stage.stash_input_grad.count} + stage.stash_weight_grad.count +
              stage.boundary.count) *
                 (stash_readers(placement.stage[s]) + 1) +
             stage.workspace.count + stage.backward_workspace.value_or(Bytes{}).count +
             std::max<std::int64_t>(stage.earlier_gradients.count, 0);
  }
  for (const EdgeCosts& edge : costs.edges) {
    stash += 2 * (Wide{edge.activation.count} + edge.gradient.count);
  }
  const Wide most = weights * (Wide{microbatches} + 2) + state + stash * microbatches;
  if (most <= most_bytes_held.count) return;
  throw UsageError(fmt::format(
      "{} micro-batches may need {:.3g} bytes ({:.3g} of weights a version, {:.3g} of gradients and optimizer state, {:.3g} of activations each), more than the {:.3g} that can be added up; check the sizes' unit",
      microbatches, static_cast<double>(most), static_cast<double>(weights),
      static_cast<double>(state), static_cast<double>(stash),
      static_cast<double>(most_bytes_held.count)));
}

}  // namespace

void check_sums(const Costs& costs, const Placement& placement, std::int64_t microbatches,
                std::int64_t steps) {
  if (costs.stage.size() != placement.stage.size()) return;  // compile() reports it
  check_time(costs, placement, microbatches, steps);
  check_bytes(costs, placement, microbatches);
}

}  // namespace stageline
