#include "tools/study/pace/stash_gap.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "schedulers/search/device_bound.hpp"
#include "sim/base/index.hpp"
#include "tools/base/table.hpp"
#include "tools/study/run/layout.hpp"

namespace stageline {

bool is_plain(const Program& program) {
  std::int64_t without_input = 0;  // W's less I's: a first stage may leave out I's
  for (const std::vector<Op>& list : program.ops) {
    for (const Op op : list) {
      if (lane_of(op.kind) == LaneKind::copy_out || lane_of(op.kind) == LaneKind::copy_in ||
          op.kind == OpKind::recompute || op.overlapped != 0) {
        return false;
      }
      if (op.kind == OpKind::weight_grad) ++without_input;
      if (op.kind == OpKind::input_grad) --without_input;
    }
  }
  return without_input == 0;
}

namespace {

bool can_be_judged(const Case& asked, const Program& program, bool plain) {
  const std::vector<StagePlace>& stages = program.placement.stage;
  return asked.pipelines() == 1 && program.steps == 1 &&
         program.settings.weights == WeightRule::flush &&
         program.microbatches == asked.microbatches && plain &&
         std::all_of(stages.begin(), stages.end(), [](const StagePlace& place) {
           return place.replicas.size() == 1 && !place.apart();
         });
}

}  // namespace

bool is_plain_step(const Case& asked, const Program& program) {
  return can_be_judged(asked, program, is_plain(program));
}

double StashGap::share() const {
  if (bound <= Time{}) return 0;
  return static_cast<double>((span - bound).count()) / static_cast<double>(bound.count());
}

namespace {

// The gap of a program that can be judged; its ops may be left out.
std::optional<StashGap> gap_of(const Program& program, const Costs& costs, int microbatches,
                               const std::vector<int>& peaks) {
  Problem problem;
  problem.placement = program.placement;
  problem.costs = costs;
  problem.microbatches = microbatches;
  problem.devices = program.devices;
  problem.memory.resize(program.devices.size());
  StashGap gap;
  gap.stashes = *std::max_element(peaks.begin(), peaks.end());
  const StashLimit limit = stash_limit(problem, gap.stashes);
  for (const std::optional<StashBounds>& bounds :
       {stash_bounds(problem, limit, true), device_bounds(problem, limit)}) {
    if (!bounds || bounds->span.value <= gap.bound) continue;
    gap.bound = bounds->span.value;
    gap.why = in_words(bounds->span, program.devices);
  }
  if (gap.bound == Time{}) return std::nullopt;
  return gap;
}

}  // namespace

std::optional<StashGap> stash_gap(const Case& asked, const Program& program, const Costs& costs,
                                  const std::vector<int>& peaks) {
  if (!is_plain_step(asked, program)) return std::nullopt;
  return gap_of(program, costs, asked.microbatches, peaks);
}

std::optional<StashGap> stash_gap(const Case& asked, const Outcome& outcome) {
  if (!can_be_judged(asked, outcome.program, outcome.figures.is_plain)) return std::nullopt;
  std::optional<StashGap> gap = gap_of(outcome.program, costs_of(asked, checked_layout(asked)),
                                       asked.microbatches, outcome.memory.device_stash_peak);
  if (!gap) return gap;
  for (const DeviceMetrics& device : outcome.metrics.device) {
    gap->span = std::max(gap->span, device.busy + device.span_idle);
  }
  return gap;
}

std::string in_words(const StashGap& gap) {
  const std::string under =
      fmt::format("under {} stash{}", gap.stashes, gap.stashes == 1 ? "" : "es");
  if (gap.span == gap.bound) {
    return fmt::format("longest span {}, optimal: no order {} is shorter ({})", print(gap.span),
                       under, gap.why);
  }
  return fmt::format("longest span {}, at most {} above the shortest order {}: {} ({})",
                     print(gap.span), percent(gap.share()), under, print(gap.bound), gap.why);
}

}  // namespace stageline
