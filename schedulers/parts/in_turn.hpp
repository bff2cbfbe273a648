// What the 1F1B family has in common: so many forwards to warm up, then one forward and one
// backward in turn, then the backwards that are left. They differ in how many.
#pragma once

#include "schedulers/order.hpp"

namespace stageline {

/// The list of one stage, all steps. `ahead` forwards more than backwards, at most a step's.
inline void warm_up_then_in_turn(Program& program, int stage, int ahead) {
  Order order(program, stage);
  const int m = program.microbatches;
  const int warm_up = ahead < m ? ahead : m;
  for (int step = 0; step < program.steps; ++step) {
    const auto first = static_cast<std::uint32_t>(step) * static_cast<std::uint32_t>(m);
    for (int i = 0; i < m + warm_up; ++i) {
      if (i < m) order.forward(first + static_cast<std::uint32_t>(i));
      if (i >= warm_up) order.backward(first + static_cast<std::uint32_t>(i - warm_up));
    }
  }
}

}  // namespace stageline
