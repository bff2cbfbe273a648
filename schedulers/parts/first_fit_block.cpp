#include "schedulers/parts/first_fit_block.hpp"

#include <optional>
#include <utility>

#include "sim/base/index.hpp"

namespace stageline {
namespace {

// The slots of one device, modulo the period.
class Ring {
 public:
  Ring(int period, int forwards) : busy_(as_size(period)), forwards_left_(forwards) {}

  // Whether F could be taken there, and is.
  bool take_forward(int slot) {
    if (busy(slot)) return false;
    set(slot, true);
    if (odd_gaps() <= forwards_left_ - 1) {
      --forwards_left_;
      return true;
    }
    set(slot, false);
    return false;
  }

  // Whether B could be taken there and in the slot behind it, and is. All F's are in.
  bool take_backward(int slot) {
    if (busy(slot) || busy(slot + 1)) return false;
    set(slot, true);
    set(slot + 1, true);
    if (odd_gaps() == 0) return true;
    set(slot, false);
    set(slot + 1, false);
    return false;
  }

 private:
  std::size_t at(int slot) const { return as_size(slot) % busy_.size(); }
  bool busy(int slot) const { return busy_[at(slot)]; }
  void set(int slot, bool busy) { busy_[at(slot)] = busy; }

  // One F can fill up each. At least one slot is busy.
  int odd_gaps() const {
    int first = 0;
    while (!busy(first)) ++first;
    int odd = 0;
    int gap = 0;
    for (std::size_t i = 1; i <= busy_.size(); ++i) {
      if (!busy(first + static_cast<int>(i))) {
        ++gap;
        continue;
      }
      odd += gap % 2;
      gap = 0;
    }
    return odd;
  }

  std::vector<bool> busy_;
  int forwards_left_;
};

RepeatedBlock fitted(const std::vector<int>& device, int devices, int wait) {
  const int stages = static_cast<int>(device.size());
  const int each = stages / devices;
  RepeatedBlock block;
  block.period = 3 * each;
  block.device = device;
  block.backward.resize(device.size());
  std::vector<Ring> rings(as_size(devices), Ring(block.period, each));
  int slot = 0;
  for (const int d : device) {
    while (!nth(rings, d).take_forward(slot)) ++slot;
    block.forward.push_back(slot++);
  }
  slot += wait;
  for (int s = stages - 1; s >= 0; --s) {
    while (!nth(rings, nth(device, s)).take_backward(slot)) ++slot;
    nth(block.backward, s) = slot;
    slot += 2;
  }
  return block;
}

}  // namespace

RepeatedBlock first_fit_block(const std::vector<int>& device, int devices) {
  std::optional<RepeatedBlock> best;
  std::pair<int, int> best_key;
  const int period = 3 * static_cast<int>(device.size()) / devices;
  for (int wait = 0; wait < period; ++wait) {
    RepeatedBlock block = fitted(device, devices, wait);
    const std::pair key(chunks_held(block), block.backward.front());
    if (best && key >= best_key) continue;
    best = std::move(block);
    best_key = key;
  }
  return *best;
}

}  // namespace stageline
