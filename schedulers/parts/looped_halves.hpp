// Loops with I and W apart: 1F1B's turns over several chunks a device, in which W waits so long
// that devices hand their I on without a gap.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "schedulers/order.hpp"
#include "schedulers/parts/looped_turns.hpp"
#include "sim/base/index.hpp"

namespace stageline {

/// Fills the program, whose stage k is on device k mod devices. Device r does p-1-r + `ahead`
/// forwards to warm up, then one F and one I in turn; W follows its I by r turns. `back`: the
/// turns of I and W, as many as `forward`, with chunks counted from the last.
inline void put_looped_halves(const std::vector<LoopedTurn>& forward,
                              const std::vector<LoopedTurn>& back, std::int64_t ahead,
                              Program& program) {
  const int devices = static_cast<int>(program.devices.size());
  const int chunks = program.stages() / devices;
  for (int step = 0; step < program.steps; ++step) {
    const auto first = static_cast<std::uint32_t>(step * program.microbatches);
    for (int r = 0; r < devices; ++r) {
      const auto order = [&](int chunk) { return Order(program, chunk * devices + r); };
      const auto at = [&](LoopedTurn one) {
        return first + static_cast<std::uint32_t>(one.microbatch);
      };
      const std::size_t warm_up =
          std::min(forward.size(), as_size(std::int64_t{devices - 1 - r} + ahead));
      std::size_t weights = 0;
      const auto weight_grad = [&] {
        const LoopedTurn one = back[weights++];
        order(chunks - 1 - one.chunk).weight_grad(at(one));
      };
      for (std::size_t i = 0; i < forward.size() + warm_up; ++i) {
        if (i < forward.size()) order(forward[i].chunk).forward(at(forward[i]));
        if (i < warm_up) continue;
        const LoopedTurn one = back[i - warm_up];
        order(chunks - 1 - one.chunk).input_grad(at(one));
        if (i - warm_up >= as_size(r)) weight_grad();
      }
      while (weights < back.size()) weight_grad();
    }
  }
}

}  // namespace stageline
