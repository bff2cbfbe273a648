// When each lane and link of a step begins and ends.
#include "tools/study/pace/lone_step.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "sim/base/index.hpp"

namespace stageline {
namespace {

// From the moment it is first asked for to the last end.
struct Use {
  Time begin = Time::max();
  Time end{};
};

// What a repetition waits for: every lane and link, and the lanes that are asked for at once.
class Repetition {
 public:
  void add_lane(Use use) {
    longest_ = std::max(longest_, use.end - use.begin);
    last_begin_ = std::max(last_begin_, use.begin);
    if (use.begin == Time{}) least_at_once_ = std::min(least_at_once_, use.end);
  }
  void add_resource(Use use) {
    longest_resource_ = std::max(longest_resource_, use.end - use.begin);
    last_begin_ = std::max(last_begin_, use.begin);
  }

  // Lanes that begin at once are as long as any, so that nothing begins earlier than it repeats,
  // and nothing of a further step comes before all of this one have begun. A link is idle between
  // two steps: of those that ask for it at one moment, their numbers decide.
  std::optional<Time> step() const {
    const bool repeats = longest_ > Time{} && least_at_once_ == longest_ &&
                         longest_resource_ < longest_ && last_begin_ < longest_;
    return repeats ? std::optional(longest_) : std::nullopt;
  }

 private:
  Time longest_{};
  Time longest_resource_{};
  Time least_at_once_ = Time::max();
  Time last_begin_{};
};

// When a task asks for its resources: its lane is free and its needs are met.
Time asked_at(const TaskGraph& graph, const TaskTimes& times, std::uint32_t task,
              const std::uint32_t* before) {
  Time asked = before != nullptr ? end_of(graph, times, *before) : Time{};
  const Time head_start = graph.paths[graph.path_of[task]].head_start;
  for (std::uint32_t i = graph.need_begin[task]; i != graph.need_begin[task + 1]; ++i) {
    const std::uint32_t need = graph.need[i];
    asked = std::max(asked,
                     ready_ahead(times.available[need], start_of(graph, times, need), head_start));
  }
  return asked;
}

// A request for a link: when, and by which lane.
struct LinkRequest {
  Time at{};
  std::size_t lane = 0;
  friend bool operator<(const LinkRequest& a, const LinkRequest& b) {
    return std::pair(a.at, a.lane) < std::pair(b.at, b.lane);
  }
};

// A round is counted from the start of the first forward; see Rounds in steady_state.cpp.
bool begins_with_first_forward(const TaskGraph& graph, const TaskTimes& times) {
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    const Op op = graph.op[task];
    if (op.kind != OpKind::forward || op.stage != 0 || op.microbatch != 0) continue;
    return start_of(graph, times, task) == Time{};
  }
  return false;
}

}  // namespace

bool steps_wait_in_lanes(const Program& program, const TaskGraph& graph) {
  const ProgramSettings& settings = program.settings;
  const auto& places = program.placement.stage;
  return settings.weights == WeightRule::flush && settings.messages == Messages::async &&
         settings.clock == Clock::free && settings.delay.empty() && settings.window.empty() &&
         std::all_of(places.begin(), places.end(),
                     [&](const StagePlace& place) {
                       return !place.apart() &&
                              as_size(program.microbatches) % place.replicas.size() == 0;
                     }) &&
         std::all_of(graph.lanes.begin(), graph.lanes.end(), [](const Lane& lane) {
           return lane.kind == LaneKind::compute || is_communication(lane.kind);
         });
}

bool ask_at_once(const TaskGraph& graph, const TaskTimes& times) {
  std::vector<std::vector<LinkRequest>> requests(graph.resources.size());
  for (std::size_t l = 0; l < graph.lanes.size(); ++l) {
    if (requests.empty() || graph.lanes[l].kind == LaneKind::compute) continue;
    const std::uint32_t* before = nullptr;
    for (std::uint32_t k = graph.lane_begin[l]; k < graph.lane_begin[l + 1]; ++k) {
      const std::uint32_t* const task = &graph.lane_task[k];
      for (const std::uint32_t r : graph.paths[graph.path_of[*task]].resources) {
        requests[r].push_back({asked_at(graph, times, *task, before), l});
      }
      before = task;
    }
  }
  return std::any_of(requests.begin(), requests.end(), [](std::vector<LinkRequest>& of_link) {
    std::sort(of_link.begin(), of_link.end());
    const auto same = [](const LinkRequest& a, const LinkRequest& b) {
      return a.at == b.at && a.lane != b.lane;
    };
    return std::adjacent_find(of_link.begin(), of_link.end(), same) != of_link.end();
  });
}

std::optional<Time> lone_step(const TaskGraph& graph, const TaskTimes& times) {
  if (is_fair(graph) || !begins_with_first_forward(graph, times)) return std::nullopt;
  Repetition repetition;
  std::vector<Use> resource(graph.resources.size());
  std::vector<std::size_t> last_lane(resource.size(), graph.lanes.size());
  for (std::size_t l = 0; l < graph.lanes.size(); ++l) {
    const std::uint32_t* const tasks = graph.lane_task.data() + graph.lane_begin[l];
    const std::uint32_t count = graph.lane_begin[l + 1] - graph.lane_begin[l];
    if (count == 0) continue;
    repetition.add_lane(
        {asked_at(graph, times, tasks[0], nullptr), end_of(graph, times, tasks[count - 1])});
    if (resource.empty() || graph.lanes[l].kind == LaneKind::compute) continue;
    for (std::uint32_t k = 0; k < count; ++k) {
      const std::uint32_t task = tasks[k];
      for (const std::uint32_t r : graph.paths[graph.path_of[task]].resources) {
        Use& use = resource[r];
        use.end = std::max(use.end, end_of(graph, times, task));
        if (last_lane[r] == l) continue;  // it has asked before
        last_lane[r] = l;
        const std::uint32_t* const before = k == 0 ? nullptr : &tasks[k - 1];
        use.begin = std::min(use.begin, asked_at(graph, times, task, before));
      }
    }
  }
  for (const Use& use : resource) {
    if (use.begin != Time::max()) repetition.add_resource(use);
  }
  return repetition.step();
}

std::optional<Time> lone_step_with_free_links(const TaskGraph& graph) {
  const TaskTimes times = sweep_with_free_links(graph);
  Repetition repetition;
  for (std::size_t l = 0; l < graph.lanes.size(); ++l) {
    if (graph.lane_begin[l] == graph.lane_begin[l + 1]) continue;
    const std::uint32_t first = graph.lane_task[graph.lane_begin[l]];
    const bool sends = is_communication(graph.lanes[l].kind);
    const Time begin = times.available[first] - (sends ? Time{} : graph.duration[first]);
    repetition.add_lane({begin, times.available[graph.lane_task[graph.lane_begin[l + 1] - 1]]});
  }
  return repetition.step();
}

}  // namespace stageline
