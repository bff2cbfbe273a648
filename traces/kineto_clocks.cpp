// Clocks of different hosts, brought together by the messages: none arrives before it was sent.
//
// clang-format off
//   rank 0   0F3 ──sent──┐            ┌──► 0B3     a message 0 → 1 says how early clock 1 may be
//   rank 1               └──► 1F3 1B3 ┘            at most, one 1 → 0 how late
// clang-format on
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "sim/errors.hpp"
#include "traces/kineto_rank.hpp"

namespace stageline {
namespace {

constexpr std::int64_t none = std::numeric_limits<std::int64_t>::min();

// clock[to] - clock[from] must be at least `least`.
struct Bound {
  int from = 0;
  int to = 0;
  std::int64_t least = 0;
  const KinetoMessage* tightest = nullptr;
};

std::vector<Bound> bounds_of(const std::vector<KinetoMessage>& messages,
                             const std::vector<int>& clock) {
  std::map<std::pair<int, int>, Bound> bounds;
  for (const KinetoMessage& message : messages) {
    const int from = clock[static_cast<std::size_t>(message.from)];
    const int to = clock[static_cast<std::size_t>(message.to)];
    const std::int64_t least = message.sent - message.arrived;
    const auto [at, added] = bounds.try_emplace({from, to}, Bound{from, to, least, &message});
    if (!added && least > at->second.least) at->second = {from, to, least, &message};
  }
  std::vector<Bound> list;
  for (const auto& [ends, bound] : bounds) list.push_back(bound);
  return list;
}

[[noreturn]] void refuse(const std::vector<KinetoRank>& ranks, const Bound& bound) {
  const KinetoMessage& message = *bound.tightest;
  const KinetoRank& from = ranks[static_cast<std::size_t>(message.from)];
  const KinetoRank& to = ranks[static_cast<std::size_t>(message.to)];
  throw TraceError(
      to.file, "",
      fmt::format(
          "no shift of the clocks lets every message arrive after it was sent: {} (step {}) "
          "ends {} before what it reads was sent by {}, and messages the other way allow "
          "less; are these profiles of one run?",
          print(message.reader), to.steps[static_cast<std::size_t>(message.read->step)],
          print(Time(std::chrono::nanoseconds(bound.least))), from.file));
}

// Longest ways from clock 0 (Bellman-Ford): how late each clock must be shifted at least.
std::vector<std::int64_t> longest(const std::vector<KinetoRank>& ranks,
                                  const std::vector<Bound>& bounds, int clocks, bool backwards) {
  std::vector<std::int64_t> at(static_cast<std::size_t>(clocks), none);
  at[0] = 0;
  for (int round = 0;; ++round) {
    bool changed = false;
    for (const Bound& bound : bounds) {
      const auto from = static_cast<std::size_t>(backwards ? bound.to : bound.from);
      const auto to = static_cast<std::size_t>(backwards ? bound.from : bound.to);
      if (at[from] == none || at[from] + bound.least <= at[to]) continue;
      if (round >= clocks) refuse(ranks, bound);
      at[to] = at[from] + bound.least;
      changed = true;
    }
    if (!changed) return at;
  }
}

}  // namespace

std::vector<ClockShift> align_clocks(const std::vector<KinetoRank>& ranks) {
  const std::vector<KinetoMessage> messages = messages_of(ranks);
  const auto late = [](const std::vector<Bound>& bounds) {
    return std::any_of(bounds.begin(), bounds.end(), [](const Bound& b) { return b.least > 0; });
  };
  // Ranks of one host have one clock, unless their own messages say otherwise.
  std::vector<int> clock;
  std::vector<std::string> hosts;
  for (const KinetoRank& rank : ranks) {
    const auto known =
        rank.host.empty() ? hosts.end() : std::find(hosts.begin(), hosts.end(), rank.host);
    clock.push_back(static_cast<int>(known - hosts.begin()));
    if (known == hosts.end()) hosts.push_back(rank.host);
  }
  std::vector<Bound> bounds = bounds_of(messages, clock);
  if (!late(bounds)) return {};
  const bool one_host_two_clocks = std::any_of(
      bounds.begin(), bounds.end(), [](const Bound& b) { return b.from == b.to && b.least > 0; });
  auto clocks = static_cast<int>(hosts.size());
  if (one_host_two_clocks) {
    clocks = static_cast<int>(ranks.size());
    for (int i = 0; i < clocks; ++i) clock[static_cast<std::size_t>(i)] = i;
    bounds = bounds_of(messages, clock);
  }
  const std::vector<std::int64_t> least = longest(ranks, bounds, clocks, false);
  const std::vector<std::int64_t> most = longest(ranks, bounds, clocks, true);
  std::vector<ClockShift> shifts;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    // The allowed shifts are between the two ends, and so is what lies in the middle of both.
    const std::int64_t low = least[static_cast<std::size_t>(clock[i])];
    const std::int64_t high = -most[static_cast<std::size_t>(clock[i])];
    const std::int64_t middle = low + (high - low) / 2;
    shifts.push_back({ranks[i].rank.value_or(static_cast<int>(i)), std::chrono::nanoseconds(middle),
                      std::chrono::nanoseconds((high - low) / 2)});
  }
  return shifts;
}

}  // namespace stageline
