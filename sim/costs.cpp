// Costs of overlapped pairs and uniform stages.
#include "sim/costs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/index.hpp"
#include "sim/checked.hpp"

namespace stageline {

bool Costs::has_collectives() const {
  return std::any_of(stage.begin(), stage.end(),
                     [](const StageCosts& one) { return one.blocking != BlockingTimes{}; });
}

bool Costs::pairs_hide() const {
  if (pair_overlap) return *pair_overlap > 0;
  return std::any_of(stage.begin(), stage.end(), [](const StageCosts& one) {
    return nth(one.blocking_by, hidden_in_pairs) != BlockingTimes{};
  });
}

BlockingTimes& BlockingTimes::operator+=(const BlockingTimes& other) {
  forward += other.forward;
  input_grad += other.input_grad;
  weight_grad += other.weight_grad;
  backward += other.backward;
  recompute += other.recompute;
  update += other.update;
  return *this;
}

Time alone(const CollectiveCosts& collective) {
  return checked_sum(collective.setup, transfer_time(collective.bytes, collective.route.bandwidth));
}

Time head_start_behind(const CollectiveCosts& reduction, Time last) {
  if (last >= reduction.backward) return reduction.head_start;
  __extension__ using Wide = __int128;
  return Time{static_cast<std::int64_t>(Wide{reduction.head_start.count()} * last.count() /
                                        reduction.backward.count())};
}

Time Costs::paced(Time time, int device) const {
  if (pace.empty() || nth(pace, device) == 1) return time;
  return Time{std::llround(static_cast<double>(time.count()) * nth(pace, device))};
}

Time pair_time(Time one, Time other, double overlap) {
  const double hidden = overlap * static_cast<double>(std::min(one, other).count());
  return one + other - Time{std::llround(hidden)};
}

Time pair_time(const Costs& costs, PairHalf one, PairHalf other) {
  if (costs.pair_overlap) return pair_time(one.time, other.time, *costs.pair_overlap);
  const Time transfers = one.transfers + other.transfers;
  return std::max({one.time, other.time, pair_work(costs, one, other), transfers});
}

Time pair_work(const Costs& costs, PairHalf one, PairHalf other) {
  const Time transfers = one.transfers + other.transfers;
  const double beside = costs.transfer_share * static_cast<double>(transfers.count());
  return one.time + other.time - transfers + Time{std::llround(beside)};
}

Costs uniform_costs(int stages, int devices, Time forward, Time input_grad, Time weight_grad,
                    Time transfer) {
  Costs costs;
  StageCosts stage;
  stage.forward = forward;
  stage.input_grad = input_grad;
  stage.weight_grad = weight_grad;
  stage.backward = input_grad + weight_grad;
  stage.recompute = forward;
  stage.stash_input_grad = Bytes{1};
  stage.stash_weight_grad = Bytes{1};
  stage.weights = stage.gradients = Bytes{1};
  costs.stage.assign(as_size(stages), stage);
  // One byte per picosecond, over a separate wire between every two devices.
  const Bytes message{transfer.count()};
  for (const StageEdge edge : chain_edges(stages)) costs.edges.push_back({edge, message, message});
  costs.network = free_network(devices);
  for (int from = 0; from < devices; ++from) {
    for (int to = 0; to < devices; ++to) {
      Route route;
      if (from != to && transfer > Time{}) {
        route.bandwidth = Bandwidth{1'000'000'000'000};
        route.resources = {static_cast<int>(costs.network.resources.size())};
        costs.network.resources.push_back(fmt::format("gpu{}>gpu{}", from, to));
      }
      costs.network.routes.push_back(route);
    }
  }
  return costs;
}

}  // namespace stageline
