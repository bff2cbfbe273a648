#include "sim/analysis/rhythm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "sim/base/errors.hpp"

namespace stageline {
namespace {

constexpr int most_rounds = 48;  // looked at
constexpr int longest_round =
    1024;                     // beyond that (5, 7, 8 and 9 replicas side by side) take a mean
constexpr int few = 1 << 16;  // forwards of a step whose repetition costs next to nothing

int ceil_div(int a, int b) { return (a + b - 1) / b; }

// The time of a step, from `rounds` rounds that take `time`: rounded once.
Time per_step(Time time, std::int64_t rounds, int round, int microbatches) {
  const std::optional<Time> step = scaled(time, microbatches, rounds * round);
  if (!step || *step > longest_run) {
    const double seconds = to_seconds(time) * microbatches / static_cast<double>(rounds * round);
    throw UsageError(fmt::format(
        "a step of {} micro-batches takes {:.3g} s, and at most {:.3g} s (53 days) can be added "
        "up; ask for fewer",
        microbatches, seconds, to_seconds(longest_run)));
  }
  return *step;
}

}  // namespace

Rhythm rhythm_of(const Placement& placement, int devices, bool synchronous, int microbatches) {
  if (synchronous) {
    // A flush ties every step to the one before it; a second look only where it is cheap.
    const bool cheap = static_cast<std::int64_t>(microbatches) * placement.stages() * 8 < few;
    return {microbatches, 1, cheap ? 6 : 1};
  }
  Rhythm rhythm;
  for (const StagePlace& place : placement.stage) {
    const int replicas = std::max(1, static_cast<int>(place.replicas.size()));
    if (rhythm.round < longest_round) rhythm.round = std::lcm(rhythm.round, replicas);
  }
  rhythm.warm_up = ceil_div(8 * devices, rhythm.round);
  rhythm.rounds = most_rounds;
  return rhythm;
}

int total_microbatches(const Rhythm& rhythm) {
  return rhythm.round * (2 * rhythm.warm_up + rhythm.rounds);
}

std::uint32_t microbatch_of(const Program& program, Op op) {
  if (counts_microbatches(op.kind)) return op.microbatch;
  const auto group = static_cast<std::uint32_t>(microbatches_per_update(program, op.stage));
  return std::min((op.microbatch + 1) * group, program.total_microbatches()) - 1;
}

SteadyStep steady_step(const std::vector<Time>& ends, const Rhythm& rhythm, int microbatches) {
  const auto done = [&](int round) {  // all of the first `round` rounds
    return ends[static_cast<std::size_t>(round) * static_cast<std::size_t>(rhythm.round) - 1];
  };
  const int last = rhythm.warm_up + rhythm.rounds;
  const auto took = [&](int round) { return done(round) - done(round - 1); };
  // The smallest period that the last two of them, or more, show exactly.
  int period = 1;
  for (; 2 * period <= rhythm.rounds; ++period) {
    const int checked = std::max(period, std::min(8, rhythm.rounds - period));
    bool repeats = true;
    for (int r = last; r > last - checked; --r) repeats = repeats && took(r) == took(r - period);
    if (repeats) break;
  }
  const bool settled = 2 * period <= rhythm.rounds || rhythm.rounds == 1;
  const int over = settled ? period : rhythm.rounds;
  return {per_step(done(last) - done(last - over), over, rhythm.round, microbatches), settled};
}

Time step_of(const Period& period, int round, int microbatches) {
  return per_step(period.time, period.rounds, round, microbatches);
}

}  // namespace stageline
