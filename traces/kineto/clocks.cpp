// Aligns the clocks of different hosts by their messages: none may arrive before it was sent.
//
// clang-format off
//   rank 0   0F3 ──sent──┐            ┌──► 0B3     a message 0 → 1 bounds how early clock 1 may be
//   rank 1               └──► 1F3 1B3 ┘            at most, a message 1 → 0 how late
// clang-format on
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <string_view>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "traces/kineto/rank.hpp"

namespace stageline {
namespace {

constexpr std::int64_t none = std::numeric_limits<std::int64_t>::min();

// A lower bound: clock[to] - clock[from] >= `least`.
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
    const int from = nth(clock, message.from);
    const int to = nth(clock, message.to);
    const std::int64_t least = message.sent - message.arrived;
    const auto [at, added] = bounds.try_emplace({from, to}, Bound{from, to, least, &message});
    if (!added && least > at->second.least) at->second = {from, to, least, &message};
  }
  std::vector<Bound> list;
  for (const auto& [ends, bound] : bounds) list.push_back(bound);
  return list;
}

const KinetoRank& rank_at(const std::vector<KinetoRank>& ranks, int index) {
  return nth(ranks, index);
}

// From the start of the first range to the end of the last, by the rank's own clock.
struct Stretch {
  std::int64_t start = std::numeric_limits<std::int64_t>::max();
  std::int64_t end = std::numeric_limits<std::int64_t>::min();
};
Stretch stretch_of(const KinetoRank& rank) {
  Stretch stretch;
  const auto hold = [&](std::int64_t start, std::int64_t end) {
    stretch.start = std::min(stretch.start, start);
    stretch.end = std::max(stretch.end, end);
  };
  for (const KinetoRange& range : rank.ranges) hold(range.start, range.end);
  for (const KinetoUpdate& update : rank.updates) hold(update.start, update.end);
  return stretch;
}

// "2026-11-22 10:14:03.215"; for a clock that does not count from 1970, its seconds.
std::string moment(std::int64_t nanoseconds) {
  const std::string date = kineto_date(nanoseconds);
  const std::int64_t milliseconds = nanoseconds / 1'000'000;
  if (date.empty()) return fmt::format("{}.{:03} s", milliseconds / 1000, milliseconds % 1000);
  const std::int64_t of_day = milliseconds % 86'400'000;
  return fmt::format("{} {:02}:{:02}:{:02}.{:03}", date, of_day / 3'600'000, of_day / 60'000 % 60,
                     of_day / 1000 % 60, of_day % 1000);
}

// "a.json is from 2026-11-22 10:14:03.215 to 2026-11-22 10:14:04.020"
std::string when(const KinetoRank& rank) {
  const Stretch stretch = stretch_of(rank);
  return fmt::format("{} is from {} to {}", rank.file, moment(stretch.start), moment(stretch.end));
}

// A bound of how much later a clock must be, in words.
std::string bounded(std::int64_t nanoseconds, bool from_below) {
  const bool earlier = nanoseconds < 0;
  return fmt::format("{} {} {}", from_below != earlier ? "at least" : "at most",
                     print(kineto_time(earlier ? -nanoseconds : nanoseconds)),
                     earlier ? "earlier" : "later");
}

// Where ranges do not name their stage, the ranks may as well be replicas.
std::string_view contradiction(const std::vector<KinetoRank>& ranks) {
  return ranks[0].named_by_stage
             ? "so these are not profiles of one run"
             : "so these are not profiles of one run, or not of its stages in the order of their "
               "ranks (replicas of data parallelism are none)";
}

[[noreturn]] void refuse(const std::vector<KinetoRank>& ranks, const std::vector<Bound>& bounds) {
  const Bound* there = nullptr;  // of those two that contradict each other most
  const Bound* back = nullptr;
  for (const Bound& one : bounds) {
    for (const Bound& other : bounds) {
      if (one.from != other.to || one.to != other.from || one.least + other.least <= 0) continue;
      if (there != nullptr && one.least + other.least <= there->least + back->least) continue;
      there = &one;
      back = &other;
    }
  }
  if (there == nullptr) {  // each pair of clocks can be brought together, but not all at once
    std::string all;
    for (const KinetoRank& rank : ranks) all += (all.empty() ? "" : ", ") + when(rank);
    throw TraceError(files_of(ranks), "",
                     fmt::format("no shift of the clocks lets every message arrive after it was "
                                 "sent, {}: {}",
                                 contradiction(ranks), all));
  }
  const KinetoRank& from = rank_at(ranks, there->tightest->from);
  const KinetoRank& to = rank_at(ranks, there->tightest->to);
  const auto reads = [&](const Bound& bound) {
    const KinetoMessage& message = *bound.tightest;
    return fmt::format("{} (step {})", print(message.reader),
                       nth(rank_at(ranks, message.to).steps, message.read->step));
  };
  throw TraceError(
      to.file, "",
      fmt::format("no shift of the clocks lets every message arrive after it was sent: for {} its "
                  "clock must be {}, for {} of {} {}, {}; {}, {}",
                  reads(*there), bounded(there->least, true), reads(*back),
                  rank_at(ranks, back->tightest->to).file, bounded(-back->least, false),
                  contradiction(ranks), when(from), when(to)));
}

// Ranks of one run are at work together.
void check_together(const std::vector<KinetoRank>& ranks, bool one_clock) {
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const bool one_host = !ranks[i].host.empty() && ranks[i].host == ranks[j].host;
      if (!one_clock && !one_host) continue;
      const Stretch a = stretch_of(ranks[j]);
      const Stretch b = stretch_of(ranks[i]);
      if (a.start <= b.end && b.start <= a.end) continue;
      throw TraceError(
          ranks[i].file, "",
          fmt::format("it has no moment in common with {}{}, "
                      "so these are not profiles of one run: {}, {}",
                      ranks[j].file,
                      one_host ? fmt::format(", though both are of the host {}", ranks[i].host)
                               : ", and launches do not show how clocks differ",
                      when(ranks[j]), when(ranks[i])));
    }
  }
}

// Whether the profiles name more hosts than one, and each rank's.
bool several_hosts(const std::vector<KinetoRank>& ranks) {
  return std::none_of(ranks.begin(), ranks.end(),
                      [](const KinetoRank& rank) { return rank.host.empty(); }) &&
         std::any_of(ranks.begin(), ranks.end(),
                     [&](const KinetoRank& rank) { return rank.host != ranks[0].host; });
}

// Whether the fastest messages between every two clocks are timed at both ends and in both
// directions: then the clocks differ by half the difference of their travel times, as in NTP.
bool known_both_ways(const std::vector<Bound>& bounds) {
  return std::all_of(bounds.begin(), bounds.end(), [&](const Bound& one) {
    if (one.from == one.to) return true;
    return one.tightest->arrival_known &&
           std::any_of(bounds.begin(), bounds.end(), [&](const Bound& other) {
             return other.from == one.to && other.to == one.from;
           });
  });
}

// Longest paths from clock 0 (Bellman-Ford): the least shift of each clock.
std::vector<std::int64_t> longest(const std::vector<KinetoRank>& ranks,
                                  const std::vector<Bound>& bounds, int clocks, bool backwards) {
  std::vector<std::int64_t> at(as_size(clocks), none);
  at[0] = 0;
  for (int round = 0;; ++round) {
    bool changed = false;
    for (const Bound& bound : bounds) {
      const auto from = as_size(backwards ? bound.to : bound.from);
      const auto to = as_size(backwards ? bound.from : bound.to);
      if (at[from] == none || at[from] + bound.least <= at[to]) continue;
      if (round >= clocks) refuse(ranks, bounds);
      at[to] = at[from] + bound.least;
      changed = true;
    }
    if (!changed) return at;
  }
}

// Damaged times may put clocks further apart than a run can be long.
void check_shift(const std::vector<KinetoRank>& ranks, std::size_t i, std::int64_t low,
                 std::int64_t high) {
  constexpr std::int64_t most =
      std::chrono::duration_cast<std::chrono::nanoseconds>(longest_run).count();
  if (low >= -most && high <= most) return;
  throw TraceError(ranks[i].file, "",
                   fmt::format("by their messages its clock differs from that of {} by more than "
                               "{}, so these are not profiles of one run: {}, {}",
                               ranks[0].file, print(longest_run), when(ranks[0]), when(ranks[i])));
}

}  // namespace

ClockShifts align_clocks(const std::vector<KinetoRank>& ranks) {
  check_together(ranks, /*one_clock=*/false);
  const std::vector<KinetoMessage> messages = messages_of(ranks);
  const auto late = [](const std::vector<Bound>& bounds) {
    return std::any_of(bounds.begin(), bounds.end(), [](const Bound& b) { return b.least > 0; });
  };
  // Ranks of one host share a clock, unless their own messages contradict that.
  std::vector<int> clock;
  std::vector<std::string> hosts;
  for (const KinetoRank& rank : ranks) {
    const auto known =
        rank.host.empty() ? hosts.end() : std::find(hosts.begin(), hosts.end(), rank.host);
    clock.push_back(static_cast<int>(known - hosts.begin()));
    if (known == hosts.end()) hosts.push_back(rank.host);
  }
  std::vector<Bound> bounds = bounds_of(messages, clock);
  ClockShifts result;
  result.contradicted = late(bounds);
  if (!result.contradicted && !(several_hosts(ranks) && known_both_ways(bounds))) return {};
  const bool one_host_two_clocks = std::any_of(
      bounds.begin(), bounds.end(), [](const Bound& b) { return b.from == b.to && b.least > 0; });
  auto clocks = static_cast<int>(hosts.size());
  if (one_host_two_clocks) {
    clocks = static_cast<int>(ranks.size());
    for (int i = 0; i < clocks; ++i) nth(clock, i) = i;
    bounds = bounds_of(messages, clock);
  }
  const std::vector<std::int64_t> least = longest(ranks, bounds, clocks, false);
  const std::vector<std::int64_t> most = longest(ranks, bounds, clocks, true);
  bool disagree = result.contradicted;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    // The least and the greatest feasible shift; the midpoints are feasible together.
    const std::int64_t low = nth(least, clock[i]);
    const std::int64_t high =
        -std::max(nth(most, clock[i]), -std::numeric_limits<std::int64_t>::max());
    check_shift(ranks, i, low, high);
    const std::int64_t middle = low + (high - low) / 2;
    result.shifts.push_back({ranks[i].rank.value_or(static_cast<int>(i)),
                             std::chrono::nanoseconds(middle),
                             std::chrono::nanoseconds((high - low) / 2)});
    disagree = disagree || std::abs(middle) > (high - low) / 4;
  }
  if (!disagree) result.shifts.clear();
  return result;
}

void check_one_clock(const std::vector<KinetoRank>& ranks) {
  check_together(ranks, /*one_clock=*/true);
}

}  // namespace stageline
