// Whether a schedule fits the devices' memory: simulated, since messages that wait for their reader
// depend on when the ops run.
#pragma once

#include <vector>

#include "sim/problem.hpp"
#include "sim/program.hpp"

namespace stageline {

/// One run of a program.
struct MemoryTrial {
  std::vector<Bytes> over;  // by device, of the peak over the memory; 0: fits, or no size is known
  Time span{};              // longest of a device's compute, first start to last end
  Time makespan{};

  bool fits() const;
};

/// Completes and simulates what a scheduler has written for the problem. Throws what the passes and
/// the engine throw.
MemoryTrial try_memory(const Problem& problem, const Program& program);

}  // namespace stageline
