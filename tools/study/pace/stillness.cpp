// Looks where in a long run the last peak is reached.
#include "tools/study/pace/stillness.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/analysis/memory.hpp"
#include "sim/analysis/rhythm.hpp"
#include "sim/analysis/versions.hpp"
#include "sim/base/errors.hpp"

namespace stageline {
namespace {

constexpr std::int64_t most_peak_tasks = 1'000'000;  // of the run that says whether peaks grow
constexpr std::int64_t few_tasks = 40'000;           // some milliseconds
constexpr std::int64_t longer = 4;

// Whether weights and stashes travel, which takes long to settle.
bool has_split_roles(const Program& program) {
  const auto& places = program.placement.stage;
  return std::any_of(places.begin(), places.end(),
                     [](const StagePlace& place) { return place.apart(); });
}

struct Held {
  std::vector<std::int64_t> peaks;     // bytes by device and host
  std::vector<std::int64_t> versions;  // held, and updates of staleness, by stage; or none
  int steps = 1;  // the first that are under way when the last peak of bytes is reached
};

Held held_in(const Run& run, const Costs& costs) {
  const Timeline timeline = timeline_of(run.program, run.graph, run.times);
  Held held;
  // The versions of a stage on one device are those that its stashes wait for.
  if (!costs.bytes_known || has_split_roles(run.program)) {
    for (const StageVersions& stage : versions_of(run.program, timeline)) {
      held.versions.push_back(stage.held_peak);
      held.versions.push_back(static_cast<std::int64_t>(stage.staleness_max));
    }
  }
  const MemoryProfile memory = memory_of(run.program, costs, timeline, Curves::none);
  Time last{};
  for (const std::vector<DeviceMemory>* const all : {&memory.device, &memory.host}) {
    for (const DeviceMemory& one : *all) {
      held.peaks.push_back(one.peak.count);
      last = std::max(last, one.peak_at);
    }
  }
  std::uint32_t microbatch = 0;
  for (const Spans& lane : timeline.lanes) {
    for (const Span& span : lane) {
      if (span.start > last) break;
      microbatch = std::max(microbatch, microbatch_of(run.program, span.op));
    }
  }
  held.steps = static_cast<int>(microbatch) / run.program.microbatches + 1;
  return held;
}

// Whether anything gains as much from the middle to the longest run as before.
bool any_grows(const Held& shorter, const Held& middle, const Held& longest) {
  const auto grows = [](const auto& a, const auto& b, const auto& c) {
    for (std::size_t i = 0; i < c.size(); ++i) {
      if (b[i] > a[i] && c[i] - b[i] >= b[i] - a[i]) return true;
    }
    return false;
  };
  return grows(shorter.peaks, middle.peaks, longest.peaks) ||
         grows(shorter.versions, middle.versions, longest.versions);
}

// The first of a run's steps that reach all that it holds. Up to the moment of the last peak, a run
// of the steps that are under way then is the same run.
int steps_to_peaks(Runs& runs, const Held& held, int least, int longest) {
  int steps = std::clamp(held.steps, least, longest);
  while (steps < longest && !held.versions.empty()) {
    const Run& run = runs.of(steps);
    const Timeline timeline = timeline_of(run.program, run.graph, run.times);
    const std::vector<StageVersions> versions = versions_of(run.program, timeline);
    bool reached = true;
    for (std::size_t s = 0; s < versions.size(); ++s) {
      reached = reached && versions[s].held_peak >= held.versions[2 * s] &&
                static_cast<std::int64_t>(versions[s].staleness_max) >= held.versions[2 * s + 1];
    }
    if (reached) break;
    steps *= 2;
  }
  return std::min(steps, longest);
}

}  // namespace

Stillness stillness_of(Runs& runs, const Costs& costs, int least, int most) {
  const Run& usual = runs.of(most);
  const std::int64_t tasks = std::max<std::int64_t>(1, usual.graph.tasks());
  const std::int64_t times =
      has_split_roles(usual.program) ? std::clamp<std::int64_t>(few_tasks / tasks, 1, longer) : 1;
  try {
    const int longest = most * static_cast<int>(times);
    if (least >= longest) return {least, false};
    const Held held = held_in(runs.of(longest), costs);
    const int steps = steps_to_peaks(runs, held, least, longest);
    if (steps < longest || 2 * times * tasks > most_peak_tasks) return {steps, false};
    const bool grows = any_grows(held_in(runs.of(std::max(1, longest / 2)), costs), held,
                                 held_in(runs.of(2 * longest), costs));
    return {grows ? std::max(least, most) : longest, grows};
  } catch (const UsageError&) {  // so long a run cannot be added up
    return {least, false};
  }
}

}  // namespace stageline
