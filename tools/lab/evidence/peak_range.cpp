// Computes the bounds from an account in which every op holds its most all the time.
#include "tools/lab/evidence/peak_range.hpp"

#include <algorithm>

#include "sim/analysis/memory.hpp"
#include "sim/base/index.hpp"

namespace stageline::lab {
namespace {

PeakRange range_of(const DeviceMemory& device, const Spans& compute) {
  PeakRange range{{}, device.peak};
  if (device.curve.empty()) return range;
  auto point = device.curve.begin();
  for (const Span& span : compute) {
    while (point + 1 != device.curve.end() && (point + 1)->at <= span.start) ++point;
    Bytes fewest = total(point->use);
    for (auto next = point + 1; next != device.curve.end() && next->at < span.end; ++next) {
      fewest = std::min(fewest, total(next->use));
    }
    range.least = std::max(range.least, fewest);
  }
  return range;
}

}  // namespace

std::vector<PeakRange> peak_ranges(const Program& program, Costs costs, const Timeline& timeline) {
  for (StageCosts& stage : costs.stage) stage.steps = {};
  const MemoryProfile memory = memory_of(program, costs, timeline, Curves::all);
  std::vector<PeakRange> ranges;
  for (std::size_t d = 0; d < memory.device.size(); ++d) {
    ranges.push_back(
        range_of(memory.device[d], timeline.lane(static_cast<int>(d), LaneKind::compute)));
  }
  return ranges;
}

}  // namespace stageline::lab
