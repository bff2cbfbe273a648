#include "tests/fuzz/runs.hpp"

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "sim/analysis/memory.hpp"
#include "sim/analysis/metrics.hpp"
#include "sim/batch/batched_sweep.hpp"
#include "sim/task_graph.hpp"
#include "tests/fuzz/target.hpp"
#include "tests/schedules/brute_force.hpp"
#include "tests/schedules/reference_difference.hpp"

namespace stageline::fuzz {
namespace {

void check_metrics(const Program& program, const TaskGraph& graph, const TaskTimes& times) {
  const Metrics metrics = metrics_of(program, graph, times);
  hold(metrics.makespan == makespan(times), "another makespan");
  hold(metrics.makespan_free_links <= metrics.makespan, "free links are slower");
  for (const DeviceMetrics& device : metrics.device) {
    hold(device.busy + device.idle == metrics.makespan, "busy and idle are not the makespan");
    hold(device.span_idle <= device.idle, "more idle within than in all");
    Time sum{};
    for (const Time idle : device.idle_by) {
      hold(idle >= Time{}, "an idle time below 0");
      sum += idle;
    }
    hold(sum == device.idle, "idle times do not add up");
  }
  Time at{};
  for (const PathPiece& piece : critical_path(graph, times)) {
    hold(piece.start == at && piece.end >= piece.start, "a gap in the critical path");
    at = piece.end;
  }
  hold(at == metrics.makespan, "the critical path does not end with the run");
  const std::vector<Time> ends = microbatch_ends(program, graph, times);
  hold(std::is_sorted(ends.begin(), ends.end()), "micro-batches end out of order");
}

void check_memory(const Program& program, const Costs& costs, const Timeline& timeline) {
  const MemoryProfile memory = memory_of(program, costs, timeline, Curves::all);
  const MemoryProfile without = memory_of(program, costs, timeline);
  for (std::size_t d = 0; d < memory.device.size(); ++d) {
    const DeviceMemory& device = memory.device[d];
    hold(device.peak == total(device.at_peak), "a peak that is not its parts");
    hold(device.peak == without.device[d].peak, "another peak without curves");
    hold(device.peak_at == without.device[d].peak_at, "another time of the peak without curves");
    Bytes highest{};
    for (const MemoryPoint& point : device.curve) {
      highest = std::max(highest, total(point.use));
      Bytes stash{};
      for (const Bytes part : point.stash) {
        hold(part >= Bytes{}, "a part of the stash below 0");
        stash += part;
      }
      for (const Bytes part : point.use) hold(part >= Bytes{}, "memory below 0");
      hold(stash == point.use[static_cast<std::size_t>(MemoryKind::stash)],
           "a stash that is not its parts");
    }
    hold(highest == device.peak, "the curve's highest point is not the peak");
    const Bytes left = device.at_end[static_cast<std::size_t>(MemoryKind::stash)];
    hold(left == Bytes{}, "a stash is left at the end");
  }
}

}  // namespace

void check_batch(const TaskGraph& graph, std::uint32_t seed) {
  constexpr std::size_t width = BatchedSweep::width;
  std::minstd_rand random(seed);
  std::vector<std::int64_t> duration;
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    for (std::size_t k = 0; k < width; ++k) {
      // A head start is at most the duration of its task.
      const std::int64_t least = graph.paths[graph.path_of[task]].head_start.count();
      duration.push_back(std::max(least, static_cast<std::int64_t>(random() % 9)));
    }
  }
  std::vector<std::int64_t> available(duration.size());
  std::vector<std::int64_t> last(width);
  const BatchedSweep batched(graph);
  batched.ends(duration, available);
  batched.makespans(available, last);
  TaskGraph one = graph;
  for (const std::size_t k : {std::size_t{0}, seed % width}) {
    for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
      one.duration[task] = Time{duration[task * width + k]};
    }
    const TaskTimes times = sweep(one);
    hold(makespan(times).count() == last[k], "another makespan in the batch");
    for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
      hold(times.available[task].count() == available[task * width + k],
           "another end in the batch");
    }
  }
}

void check_run(const Program& program, const Costs& costs) {
  TaskGraph graph = compile(program, costs);
  const TaskTimes swept = sweep(graph);
  const std::string found =
      test::difference(timeline_of(program, graph, swept), test::reference(program, costs));
  if (!found.empty()) broken(found + "\n" + print(program));
  TaskTimes times = swept;
  if (is_fair(graph)) {
    times = run_fair(graph);
  } else if (shares_resources(graph)) {
    times = run(graph);
    hold(times.available == test::brute_force(graph).available, "run() is not the brute force");
  } else {
    hold(run(graph).available == swept.available, "run() is not sweep()");
  }
  check_metrics(program, graph, times);
  check_memory(program, costs, timeline_of(program, graph, times));
}

}  // namespace stageline::fuzz
