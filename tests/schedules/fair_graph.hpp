// Task graphs with flows, by hand and at random, for the tests of fair sharing.
#pragma once

#include <algorithm>
#include <numeric>
#include <random>

#include "sim/base/index.hpp"
#include "sim/engine.hpp"

namespace stageline::test {

/// A byte a picosecond: then sizes are times.
inline constexpr std::int64_t byte_per_ps = 1'000'000'000'000;

/// Builds a task graph task by task.
class GraphWriter {
 public:
  explicit GraphWriter(int devices, const std::vector<double>& bytes_per_ps = {}) {
    for (int d = 0; d < devices; ++d) graph_.devices.push_back("gpu" + std::to_string(d));
    for (const double capacity : bytes_per_ps) {
      graph_.resources.push_back("link" + std::to_string(graph_.resources.size()));
      graph_.capacity.push_back({static_cast<std::int64_t>(capacity * byte_per_ps)});
    }
    graph_.paths.emplace_back();
    graph_.need_begin.push_back(0);
  }

  std::uint16_t lane(int device, LaneKind kind) {
    graph_.lanes.push_back({device, kind});
    return static_cast<std::uint16_t>(graph_.lanes.size() - 1);
  }
  std::uint16_t path(Path path) {
    graph_.paths.push_back(std::move(path));
    return static_cast<std::uint16_t>(graph_.paths.size() - 1);
  }
  std::uint32_t task(std::uint16_t lane, Time duration,
                     const std::vector<std::uint32_t>& needs = {}, std::uint16_t path = 0,
                     Bytes bytes = {}) {
    Op op;
    const bool computes = graph_.lanes[lane].kind == LaneKind::compute;
    op.kind = computes ? OpKind::forward : OpKind::reduce_grad;
    op.microbatch = graph_.tasks();
    graph_.op.push_back(op);
    graph_.lane.push_back(lane);
    graph_.path_of.push_back(path);
    graph_.duration.push_back(duration);
    graph_.bytes.push_back(bytes);
    graph_.need.insert(graph_.need.end(), needs.begin(), needs.end());
    graph_.need_begin.push_back(static_cast<std::uint32_t>(graph_.need.size()));
    return graph_.tasks() - 1;
  }
  /// A transfer: its duration is what it takes alone.
  std::uint32_t flow(std::uint16_t lane, std::uint16_t path, Bytes bytes,
                     const std::vector<std::uint32_t>& needs = {}) {
    const Path& of_flow = graph_.paths[path];
    Bandwidth alone = of_flow.bandwidth;
    for (std::size_t i = 0; i < of_flow.resources.size(); ++i) {
      const double load = of_flow.load.empty() ? 1 : of_flow.load[i];
      const auto capacity =
          static_cast<double>(graph_.capacity[of_flow.resources[i]].bytes_per_second);
      alone = std::min(alone, Bandwidth{static_cast<std::int64_t>(capacity / load)});
    }
    return task(lane, of_flow.setup + transfer_time(bytes, alone), needs, path, bytes);
  }
  void slow_by(Tier tier, double slowdown) { nth(graph_.overlap_slowdown, tier) = slowdown; }
  void slow_by_messages(Tier tier, double slowdown) {
    nth(graph_.message_slowdown, tier) = slowdown;
  }
  void drag_by(Tier tier, double slowdown) { nth(graph_.transfer_slowdown, tier) = slowdown; }

  TaskGraph graph() const {
    TaskGraph graph = graph_;
    graph.lane_begin.assign(graph.lanes.size() + 1, 0);
    for (const std::uint16_t lane : graph.lane) ++graph.lane_begin[lane + std::size_t{1}];
    std::partial_sum(graph.lane_begin.begin(), graph.lane_begin.end(), graph.lane_begin.begin());
    graph.lane_task.resize(graph.lane.size());
    std::vector<std::uint32_t> next = graph.lane_begin;
    for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
      graph.lane_task[next[graph.lane[task]]++] = task;
    }
    return graph;
  }

 private:
  TaskGraph graph_;
};

struct RandomFairOptions {
  bool binding = true;      // capacities that flows share; else more than all could use
  bool slowdowns = true;    // of compute, and of transfers beside it
  bool head_starts = true;  // of up to the task's duration
};

/// A few devices with a compute lane and two lanes for transfers each, over a few links.
class RandomFairGraphs {
 public:
  explicit RandomFairGraphs(unsigned seed) : random_(seed) {}

  TaskGraph make(const RandomFairOptions& options) {
    const int devices = number(1, 4);
    std::vector<double> capacity(as_size(number(1, 5)));
    for (double& one : capacity) one = options.binding ? number(1, 40) / 10.0 : 1e5;
    GraphWriter writer(devices, capacity);
    std::vector<std::vector<std::uint16_t>> paths;  // by lane
    std::vector<std::uint16_t> compute;
    for (int d = 0; d < devices; ++d) {
      compute.push_back(writer.lane(d, LaneKind::compute));
      paths.emplace_back();
      for (const LaneKind kind : {LaneKind::send, LaneKind::copy_out}) {
        writer.lane(d, kind);
        paths.emplace_back();
        for (int i = number(1, 2); i > 0; --i) {
          paths.back().push_back(writer.path(random_path(options, devices, capacity.size())));
        }
      }
    }
    if (options.slowdowns) {
      for (const Tier tier : all_tiers) {
        writer.slow_by(tier, number(0, 1) * number(1, 8) / 20.0);
        writer.slow_by_messages(tier, number(0, 1) * number(1, 8) / 20.0);
        writer.drag_by(tier, number(0, 1) * number(1, 8) / 10.0);
      }
    }
    std::vector<std::uint16_t> lane_of;
    for (int i = number(5, 60); i > 0; --i) {
      const auto lane = static_cast<std::uint16_t>(number(0, static_cast<int>(paths.size()) - 1));
      const std::vector<std::uint32_t> needs = random_needs(lane_of, lane);
      lane_of.push_back(lane);
      if (paths[lane].empty()) {
        writer.task(lane, Time{number(0, 60)}, needs);
      } else {
        const std::uint16_t path =
            nth(paths[lane], number(0, static_cast<int>(paths[lane].size()) - 1));
        writer.flow(lane, path, Bytes{number(0, 5) == 0 ? 0 : number(1, 150)}, needs);
      }
    }
    TaskGraph graph = writer.graph();
    if (options.head_starts) give_head_starts(graph);
    return graph;
  }

  std::mt19937& engine() { return random_; }

 private:
  int number(int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random_);
  }

  Path random_path(const RandomFairOptions& options, int devices, std::size_t resources) {
    Path path;
    for (std::uint32_t r = 0; r < resources; ++r) {
      if (number(0, 1) == 0) path.resources.push_back(r);
    }
    if (number(0, 1) == 0) {
      for (std::size_t i = 0; i < path.resources.size(); ++i)
        path.load.push_back(number(1, 8) / 4.0);
    }
    if (number(0, 2) == 0) path.setup = Time{number(1, 20)};
    if (number(0, 2) == 0) path.lag = Time{number(1, 20)};
    const bool bounded = !options.binding || path.resources.empty() || number(0, 1) == 0;
    if (bounded) path.bandwidth = {number(1, 30) * byte_per_ps / 10};
    path.tier = nth(all_tiers, number(0, tiers - 1));
    path.is_message = number(0, 1) == 0;
    for (int d = 0; d < devices; ++d) {
      if (number(0, 1) == 0) path.devices.push_back(static_cast<std::uint16_t>(d));
    }
    return path;
  }

  std::vector<std::uint32_t> random_needs(const std::vector<std::uint16_t>& lane_of,
                                          std::uint16_t lane) {
    std::vector<std::uint32_t> needs;
    const int tasks = static_cast<int>(lane_of.size());
    for (int i = number(0, 2); i > 0 && tasks > 0; --i) {
      const int need = number(std::max(0, tasks - 12), tasks - 1);
      const auto at = static_cast<std::uint32_t>(need);
      const bool known = std::find(needs.begin(), needs.end(), at) != needs.end();
      if (lane_of[at] != lane && !known) needs.push_back(at);
    }
    return needs;
  }

  void give_head_starts(TaskGraph& graph) {
    for (std::size_t p = 1; p < graph.paths.size(); ++p) {
      if (number(0, 1) == 0) continue;
      Time least{40};
      for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
        if (graph.path_of[task] == p) least = std::min(least, graph.duration[task]);
      }
      graph.paths[p].head_start = Time{number(0, static_cast<int>(least.count()))};
    }
  }

  std::mt19937 random_;
};

/// The same graph with its tasks, lanes, paths and links in another order. `number`: by task, its
/// number in the result.
struct Shuffled {
  TaskGraph graph;
  std::vector<std::uint32_t> number;
};
inline Shuffled shuffled(const TaskGraph& graph, std::mt19937& random) {
  const auto order_of = [&](std::size_t count, std::size_t fixed) {
    std::vector<std::uint32_t> order(count);
    std::iota(order.begin(), order.end(), 0U);
    std::shuffle(order.begin() + static_cast<std::ptrdiff_t>(fixed), order.end(), random);
    return order;
  };
  const auto places = [](const std::vector<std::uint32_t>& order) {
    std::vector<std::uint32_t> place(order.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) place[order[i]] = i;
    return place;
  };
  const std::vector<std::uint32_t> lanes = order_of(graph.lanes.size(), 0);
  const std::vector<std::uint32_t> paths = order_of(graph.paths.size(), 1);
  const std::vector<std::uint32_t> links = order_of(graph.resources.size(), 0);
  const std::vector<std::uint32_t> lane_at = places(lanes);
  const std::vector<std::uint32_t> path_at = places(paths);
  const std::vector<std::uint32_t> link_at = places(links);
  Shuffled result;
  GraphWriter writer(static_cast<int>(graph.devices.size()));
  for (const std::uint32_t lane : lanes)
    writer.lane(graph.lanes[lane].device, graph.lanes[lane].kind);
  for (std::size_t p = 1; p < paths.size(); ++p) {
    Path path = graph.paths[paths[p]];
    for (std::uint32_t& resource : path.resources) resource = link_at[resource];
    writer.path(std::move(path));
  }
  // Any order in which needs, and what is ahead in the lane, come first.
  std::vector<std::uint32_t> next(graph.lane_begin.begin(), graph.lane_begin.end() - 1);
  result.number.assign(graph.tasks(), graph.tasks());
  std::uint32_t done = 0;
  while (done < graph.tasks()) {
    const std::size_t lane = random() % graph.lanes.size();
    if (next[lane] == graph.lane_begin[lane + 1]) continue;
    const std::uint32_t task = graph.lane_task[next[lane]];
    std::vector<std::uint32_t> needs;
    for (std::uint32_t i = graph.need_begin[task]; i < graph.need_begin[task + 1]; ++i) {
      needs.push_back(result.number[graph.need[i]]);
    }
    if (std::count(needs.begin(), needs.end(), graph.tasks()) > 0) continue;
    result.number[task] =
        writer.task(static_cast<std::uint16_t>(lane_at[lane]), graph.duration[task], needs,
                    static_cast<std::uint16_t>(path_at[graph.path_of[task]]), graph.bytes[task]);
    ++next[lane];
    ++done;
  }
  result.graph = writer.graph();
  for (const std::uint32_t link : links) {
    result.graph.resources.push_back(graph.resources[link]);
    result.graph.capacity.push_back(graph.capacity[link]);
  }
  result.graph.overlap_slowdown = graph.overlap_slowdown;
  result.graph.message_slowdown = graph.message_slowdown;
  result.graph.transfer_slowdown = graph.transfer_slowdown;
  return result;
}

}  // namespace stageline::test
