#include "tools/study/pace/run_with_pace.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "sim/interference.hpp"

namespace stageline {

Run run_with_pace(const Case& asked, const Layout& layout, const Outcome& nominal) {
  const bool synchronous = nominal.synchrony == Synchrony::synchronous;
  std::vector<int> steps{steps_of_a_pace(asked, layout, synchronous)};
  if (asked.program && !repeats(asked)) {
    steps = {nominal.program.steps};
  } else {
    steps.push_back(std::max(most_steps_of_a_pace(asked, layout, synchronous),
                             synchronous ? 0 : steps_of_a_stream(nominal.program)));
  }
  Runs runs(asked, layout, nominal.costs, steps.back());
  for (const int count : steps) {
    const double step = to_seconds(pace_of(runs.of(count)).step.time);
    const double off = std::abs(step - to_seconds(nominal.step_time));
    if (off <= same_step * to_seconds(nominal.step_time)) return runs.take(count);
  }
  return runs.take(steps.back());
}

Pace pace_with(const Program& program, TaskGraph graph, const Costs& costs) {
  Run run;
  run.program = program;
  run.graph = std::move(graph);
  run.times = simulate_together(run.graph, {costs.slowdown, costs.network.host});
  return pace_of(run);
}

}  // namespace stageline
