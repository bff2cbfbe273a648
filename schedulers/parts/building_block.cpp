#include "schedulers/parts/building_block.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "schedulers/parts/priorities.hpp"
#include "sim/errors.hpp"
#include "sim/index.hpp"

namespace stageline {
namespace {

constexpr int interval = 6;  // slots a micro-batch: F, I and W of two chunks

int devices_of(const Problem& problem) { return problem.placement.stages() / 2; }

}  // namespace

Placement v_placement(std::string_view schedule, int devices) {
  if (devices > max_stages / 2) {
    throw UsageError(
        fmt::format("{}: {} devices make {} stages, two a device, but {} are the most; "
                    "take {} devices",
                    schedule, devices, 2 * std::int64_t{devices}, max_stages, max_stages / 2));
  }
  Placement placement;
  for (int s = 0; s < 2 * devices; ++s) {
    StagePlace place;
    place.replicas = {std::min(s, 2 * devices - 1 - s)};
    placement.stage.push_back(place);
  }
  return placement;
}

// The waves F, f, i and I take 2, 1, 2 and 1 slots from device to device. Where p is even, three
// empty slots before i keep the waves apart modulo 6.
BlockSlots v_half_slots(int devices, int device) {
  const int p = devices;
  const int r = device;
  const int gap = p % 2 == 0 ? 3 : 0;
  return {2 * r, 3 * p - 2 - r, 3 * p - 1 + gap + 2 * r, 6 * p - 2 + gap - r};
}

// All waves take one slot from device to device.
BlockSlots v_min_slots(int devices, int device) {
  const int p = devices;
  const int r = device;
  const int gap = p % 3 == 0 ? 2 : 0;
  return {r, 2 * p - 1 - r, 2 * p + gap + r, 4 * p - 1 + gap - r};
}

std::vector<std::vector<Op>> block_plan(const Problem& problem,
                                        BlockSlots (*slots)(int devices, int device), int early) {
  const int p = devices_of(problem);
  std::vector<std::vector<Op>> plan;
  for (int r = 0; r < p; ++r) {
    const BlockSlots at = slots(p, r);
    const int second = 2 * p - 1 - r;
    std::vector<std::pair<int, Op>> ops;
    for (int m = 0; m < problem.microbatches; ++m) {
      const int later = interval * m;
      const auto number = static_cast<std::uint32_t>(m);
      ops.emplace_back(at[0] + later, op_of(OpKind::forward, r, number));
      ops.emplace_back(at[1] + later, op_of(OpKind::forward, second, number));
      ops.emplace_back(at[2] + later, op_of(OpKind::input_grad, second, number));
      ops.emplace_back(at[3] + later, op_of(OpKind::input_grad, r, number));
    }
    std::sort(ops.begin(), ops.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Op>& list = plan.emplace_back();
    for (const auto& [slot, op] : ops) list.push_back(op);
    const auto is_first = [&](Op op) { return op.kind == OpKind::forward && op.stage == r; };
    auto head = std::find_if_not(list.begin(), list.end(), is_first);
    const auto room = 2 * (p - r) - 1;  // slots until the second chunk's first forward arrives
    for (int i = 0; i < early && head - list.begin() < room; ++i) {
      const auto next = std::find_if(head, list.end(), is_first);
      if (next == list.end()) break;
      std::rotate(head, next, next + 1);
      ++head;
    }
  }
  return plan;
}

std::vector<std::vector<Op>> zb_v_plan(const Problem& problem) {
  const int p = devices_of(problem);
  const int count = problem.microbatches;
  std::vector<std::vector<Op>> plan;
  for (int r = 0; r < p; ++r) {
    const int second = 2 * p - 1 - r;
    std::vector<Op>& list = plan.emplace_back();
    int first_forwards = 0;
    int second_forwards = 0;
    int first_backwards = 0;
    int second_backwards = 0;
    const auto add = [&](OpKind kind, int stage, int& next) {
      if (next < count) list.push_back(op_of(kind, stage, static_cast<std::uint32_t>(next++)));
    };
    // Two slots from one f to the next: there is time for an F between.
    for (int i = 0; i < 2 * (p - r) - 1; ++i) add(OpKind::forward, r, first_forwards);
    for (int i = 0; i <= r; ++i) {
      add(OpKind::forward, second, second_forwards);
      if (i < r) add(OpKind::forward, r, first_forwards);
    }
    // i comes back to this device's first chunk 2(p-r)-1 slots later, three slots a micro-batch:
    // f, i and W.
    const int alone = p - 1 - r;
    for (int i = 0; first_backwards < count; ++i) {
      add(OpKind::input_grad, second, second_backwards);
      if (i >= alone) add(OpKind::input_grad, r, first_backwards);
      if (i >= alone) add(OpKind::forward, r, first_forwards);
      add(OpKind::forward, second, second_forwards);
    }
  }
  return plan;
}

std::vector<std::vector<Op>> best_of_plans(const Problem& problem,
                                           const std::vector<std::vector<std::vector<Op>>>& plans,
                                           const StashLimit& limit) {
  const int p = devices_of(problem);
  ListRules rules;
  rules.rank = backward_first();
  std::optional<ListOutcome> best;
  for (const auto& plan : plans) {
    rules.plan = plan;
    std::vector<std::size_t> over;  // the first chunk's forwards
    for (int r = 0; r < p; ++r) {
      const auto& list = nth(plan, r);
      std::size_t at = list.size();
      while (at > 0 && (list[at - 1].kind != OpKind::forward || list[at - 1].stage != r)) --at;
      over.push_back(at);
    }
    for (const bool loose : {false, true}) {
      rules.loose_from = loose ? over : std::vector<std::size_t>{};
      for (const int fill : {0, 100}) {
        rules.fill = fill;
        ListOutcome outcome = list_schedule(problem, rules, limit);
        const auto key = [](const ListOutcome& one) { return std::pair(one.span, one.makespan); };
        if (!best || key(outcome) < key(*best)) best = std::move(outcome);
      }
    }
  }
  return best->ops;
}

}  // namespace stageline
