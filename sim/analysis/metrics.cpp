// When micro-batches and steps are done.
#include "sim/analysis/metrics.hpp"

#include <algorithm>

#include "sim/analysis/rhythm.hpp"
#include "sim/base/index.hpp"

namespace stageline {

std::vector<Time> microbatch_ends(const Program& program, const TaskGraph& graph,
                                  const TaskTimes& times) {
  std::vector<Time> ends(program.total_microbatches());
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    Time& end = ends[microbatch_of(program, graph.op[task])];
    end = std::max(end, times.available[task]);
  }
  for (std::size_t m = 1; m < ends.size(); ++m) ends[m] = std::max(ends[m], ends[m - 1]);
  return ends;
}

std::vector<Time> step_ends(const Program& program, const TaskGraph& graph,
                            const TaskTimes& times) {
  const std::vector<Time> by_microbatch = microbatch_ends(program, graph, times);
  std::vector<Time> ends;
  for (int step = 1; step <= program.steps; ++step) {
    ends.push_back(by_microbatch[as_size(step) * as_size(program.microbatches) - 1]);
  }
  return ends;
}

}  // namespace stageline
