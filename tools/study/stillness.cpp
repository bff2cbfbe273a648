// Compares the peaks of longer and longer runs.
#include "tools/study/stillness.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/analysis/memory.hpp"
#include "sim/analysis/versions.hpp"
#include "sim/errors.hpp"

namespace stageline {
namespace {

constexpr std::int64_t most_tasks = 1'000'000;  // of the run that says whether peaks grow
constexpr std::int64_t few_tasks = 40'000;      // some milliseconds
constexpr std::int64_t longer = 4;

// The most of everything that a run holds: bytes by device and host, versions and updates by stage.
using Peaks = std::vector<std::int64_t>;

Peaks peaks_of(const Run& run, const Costs& costs) {
  const Timeline timeline = timeline_of(run.program, run.graph, run.times);
  const MemoryProfile memory = memory_of(run.program, costs, timeline, Curves::none);
  Peaks peaks;
  for (const DeviceMemory& device : memory.device) peaks.push_back(device.peak.count);
  for (const DeviceMemory& host : memory.host) peaks.push_back(host.peak.count);
  for (const StageVersions& stage : versions_of(run.program, timeline)) {
    peaks.push_back(stage.held_peak);
    peaks.push_back(static_cast<std::int64_t>(stage.staleness_max));
  }
  return peaks;
}

// Whether anything gains as much from the middle to the longest run as before.
bool any_grows(const Peaks& shorter, const Peaks& middle, const Peaks& longest) {
  for (std::size_t i = 0; i < longest.size(); ++i) {
    const std::int64_t before = middle[i] - shorter[i];
    if (before > 0 && longest[i] - middle[i] >= before) return true;
  }
  return false;
}

}  // namespace

Stillness stillness_of(Runs& runs, const Costs& costs, int least, int most) {
  const std::int64_t tasks = std::max<std::int64_t>(1, runs.of(most).graph.tasks());
  const std::int64_t times = std::clamp<std::int64_t>(few_tasks / tasks, 1, longer);
  try {
    const int longest = most * static_cast<int>(times);
    if (least >= longest) return {least, false};
    const Peaks last = peaks_of(runs.of(longest), costs);
    Peaks before;
    for (int steps = least; steps < longest; steps *= 2) {
      before = peaks_of(runs.of(steps), costs);
      if (before == last) return {steps, false};
    }
    if (2 * times * tasks > most_tasks) return {longest, false};
    const bool grows = any_grows(before, last, peaks_of(runs.of(2 * longest), costs));
    return {grows ? std::max(least, most) : longest, grows};
  } catch (const UsageError&) {  // so long a run cannot be added up
    return {least, false};
  }
}

}  // namespace stageline
