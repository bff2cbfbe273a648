#include "cost_models/gathers.hpp"

#include <algorithm>

#include "sim/checked.hpp"

namespace stageline {

namespace {

std::vector<StateExchange> exchanges_in_group(Zero zero, ZeroEvery every, Bytes weights,
                                              Bytes gradients) {
  const StateExchange scatter{CollectiveKind::reduce_scatter, gradients,
                              ExchangeTime::last_backward};
  const StateExchange scatter_each{CollectiveKind::reduce_scatter, gradients,
                                   ExchangeTime::backward};
  const StateExchange gather{CollectiveKind::all_gather, weights, ExchangeTime::update};
  const bool once = every == ZeroEvery::step;
  switch (zero) {
    case Zero::none:
      return {{CollectiveKind::all_reduce, gradients, ExchangeTime::last_backward}};
    case Zero::optimizer:
      return {scatter, gather};
    case Zero::gradients:
      return {once ? scatter : scatter_each, gather};
    case Zero::weights:
      if (once)
        return {{CollectiveKind::all_gather, weights, ExchangeTime::first_forward}, scatter};
      return {{CollectiveKind::all_gather, weights, ExchangeTime::forward},
              {CollectiveKind::all_gather, weights, ExchangeTime::backward},
              scatter_each};
  }
  return {};  // unreachable; g++ wants it
}

}  // namespace

std::vector<StateExchange> state_exchanges(Zero zero, ZeroEvery every, Bytes weights,
                                           Bytes gradients, int groups, int ranks) {
  std::vector<StateExchange> exchanges = exchanges_in_group(zero, every, weights, gradients);
  if (zero == Zero::none || groups == 1) return exchanges;
  const Bytes part{gradients.count / ranks + (gradients.count % ranks > 0 ? 1 : 0)};
  exchanges.push_back(
      {CollectiveKind::all_reduce, part, ExchangeTime::last_backward, Among::shard_groups});
  return exchanges;
}

ExposedTimes exposed_gathers(std::span<const GatheredUnit> units) {
  ExposedTimes exposed;
  if (units.empty()) return exposed;
  exposed.forward = units.front().gather;
  exposed.backward = checked_sum(units.back().gather, units.front().scatter);
  for (std::size_t i = 0; i < units.size(); ++i) {
    const bool first = i == 0;
    const bool last = i + 1 == units.size();
    const Time next = last ? Time{} : units[i + 1].gather;
    exposed.forward = checked_sum(exposed.forward, std::max(Time{}, next - units[i].forward));
    const Time exchanged =
        checked_sum(first ? Time{} : units[i - 1].gather, last ? Time{} : units[i + 1].scatter);
    exposed.backward =
        checked_sum(exposed.backward, std::max(Time{}, exchanged - units[i].backward));
  }
  return exposed;
}

Time exposed_first_gathers(std::span<const GatheredUnit> units, Time before) {
  Time exposed{};
  for (const GatheredUnit& unit : units) {
    exposed = checked_sum(exposed, std::max(Time{}, unit.gather - before));
    before = unit.forward;
  }
  return exposed;
}

}  // namespace stageline
