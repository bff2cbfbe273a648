// Branch and bound over the orders of one step, level by level: of the states with n ops placed
// (schedulers/search/order_states.hpp) those stay that may still become a shorter order than the
// best known and that no other state makes superfluous; where they are more than `width`, the most
// promising. Where none had to be left out, the outcome is proved.
//
// Beam search with dominance; for the levels see Sabuncuoglu & Bayiz 1999,
// doi 10.1016/S0377-2217(98)00319-1.
#pragma once

#include <cstdint>
#include <functional>

#include "schedulers/search/order_states.hpp"

namespace stageline {

struct BeamOutcome {
  StepLists lists;  // empty: no order is shorter than asked was found
  Time value{};     // of `lists`
  /// A lower bound: no order that next() gives is shorter than this.
  Time least{};
  std::int64_t states = 0;  // looked at
  bool stopped = false;     // before the end
};

struct BeamLimits {
  Time below{};            // orders as long as this are not wanted
  std::size_t width = 64;  // states of a level
  /// Asked now and then, if given, with the states looked at so far.
  std::function<bool(std::int64_t)> stop;
};

/// The same with any number of threads and on every machine, but for `stop`.
BeamOutcome beam_search(const OrderStates& states, const BeamLimits& limits);

}  // namespace stageline
