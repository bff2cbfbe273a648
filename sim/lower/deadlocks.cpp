// Finds all deadlocks of a program: lowers it, and where lanes wait for one another in a cycle,
// reports the cycle, gives up one of its waits and goes on.
#include <algorithm>
#include <utility>

#include "sim/deadlock.hpp"
#include "sim/lower/lowering.hpp"

namespace stageline {

std::vector<Deadlock> Lowering::deadlocks(std::size_t most) {
  forgiving_ = true;
  std::vector<Deadlock> found;
  start();
  while (true) {
    walk_queue();
    const std::size_t before = found.size();
    std::vector<std::uint32_t> given_up;
    for (std::uint32_t lane = 0; lane < head_.size() && found.size() < most; ++lane) {
      if (head_[lane] == end_[lane]) continue;
      std::vector<std::uint32_t> cycle;
      Deadlock deadlock = deadlock_of(standstill(), lane, &cycle);
      const bool again =
          std::find(given_up.begin(), given_up.end(), cycle.front()) != given_up.end();
      if (again) continue;
      given_up.push_back(cycle.front());
      found.push_back(std::move(deadlock));
    }
    if (found.size() == before || found.size() >= most) return found;
    for (const std::uint32_t lane : given_up) give_up(lane);
  }
}

void Lowering::find_makers() {
  maker_.assign(index_.size() + 1, no_lane);
  for (std::uint32_t lane = 0; lane < head_.size(); ++lane) {
    for (std::uint32_t at = head_[lane]; at != end_[lane]; ++at) {
      const Op op = ops_[at];
      if (cargo_of(op.kind)) {
        // A product sent is there for the lane of its RECV, where that is in a list.
        if (blocks_ && !is_send(op.kind)) maker_[message_slot(op)] = lane;
        continue;
      }
      patterns_.for_made(patterns_.of(op), op, [&](std::size_t place) { maker_[place] = lane; });
    }
  }
}

// Whether the lane does not wait for the product: no op makes it, a later op of the lane does, or
// this wait is given up.
bool Lowering::forgiven(std::int64_t place, std::uint32_t lane) const {
  if (place < 0) return true;
  const Slot slot = nth(slot_, place);
  if (slot == nobody) return true;
  return slot >= waited_for && (lane == given_up_ || nth(maker_, place) == lane);
}

// Takes the lane out of the list of those that wait for a product. False if it is in none.
bool Lowering::stop_waiting(std::uint32_t lane) {
  for (Slot& slot : slot_) {
    if (slot < waited_for || slot == pending || slot == nobody) continue;
    if (slot == (waited_for | lane)) {
      slot = next_waiter_[lane] == no_lane ? pending : waited_for | next_waiter_[lane];
      return true;
    }
    for (std::uint32_t at = slot & ~waited_for; at != no_lane; at = next_waiter_[at]) {
      if (next_waiter_[at] != lane) continue;
      next_waiter_[at] = next_waiter_[lane];
      return true;
    }
  }
  return false;
}

// The lane goes on without what it waits for. If another wait that was given up has released it, it
// is in the queue already, and must not be walked twice: it would wait twice in the same list.
void Lowering::give_up(std::uint32_t lane) {
  if (blocks_ && stream_[lane].posted) {
    if (stream_[lane].left == 0) return;
    const std::uint32_t last = head_[lane] + batch_size(standstill(), lane);
    for (std::uint32_t at = head_[lane]; at != last; ++at) {
      const std::size_t slot = message_slot(ops_[at]);
      if (posted_[slot] == lane && slot_[slot] >= waited_for) posted_[slot] = gone;
    }
    stream_[lane].left = 0;
  } else if (stop_waiting(lane)) {
    given_up_ = lane;
  } else {
    return;
  }
  walk(lane);
  given_up_ = no_lane;
}

std::vector<Deadlock> deadlocks_of(const Program& program, const Costs& costs, std::size_t most) {
  return Lowering(program, costs).deadlocks(most);
}

}  // namespace stageline
