#include "schedulers/parts/memory_trial.hpp"

#include <algorithm>

#include "sim/analysis/memory.hpp"
#include "sim/base/index.hpp"
#include "sim/interference.hpp"
#include "sim/lower/passes.hpp"

namespace stageline {

bool MemoryTrial::fits() const {
  return std::all_of(over.begin(), over.end(), [](Bytes bytes) { return bytes == Bytes{}; });
}

MemoryTrial try_memory(const Problem& problem, const Program& program) {
  const Program whole = complete(program, problem.costs);
  TaskGraph graph = compile(whole, problem.costs);
  const TaskTimes times = simulate_together(graph, {});
  const Timeline timeline = timeline_of(whole, graph, times);
  const MemoryProfile memory = memory_of(whole, problem.costs, timeline);
  MemoryTrial trial;
  for (std::size_t d = 0; d < problem.devices.size(); ++d) {
    const auto size = d < problem.memory.size() ? problem.memory[d] : std::nullopt;
    const bool fits = !size || memory.device[d].peak <= *size;
    trial.over.push_back(fits ? Bytes{} : memory.device[d].peak - *size);
  }
  for (std::size_t lane = 0; lane < graph.lanes.size(); ++lane) {
    const std::uint32_t begin = graph.lane_begin[lane];
    const std::uint32_t end = graph.lane_begin[lane + 1];
    if (graph.lanes[lane].kind != LaneKind::compute || begin == end) continue;
    trial.span = std::max(trial.span, end_of(graph, times, graph.lane_task[end - 1]) -
                                          start_of(graph, times, graph.lane_task[begin]));
  }
  trial.makespan = makespan(times);
  return trial;
}

}  // namespace stageline
