#include "schedulers/search/stash_bound.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "schedulers/parts/stage_times.hpp"
#include "sim/base/index.hpp"

namespace stageline {
namespace {

constexpr std::size_t most_bound_stages = 1024;

// To the next stage, or back to the one before; nothing where there is no such edge.
std::optional<Time> way_into(const std::vector<Way>& ways, std::size_t stage) {
  for (const Way& way : ways) {
    if (as_size(way.stage) == stage) return way.wire + way.latency;
  }
  return std::nullopt;
}

// How many micro-batches a device can hold, and what they give it to do.
struct Room {
  std::int64_t whole = 0;   // before I
  std::int64_t left = 0;    // between I and W
  std::int64_t either = 0;  // in any mixture
  Time others{};            // most I and W that are left beside one whole stash
};

Room room_of(const Problem& problem, const StashLimit& limit, std::size_t s,
             const StageTimes& stage) {
  const std::int64_t m = problem.microbatches;
  Room room{m, m, m, Time{}};
  if (s >= limit.most.size() || limit.most[s] < 0) return room;
  const bool bytes = limit.unit == StashLimit::Unit::bytes;
  const StageCosts& costs = problem.costs.stage[s];
  const std::int64_t whole = bytes ? costs.stash().count : 1;
  const std::int64_t left = bytes ? costs.stash_after_input_grad().count : 1;
  const auto into = [&](std::int64_t free, std::int64_t each) {
    return each == 0 ? m : std::clamp<std::int64_t>(free / each, 0, m);
  };
  const std::int64_t most = limit.most[s];
  room.whole = std::max<std::int64_t>(into(most, whole), 1);
  room.left = std::max<std::int64_t>(into(most, left), 1);
  room.either = std::max<std::int64_t>(into(most, std::min(whole, left)), 1);
  for (std::int64_t n = 0; n < room.whole; ++n) {
    const std::int64_t behind = std::min(into(most - (n + 1) * whole, left), m - 1 - n);
    const std::int64_t weights = std::max<std::int64_t>(behind, 0);
    room.others =
        std::max(room.others, (stage.backward + stage.weight) * n + stage.weight * weights);
  }
  return room;
}

void keep_longer(StashBound& best, const StashBound& one) {
  if (one.value > best.value) best = one;
}

}  // namespace

std::optional<StashBounds> stash_bounds(const Problem& problem, const StashLimit& limit,
                                        bool updates) {
  using Why = StashBound::Why;
  if (!problem.costs.kinds.empty()) return std::nullopt;  // the first ones may be the shortest
  const std::vector<StageTimes> stages = stage_times(problem, true);
  const std::size_t count = stages.size();
  if (count != problem.devices.size() || count > most_bound_stages) return std::nullopt;
  for (const double pace : problem.costs.pace) {
    if (pace < 1) return std::nullopt;
  }
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
    const std::optional<Time> there = way_into(stages[s - 1].to, s);
    const std::optional<Time> here = way_into(stages[s].back, s - 1);
    if (!there || !here) return std::nullopt;
    ahead[s] = ahead[s - 1] + stages[s - 1].forward + *there;
    back[s] = back[s - 1] + stages[s].backward + *here;
  }
  const std::int64_t m = problem.microbatches;
  StashBounds bound;
  for (std::size_t s = 0; s < count; ++s) {
    const Time f = stages[s].forward;
    const Time i = stages[s].backward;
    const Time w = stages[s].weight;
    const Room room = room_of(problem, limit, s, stages[s]);
    const Time to_last = ahead[count - 1] + stages[count - 1].forward - ahead[s];
    const Time rt = to_last + back[count - 1] - back[s];
    const auto positive = [](Time time) { return std::max(time, Time{}); };
    const bool waits = m > room.whole;  // the last F comes behind the first I
    const Time warm = positive(rt - f * room.whole);
    const Time cool = waits ? positive(rt - f - room.others) : Time{};
    const Time cool_input = waits ? positive(rt - f - i * (room.whole - 1)) : Time{};
    const Time own = (f + i + w) * m + warm + cool;
    // All but `either` W's are done when the last F starts, all but `left` when the last I ends.
    const Time tail =
        (f + i) * m + warm + std::max(w * (m - room.either) + cool_input, w * (m - room.left));
    const std::int64_t rounds = (m - 1) / room.either;
    const std::int64_t input_rounds = (m - 1) / room.whole;
    const Time chain =
        std::max((rt + i) * (rounds + 1) + w * rounds, (rt + i) * (input_rounds + 1));
    const auto update = [&](std::size_t r) {
      return updates ? problem.costs.stage[r].update : Time{};
    };
    keep_longer(bound.span, {own + update(s), Why::own, s, s, warm + cool});
    keep_longer(bound.makespan, {ahead[s] + own + update(s), Why::own, s, s, warm + cool});
    for (std::size_t r = 0; r <= s; ++r) {
      // Before the first F of s, and behind its last I: the gradient's way back to r, I and W
      // there.
      const Time returns = back[s] - i - back[r] + stages[r].backward;
      const Time around = ahead[s] - ahead[r] + returns + stages[r].weight + update(r);
      for (const StashBound& one : {StashBound{around + tail, Why::tail, s, r, Time{}},
                                    StashBound{around + chain, Why::chain, s, r, Time{}}}) {
        keep_longer(bound.span, one);
        if (r == 0) keep_longer(bound.makespan, one);
      }
    }
  }
  return bound;
}

std::optional<StepTimes> stash_bound(const Problem& problem, const StashLimit& limit) {
  const std::optional<StashBounds> bounds = stash_bounds(problem, limit);
  if (!bounds) return std::nullopt;
  return StepTimes{bounds->span.value, bounds->makespan.value};
}

std::string in_words(const StashBound& bound, const std::vector<std::string>& devices) {
  const std::string& device = devices[bound.device];
  const std::string back =
      bound.seen_from == bound.device
          ? ""
          : fmt::format(", then the last gradient's way to {}", devices[bound.seen_from]);
  switch (bound.why) {
    case StashBound::Why::own:
      return bound.idle > Time{}
                 ? fmt::format(
                       "{}: its work, and {} in which it waits for gradients with no more "
                       "stashes to fill",
                       device, print(bound.idle))
                 : fmt::format("{}: its work", device);
    case StashBound::Why::tail:
      return fmt::format("{}: its work to the last gradient{}", device, back);
    case StashBound::Why::chain:
      return fmt::format("{}: micro-batches that wait for a stash of earlier ones{}", device, back);
    case StashBound::Why::machine:
      return fmt::format("{}: its work, behind what must come before and ahead of what must follow",
                         device);
    case StashBound::Why::area:
      return fmt::format("{}: how long all stashes are held, of as many as there may be", device);
  }
  return "";
}

}  // namespace stageline
