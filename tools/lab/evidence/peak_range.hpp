// Between which bounds a device's peak is, where it is not known how far an op was when a message
// came or left.
#pragma once

#include <vector>

#include "sim/base/units.hpp"
#include "sim/costs.hpp"
#include "sim/program.hpp"
#include "sim/timeline.hpp"

namespace stageline::lab {

/// They follow from the most that each op holds: at its own moment of the most there are at least
/// the fewest messages of its time, and at no moment of the run more than beside that.
struct PeakRange {
  Bytes least{};
  Bytes most{};
};

/// By device, of the program run at these times. Throws as memory_of().
std::vector<PeakRange> peak_ranges(const Program& program, Costs costs, const Timeline& timeline);

}  // namespace stageline::lab
