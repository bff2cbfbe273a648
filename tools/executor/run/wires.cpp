// Serves the sends and copies of imitated links in order of time.
#include "tools/executor/run/wires.hpp"

#include <algorithm>

namespace stageline::executor {

Wires::Wires(const TaskGraph& graph, CompletionBoard& board) : graph_(graph), board_(board) {
  restart(false);
}

void Wires::restart(bool with_copies) {
  lanes_.clear();
  for (std::uint32_t lane = 0; lane < graph_.lanes.size(); ++lane) {
    const LaneKind kind = graph_.lanes[lane].kind;
    const bool copies = kind == LaneKind::copy_out || kind == LaneKind::copy_in;
    if (kind == LaneKind::send || (copies && with_copies)) lanes_.push_back(lane);
  }
  head_.clear();
  for (const std::uint32_t lane : lanes_) head_.push_back(graph_.lane_begin[lane]);
  lane_free_.assign(lanes_.size(), Time{});
  resource_free_.assign(graph_.resources.size(), Time{});
}

bool Wires::idle() {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    if (head_[i] != graph_.lane_begin[lanes_[i] + 1]) return false;
  }
  return true;
}

void Wires::poll(Time now) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  while (true) {
    std::size_t best = lanes_.size();
    Time best_ask{};
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      if (head_[i] == graph_.lane_begin[lanes_[i] + 1]) continue;
      const std::uint32_t task = graph_.lane_task[head_[i]];
      Time ask = lane_free_[i];
      bool all_known = true;
      for (std::uint32_t n = graph_.need_begin[task]; n != graph_.need_begin[task + 1]; ++n) {
        all_known = all_known && board_.known(graph_.need[n]);
        if (all_known) ask = std::max(ask, board_.at(graph_.need[n]));
      }
      if (!all_known || ask > now) continue;
      const bool sooner = best == lanes_.size() || ask < best_ask ||
                          (ask == best_ask && task < graph_.lane_task[head_[best]]);
      if (!sooner) continue;
      best = i;
      best_ask = ask;
    }
    if (best == lanes_.size()) return;
    const std::uint32_t task = graph_.lane_task[head_[best]++];
    const Path& path = graph_.paths[graph_.path_of[task]];
    Time start = best_ask;
    for (const std::uint32_t r : path.resources) start = std::max(start, resource_free_[r]);
    const Time end = start + graph_.duration[task];
    for (const std::uint32_t r : path.resources) resource_free_[r] = end;
    lane_free_[best] = end;
    board_.publish(task, end + path.lag);
  }
}

}  // namespace stageline::executor
