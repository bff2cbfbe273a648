// Optimizer steps are one for each stage of their rank; or, of any other number (one optimizer for
// all, or several for the parameters of each), their total is that of all stages in equal shares.
#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "sim/base/index.hpp"
#include "traces/kineto/rank.hpp"

namespace stageline {
namespace {

// By step, without those inside of others (an optimizer that calls another one).
std::vector<std::vector<KinetoUpdate>> updates_by_step(const KinetoRank& rank, std::size_t steps) {
  std::vector<std::vector<KinetoUpdate>> by_step(steps);
  for (const KinetoUpdate& update : rank.updates) nth(by_step, update.step).push_back(update);
  for (std::vector<KinetoUpdate>& list : by_step) {
    std::stable_sort(list.begin(), list.end(), [](const KinetoUpdate& a, const KinetoUpdate& b) {
      return std::pair(a.start, -a.end) < std::pair(b.start, -b.end);
    });
    std::int64_t until = std::numeric_limits<std::int64_t>::min();
    std::erase_if(list, [&until](const KinetoUpdate& update) {
      return update.end <= std::exchange(until, std::max(until, update.end));
    });
  }
  return by_step;
}

// Whether an op of the step begins between the first and the last update.
bool ops_between(const KinetoRank& rank, int step, const std::vector<KinetoUpdate>& updates) {
  return std::any_of(rank.ranges.begin(), rank.ranges.end(), [&](const KinetoRange& range) {
    return range.step == step && range.start >= updates.front().start &&
           range.start < updates.back().start && lane_of(range.ops[0].kind) == LaneKind::compute;
  });
}

}  // namespace

std::vector<UpdateSpan> updates_of(const KinetoRank& rank, const std::vector<int>& stages,
                                   std::size_t steps, KinetoRun& run) {
  if (rank.updates.empty()) return {};
  const std::vector<std::vector<KinetoUpdate>> by_step = updates_by_step(rank, steps);
  std::vector<UpdateSpan> spans;
  for (std::size_t step = 0; step < steps; ++step) {
    const std::vector<KinetoUpdate>& found = by_step[step];
    const bool one_each = found.size() == stages.size();
    const bool apart =
        !one_each && !found.empty() && ops_between(rank, static_cast<int>(step), found);
    if (found.empty() || apart) {
      run.notes.push_back(fmt::format(
          "rank {} has {} Optimizer.step ranges in a step{} and {} stages: "
          "its updates are left out",
          *rank.rank, found.size(), apart ? " with ops between them" : "", stages.size()));
      return {};
    }
    std::int64_t total = 0;
    for (const KinetoUpdate& update : found) total += update.end - update.start;
    for (std::size_t i = 0; i < stages.size(); ++i) {
      Op op;
      op.kind = OpKind::update;
      op.stage = static_cast<std::uint16_t>(stages[i]);
      op.microbatch = static_cast<std::uint32_t>(step);
      if (one_each) {
        spans.push_back({static_cast<int>(step), op, found[i].start, found[i].end});
        continue;
      }
      const auto share = [&](std::size_t part) {
        return found.front().start +
               total * static_cast<std::int64_t>(part) / static_cast<std::int64_t>(stages.size());
      };
      spans.push_back({static_cast<int>(step), op, share(i), share(i + 1)});
    }
  }
  const std::size_t each = by_step.empty() ? 0 : by_step[0].size();
  if (each == stages.size() || by_step.empty()) return spans;
  if (stages.size() > 1) {
    run.notes.push_back(fmt::format(
        "rank {} has {} Optimizer.step range{} a step: its {} stages have equal shares of {}",
        *rank.rank, each == 1 ? "one" : fmt::format("{}", each), each == 1 ? "" : "s",
        stages.size(), each == 1 ? "it" : "their total"));
  } else {
    run.notes.push_back(
        fmt::format("rank {} has {} Optimizer.step ranges a step: its update is "
                    "their total",
                    *rank.rank, each));
  }
  return spans;
}

}  // namespace stageline
