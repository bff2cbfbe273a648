#include "schedulers/parts/stash_bound.hpp"

#include <algorithm>

#include "schedulers/parts/stage_times.hpp"
#include "sim/index.hpp"

namespace stageline {
namespace {

constexpr std::size_t most_stages = 1024;

// To the next stage, or back to the one before; nothing where there is no such edge.
std::optional<Time> way_to(const std::vector<Way>& ways, std::size_t stage) {
  for (const Way& way : ways) {
    if (as_size(way.stage) == stage) return way.wire + way.latency;
  }
  return std::nullopt;
}

}  // namespace

std::optional<StepTimes> stash_bound(const Problem& problem, const StashLimit& limit) {
  const std::vector<StageTimes> stages = stage_times(problem, true);
  const std::size_t count = stages.size();
  if (count != problem.devices.size() || count > most_stages) return std::nullopt;
  if (limit.unit != StashLimit::Unit::stashes) return std::nullopt;
  for (std::size_t s = 0; s < count; ++s) {
    if (stages[s].device != static_cast<int>(s)) return std::nullopt;
    if (problem.costs.stage[s].backward < stages[s].backward + stages[s].weight) {
      return std::nullopt;
    }
  }
  // Sums from the first stage: F and the message behind it, I and the message before it.
  std::vector<Time> ahead(count);
  std::vector<Time> back(count);
  for (std::size_t s = 1; s < count; ++s) {
    const std::optional<Time> there = way_to(stages[s - 1].to, s);
    const std::optional<Time> here = way_to(stages[s].back, s - 1);
    if (!there || !here) return std::nullopt;
    ahead[s] = ahead[s - 1] + stages[s - 1].forward + *there;
    back[s] = back[s - 1] + stages[s].backward + *here;
  }
  const std::int64_t m = problem.microbatches;
  StepTimes bound;
  for (std::size_t s = 0; s < count; ++s) {
    const Time f = stages[s].forward;
    const Time i = stages[s].backward;
    const Time w = stages[s].weight;
    const bool limited = s < limit.most.size() && limit.most[s] >= 0;
    const std::int64_t held = limited ? std::clamp<std::int64_t>(limit.most[s], 1, m) : m;
    const Time to_last = ahead[count - 1] + stages[count - 1].forward - ahead[s];
    const Time rt = to_last + back[count - 1] - back[s];
    const auto positive = [](Time time) { return std::max(time, Time{}); };
    const Time warm = positive(rt - f * held);
    const Time cool = m > held ? positive(rt - f - (i + w) * (held - 1)) : Time{};
    const Time cool_input = m > held ? positive(rt - f - i * (held - 1)) : Time{};
    const Time own = (f + i + w) * m + warm + cool;
    const std::int64_t rounds = (m - 1) / held;
    const Time tail = (f + i) * m + w * (m - held) + warm + cool_input;
    const Time chain = (rt + i) * (rounds + 1) + w * rounds;
    bound.span = std::max(bound.span, own);
    bound.makespan = std::max(bound.makespan, ahead[s] + own);
    for (std::size_t r = 0; r <= s; ++r) {
      // Before the first F of s, and behind its last I: the gradient's way back to r, I and W
      // there.
      const Time returns = back[s] - i - back[r] + stages[r].backward;
      const Time around = ahead[s] - ahead[r] + returns + stages[r].weight;
      bound.span = std::max(bound.span, around + std::max(tail, chain));
      if (r == 0) bound.makespan = std::max(bound.makespan, around + std::max(tail, chain));
    }
  }
  return bound;
}

}  // namespace stageline
