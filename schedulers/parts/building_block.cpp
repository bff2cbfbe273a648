#include "schedulers/parts/building_block.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"

namespace stageline {
namespace {

constexpr int slots_of_work = 6;  // F, I and W of two chunks
constexpr int most_turned = 32;   // devices, with more of which a turn is not tried

int devices_of(const Problem& problem) { return problem.placement.stages() / 2; }

// F and I of a device, with their slots, which are counted from the step's start.
std::vector<std::pair<int, Op>> in_slots(const Problem& problem, const BuildingBlock& block,
                                         int device) {
  const BlockSlots& at = nth(block.slots, device);
  const int second = 2 * devices_of(problem) - 1 - device;
  const std::array<std::pair<OpKind, int>, 4> kinds{{{OpKind::forward, device},
                                                     {OpKind::forward, second},
                                                     {OpKind::input_grad, second},
                                                     {OpKind::input_grad, device}}};
  std::vector<std::pair<int, Op>> ops;
  const std::size_t all = 4 * as_size(problem.microbatches);
  ops.reserve(all);
  BlockSlots next = at;
  std::array<int, 4> done{};
  while (ops.size() < all) {
    std::size_t first = 4;
    for (std::size_t i = 0; i < 4; ++i) {
      if (done[i] == problem.microbatches) continue;
      if (first == 4 || next[i] < next[first]) first = i;
    }
    const auto [kind, stage] = kinds[first];
    ops.emplace_back(next[first], op_of(kind, stage, static_cast<std::uint32_t>(done[first]++)));
    next[first] += block.interval;
  }
  return ops;
}

// The first slot behind `slot` that is `like` modulo the interval.
int next_like(int slot, int like, int interval) {
  const int past = (slot + 1 - like) % interval;
  return slot + 1 + (past > 0 ? interval - past : -past);
}

// Nothing where two ops meet in a slot.
std::optional<BuildingBlock> block_of(int devices, int interval, const BlockSlots& at, int before,
                                      int behind, int turn) {
  const auto wave = [&](int r) {
    return before * std::min(r, turn) + behind * std::max(r - turn, 0);
  };
  const auto mod = [&](int slot) { return (slot % interval + interval) % interval; };
  for (int r = 0; r < devices; ++r) {
    BlockSlots here{mod(wave(r)), mod(at[1] - r), mod(at[2] + wave(r)), mod(at[3] - r)};
    std::sort(here.begin(), here.end());
    if (std::adjacent_find(here.begin(), here.end()) != here.end()) return std::nullopt;
  }
  const int last = devices - 1;
  const int second = next_like(wave(last), mod(at[1] - last), interval);
  const int back = next_like(second + last, at[2], interval);
  const int end = next_like(back + wave(last), mod(at[3] - last), interval);
  BuildingBlock block{interval, {}};
  for (int r = 0; r < devices; ++r) {
    block.slots.push_back({wave(r), second + last - r, back + wave(r), end + last - r});
  }
  return block;
}

enum Turn : std::uint8_t { first_forward, second_forward, second_input, first_input };

// F and I of a device's two chunks, each in the order of its micro-batches.
class Turns {
 public:
  Turns(std::vector<Op>& list, int first, int second, int microbatches)
      : list_(list), first_(first), second_(second), microbatches_(microbatches) {}

  /// The next micro-batch's, if there is one.
  void add(Turn turn) {
    int& next = done_[turn];
    if (next == microbatches_) return;
    const bool forward = turn == first_forward || turn == second_forward;
    const bool first = turn == first_forward || turn == first_input;
    list_.push_back(op_of(forward ? OpKind::forward : OpKind::input_grad, first ? first_ : second_,
                          static_cast<std::uint32_t>(next++)));
  }
  int done(Turn turn) const { return done_[turn]; }

  /// ZB-V's forwards before the first I. Two slots from one f to the next: there is time for an F
  /// between.
  void warm_up(int devices) {
    for (int i = 0; i < 2 * (devices - first_) - 1; ++i) add(first_forward);
    for (int i = 0; i <= first_; ++i) {
      add(second_forward);
      if (i < first_) add(first_forward);
    }
  }

 private:
  std::vector<Op>& list_;
  int first_;
  int second_;
  int microbatches_;
  std::array<int, 4> done_{};
};

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
BuildingBlock v_half_block(int devices) {
  const int p = devices;
  const int gap = p % 2 == 0 ? 3 : 0;
  BuildingBlock block;
  for (int r = 0; r < p; ++r) {
    block.slots.push_back({2 * r, 3 * p - 2 - r, 3 * p - 1 + gap + 2 * r, 6 * p - 2 + gap - r});
  }
  return block;
}

// All waves take one slot from device to device.
BuildingBlock v_min_block(int devices) {
  const int p = devices;
  const int gap = p % 3 == 0 ? 2 : 0;
  BuildingBlock block;
  for (int r = 0; r < p; ++r) {
    block.slots.push_back({r, 2 * p - 1 - r, 2 * p + gap + r, 4 * p - 1 + gap - r});
  }
  return block;
}

std::vector<BuildingBlock> every_block(int devices, int interval) {
  std::vector<BuildingBlock> blocks;
  // `at`: slots of the first device, modulo the interval; `turn`: from that device on, `behind`.
  const auto add = [&](const BlockSlots& at, int before, int behind, int turn) {
    const std::optional<BuildingBlock> block =
        block_of(devices, interval, at, before, behind, turn);
    if (block) blocks.push_back(*block);
  };
  const int most = interval == slots_of_work ? interval - 1 : 2;
  const bool turns = interval == slots_of_work && devices <= most_turned;
  for (int f = 1; f < interval; ++f) {
    for (int i = 1; i < interval; ++i) {
      for (int last = 1; last < interval; ++last) {
        if (f == i || i == last || last == f) continue;
        const BlockSlots at{0, f, i, last};
        for (int before = 1; before <= most; ++before) {
          add(at, before, before, devices);
          for (int behind = 1; turns && behind < before; ++behind) {
            for (int turn = 1; turn + 1 < devices; ++turn) add(at, before, behind, turn);
          }
        }
      }
    }
  }
  return blocks;
}

int fewest_stashes(const BuildingBlock& block) {
  int fewest = 0;
  for (const BlockSlots& at : block.slots) {
    // From the start of F to the end of a W that follows I at once.
    const int held = at[3] + 2 - at[0] + at[2] + 2 - at[1];
    fewest = std::max(fewest, (held + block.interval - 1) / block.interval);
  }
  return fewest;
}

StepLists block_plan(const Problem& problem, const BuildingBlock& block, int early) {
  const int p = devices_of(problem);
  StepLists plan;
  for (int r = 0; r < p; ++r) {
    std::vector<Op>& list = plan.emplace_back();
    for (const auto& [slot, op] : in_slots(problem, block, r)) list.push_back(op);
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

StepLists block_order(const Problem& problem, const BuildingBlock& block) {
  StepLists order;
  for (int r = 0; r < devices_of(problem); ++r) {
    std::vector<Op>& list = order.emplace_back();
    std::vector<Op> weights;  // in the order of their I's
    std::size_t done = 0;     // of them
    int free = 0;             // slot
    for (const auto& [slot, op] : in_slots(problem, block, r)) {
      for (; free < slot && done < weights.size(); ++free) list.push_back(weights[done++]);
      list.push_back(op);
      if (op.kind == OpKind::input_grad) {
        weights.push_back(op_of(OpKind::weight_grad, op.stage, op.microbatch));
      }
      free = slot + 1;
    }
    while (done < weights.size()) list.push_back(weights[done++]);
  }
  return order;
}

StepLists zb_v_plan(const Problem& problem) {
  const int p = devices_of(problem);
  const int count = problem.microbatches;
  StepLists plan;
  for (int r = 0; r < p; ++r) {
    Turns here(plan.emplace_back(), r, 2 * p - 1 - r, count);
    here.warm_up(p);
    // i comes back to this device's first chunk 2(p-r)-1 slots later, three slots a micro-batch:
    // f, i and W.
    const int alone = p - 1 - r;
    for (int i = 0; here.done(first_input) < count; ++i) {
      here.add(second_input);
      if (i >= alone) here.add(first_input);
      if (i >= alone) here.add(first_forward);
      here.add(second_forward);
    }
  }
  return plan;
}

StepLists v_rounds_plan(const Problem& problem) {
  const int p = devices_of(problem);
  const int count = problem.microbatches;
  StepLists plan(as_size(p));
  std::vector<Turns> turns;
  for (int r = 0; r < p; ++r) {
    turns.emplace_back(nth(plan, r), r, 2 * p - 1 - r, count).warm_up(p);
  }
  const auto has_come = [&](Turn turn, int from, int to) {
    return nth(turns, from).done(turn) > nth(turns, to).done(turn);
  };
  const auto left = [&] {
    return std::any_of(turns.begin(), turns.end(),
                       [&](const Turns& one) { return one.done(first_input) < count; });
  };
  while (left()) {
    std::vector<Turn> inputs;
    for (int r = 0; r < p; ++r) {
      const Turns& here = nth(turns, r);
      const bool behind = here.done(first_input) < here.done(second_input);
      const bool ready =
          r == p - 1 || has_come(first_input, r + 1, r) || here.done(second_input) == count;
      inputs.push_back(behind && ready ? first_input : second_input);
    }
    for (int r = 0; r < p; ++r) nth(turns, r).add(nth(inputs, r));
    for (int r = 0; r < p; ++r) {
      Turns& here = nth(turns, r);
      const bool behind = here.done(second_forward) < here.done(first_forward);
      if (behind && (r == p - 1 || has_come(second_forward, r + 1, r))) {
        here.add(second_forward);
      } else if (r == 0 || has_come(first_forward, r - 1, r)) {
        here.add(first_forward);
      }
    }
  }
  // Not seen: forwards that never came in time go last, and the list scheduler gets by.
  for (Turns& here : turns) {
    for (int m = 0; m < count; ++m) {
      here.add(first_forward);
      here.add(second_forward);
    }
  }
  return plan;
}

}  // namespace stageline
