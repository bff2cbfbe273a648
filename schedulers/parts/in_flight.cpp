#include "schedulers/parts/in_flight.hpp"

#include <algorithm>

#include "schedulers/parts/stage_times.hpp"
#include "sim/base/index.hpp"

namespace stageline {
namespace {

__extension__ using Wide = __int128;  // a few times 53 days are more than 64 bits hold

constexpr int quarters[] = {4, 5, 6, 7, 8, 10, 12, 16, 20};  // of the fastest passage's time

// From one stage to the next, message included.
Time way_to(const std::vector<Way>& ways, int stage) {
  for (const Way& way : ways) {
    if (way.stage == stage) return way.wire + way.latency;
  }
  return Time{};
}

}  // namespace

std::vector<std::vector<std::uint32_t>> in_flight_counts(const Problem& problem) {
  const std::vector<StageTimes> stages = stage_times(problem, true);
  const auto count = static_cast<int>(stages.size());
  std::vector<Time> work(problem.devices.size());
  for (const StageTimes& stage : stages) {
    nth(work, stage.device) += stage.forward + stage.backward + stage.weight;
  }
  const Wide pace =
      4 * Wide{std::max(*std::max_element(work.begin(), work.end()), Time{1}).count()};
  std::vector<std::vector<std::uint32_t>> all;
  for (const int slow : quarters) {
    std::vector<Wide> starts(stages.size());  // times four, as all below
    for (int s = 0; s + 1 < count; ++s) {
      const Time hop = nth(stages, s).forward + way_to(nth(stages, s).to, s + 1);
      nth(starts, s + 1) = nth(starts, s) + slow * Wide{hop.count()};
    }
    Wide back = starts.back() + 4 * Wide{stages.back().forward.count()};
    std::vector<std::uint32_t> counts(stages.size(), 1);
    for (int s = count - 1; s >= 0; --s) {
      const StageTimes& stage = nth(stages, s);
      const Wide held = back + 4 * Wide{(stage.backward + stage.weight).count()} - nth(starts, s);
      const auto most = static_cast<std::int64_t>((held + pace - 1) / pace);
      nth(counts, s) =
          static_cast<std::uint32_t>(std::clamp<std::int64_t>(most, 1, problem.microbatches));
      if (s == 0) continue;
      back += slow * Wide{(stage.backward + way_to(stage.back, s - 1)).count()};
    }
    if (std::find(all.begin(), all.end(), counts) == all.end()) all.push_back(counts);
  }
  return all;
}

}  // namespace stageline
