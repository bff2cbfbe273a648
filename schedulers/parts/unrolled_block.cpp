#include "schedulers/parts/unrolled_block.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "sim/base/index.hpp"

namespace stageline {
namespace {

constexpr int forward_slots = 1;
constexpr int backward_slots = 2;

int devices_of(const RepeatedBlock& block) {
  return 1 + *std::max_element(block.device.begin(), block.device.end());
}

// The op of the block that begins in a slot, modulo the period.
struct Begins {
  OpKind kind = OpKind::forward;
  int stage = -1;  // -1: none begins here
  int slot = 0;    // of the first micro-batch
};

struct DeviceRow {
  std::vector<Begins> begins;            // by slot of the period
  std::vector<bool> busy;                // by slot
  std::vector<int> held;                 // by slot, chunks at its end
  std::vector<std::pair<int, Op>> done;  // with their slots
};

class Unrolled {
 public:
  Unrolled(const RepeatedBlock& block, int microbatches)
      : block_(block),
        count_(microbatches),
        stages_(static_cast<int>(block.device.size())),
        devices_(as_size(devices_of(block))) {
    for (std::vector<int>& ends : ends_) ends.resize(as_size(stages_) * as_size(count_));
    for (int s = 0; s < stages_; ++s) {
      slots_ = std::max(
          {slots_, nth(block.forward, s) + forward_slots, nth(block.backward, s) + backward_slots});
    }
    slots_ += block.period * (count_ - 1);
    for (DeviceRow& device : devices_) {
      device.begins.resize(as_size(block.period));
      device.busy.resize(as_size(slots_));
      device.held.resize(as_size(slots_));
    }
    for (int s = 0; s < stages_; ++s) lay_out(s);
    for (DeviceRow& device : devices_) {
      for (std::size_t i = 1; i < device.held.size(); ++i) device.held[i] += device.held[i - 1];
    }
  }

  int held() const {
    int most = 0;
    for (const DeviceRow& device : devices_) {
      most = std::max(most, *std::max_element(device.held.begin(), device.held.end()));
    }
    return most;
  }

  std::vector<std::vector<Op>> squeezed(int most) {
    for (int slot = 0; slot < slots_; ++slot) {
      for (DeviceRow& device : devices_) {
        const Begins& begins = nth(device.begins, slot % block_.period);
        if (begins.stage < 0 || slot < begins.slot) continue;
        const int microbatch = (slot - begins.slot) / block_.period;
        if (microbatch >= count_) continue;
        const int to = begins.kind == OpKind::forward
                           ? move_forward(device, begins.stage, microbatch, slot, most)
                           : move_backward(device, begins.stage, microbatch, slot);
        device.done.emplace_back(
            to, op_of(begins.kind, begins.stage, static_cast<std::uint32_t>(microbatch)));
      }
    }
    std::vector<std::vector<Op>> orders;
    for (DeviceRow& device : devices_) {
      std::sort(device.done.begin(), device.done.end(),
                [](const auto& a, const auto& b) { return a.first < b.first; });
      std::vector<Op>& order = orders.emplace_back();
      order.reserve(device.done.size());
      for (const auto& [slot, op] : device.done) order.push_back(op);
    }
    return orders;
  }

 private:
  void lay_out(int stage) {
    DeviceRow& device = nth(devices_, nth(block_.device, stage));
    const int forward = nth(block_.forward, stage);
    const int backward = nth(block_.backward, stage);
    nth(device.begins, forward % block_.period) = {OpKind::forward, stage, forward};
    nth(device.begins, backward % block_.period) = {OpKind::backward, stage, backward};
    for (int m = 0; m < count_; ++m) {
      const int later = block_.period * m;
      take(device, forward + later, forward_slots, true);
      take(device, backward + later, backward_slots, true);
      ++nth(device.held, forward + later);
      --nth(device.held, backward + later + backward_slots - 1);
    }
  }

  static void take(DeviceRow& device, int slot, int slots, bool busy) {
    for (int i = slot; i < slot + slots; ++i) device.busy[as_size(i)] = busy;
  }

  // The first of so many free slots, from `slot` on; `end` where there are none that begin before.
  static int first_free(const DeviceRow& device, int slot, int end, int slots) {
    const auto is_free = [&](int at) {
      for (int i = at; i < at + slots; ++i) {
        if (device.busy[as_size(i)]) return false;
      }
      return true;
    };
    while (slot < end && !is_free(slot)) ++slot;
    return slot;
  }

  int& end_of(OpKind kind, int stage, int microbatch) {
    return nth(ends_[kind == OpKind::forward ? 0 : 1], std::int64_t{stage} * count_ + microbatch);
  }

  int move_forward(DeviceRow& device, int stage, int microbatch, int slot, int most) {
    int arrives = 0;
    if (microbatch > 0) arrives = end_of(OpKind::forward, stage, microbatch - 1);
    if (stage > 0) arrives = std::max(arrives, end_of(OpKind::forward, stage - 1, microbatch));
    const int least = first_free(device, arrives, slot, forward_slots);
    int to = slot;
    while (to > least && nth(device.held, to - 1) < most) --to;
    to = first_free(device, to, slot, forward_slots);
    take(device, slot, forward_slots, false);
    take(device, to, forward_slots, true);
    for (int i = to; i < slot; ++i) ++nth(device.held, i);
    end_of(OpKind::forward, stage, microbatch) = to + forward_slots;
    return to;
  }

  int move_backward(DeviceRow& device, int stage, int microbatch, int slot) {
    int arrives = stage + 1 < stages_ ? end_of(OpKind::backward, stage + 1, microbatch)
                                      : end_of(OpKind::forward, stage, microbatch);
    if (microbatch > 0) {
      arrives = std::max(arrives, end_of(OpKind::backward, stage, microbatch - 1));
    }
    const int to = first_free(device, arrives, slot, backward_slots);
    take(device, slot, backward_slots, false);
    take(device, to, backward_slots, true);
    for (int i = to; i < slot; ++i) --nth(device.held, i + backward_slots - 1);
    end_of(OpKind::backward, stage, microbatch) = to + backward_slots;
    return to;
  }

  const RepeatedBlock& block_;
  int count_;
  int stages_;
  int slots_ = 0;
  std::vector<DeviceRow> devices_;
  std::array<std::vector<int>, 2> ends_;  // of F and of B, by stage and micro-batch; slots
};

}  // namespace

int chunks_held(const RepeatedBlock& block) {
  const auto slots = as_size(devices_of(block)) * as_size(block.period);
  std::vector<int> held(slots);  // by device and slot of the period
  for (std::size_t s = 0; s < block.device.size(); ++s) {
    const int first = block.device[s] * block.period;
    const int kept = block.backward[s] + backward_slots - block.forward[s];
    for (int i = 0; i < block.period; ++i) {
      const int at = (block.forward[s] + i) % block.period;
      nth(held, first + at) += kept / block.period + (i < kept % block.period ? 1 : 0);
    }
  }
  return *std::max_element(held.begin(), held.end());
}

std::optional<std::vector<std::vector<Op>>> unroll(const RepeatedBlock& block, int microbatches,
                                                   std::optional<int> most) {
  Unrolled unrolled(block, microbatches);
  const int held = unrolled.held();
  if (most && held > *most) return std::nullopt;
  return unrolled.squeezed(most.value_or(held));
}

}  // namespace stageline
