// Slopes of the period by what ops take.
#include "sim/analysis/derivatives.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "sim/analysis/cycle_ratio.hpp"
#include "sim/engine.hpp"

namespace stageline {
namespace {

__extension__ using Wide = __int128;

constexpr int most_lines = 64;  // that are tried on the way to the end of a slope

std::vector<Time> scaled_times(const std::vector<Time>& all, const std::vector<Time>& part,
                               double factor) {
  std::vector<Time> times(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double changed = static_cast<double>(part[i].count()) * factor;
    times[i] = all[i] - part[i] + Time{std::llround(changed)};
  }
  return times;
}

}  // namespace

TaskTable table_of(const TaskGraph& graph) {
  TaskTable table;
  table.duration = graph.duration;
  for (const std::uint16_t path : graph.path_of) {
    table.lag.push_back(graph.paths[path].lag);
    table.head_start.push_back(graph.paths[path].head_start);
  }
  return table;
}

TaskTable scaled(const TaskTable& all, const TaskTable& part, double factor) {
  TaskTable table{scaled_times(all.duration, part.duration, factor),
                  {},
                  scaled_times(all.lag, part.lag, factor),
                  scaled_times(all.head_start, part.head_start, factor)};
  for (std::size_t i = 0; i < all.others.size(); ++i) {
    table.others.push_back(scaled_times(all.others[i], part.others[i], factor));
  }
  return table;
}

Time longest_of(const TaskTable& table, std::uint32_t task) {
  Time longest = table.duration[task];
  for (const std::vector<Time>& other : table.others) longest = std::max(longest, other[task]);
  return longest;
}

PeriodCurve::PeriodCurve(const TaskGraph& graph, EventGraph events, TaskTable all)
    : events_(std::move(events)), all_(std::move(all)) {
  std::map<Op, std::uint32_t> task_of;
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) task_of[graph.op[task]] = task;
  for (const Op op : events_.op) task_.push_back(task_of.at(op));
  for (const EventGraph::Edge& edge : events_.edges) {
    Way way{edge.from, edge.to, edge.rounds, edge.wait, 0, false};
    ways_.push_back(way);
    if (events_.op[edge.from].overlapped) {
      for (way.other = 1; way.other <= all_.others.size(); ++way.other) ways_.push_back(way);
      way.other = 0;
    }
    if (edge.wait == Wait::need && all_.head_start[task_[edge.to]] > Time{}) {
      way.started = true;
      ways_.push_back(way);
    }
  }
  events_.edges.clear();
  std::vector<std::size_t> used;
  period_ = period_of(with_times(all_, used));
  find_tight();
}

// Negative where a head start is longer than the op.
Time PeriodCurve::time_of(const Way& way, const TaskTable& table) const {
  if (way.started) return Time{};
  const std::uint32_t from = task_[way.from];
  const Time took = way.other == 0 ? table.duration[from] : table.others[way.other - 1][from];
  if (way.wait != Wait::need) return took;
  return took + table.lag[from] - table.head_start[task_[way.to]];
}

// `ways`: by edge.
EventGraph PeriodCurve::with_times(const TaskTable& table, std::vector<std::size_t>& ways) const {
  EventGraph events = events_;
  for (std::size_t w = 0; w < ways_.size(); ++w) {
    const Way& way = ways_[w];
    const Time time = time_of(way, table);
    if (time < Time{}) continue;  // the way by which it has started is longer
    events.edges.push_back({way.from, way.to, way.rounds, time, way.wait});
    ways.push_back(w);
  }
  return events;
}

// With the period as the length of a round, no cycle is longer than 0; with the longest distances
// as potentials, an edge is tight where it attains them, and the cycles of tight edges are those of
// length 0.
void PeriodCurve::find_tight() {
  if (period_.cycle.empty()) return;
  std::vector<std::size_t> used;
  const std::vector<EventGraph::Edge> edges = with_times(all_, used).edges;
  const auto weight = [&](const EventGraph::Edge& edge) {
    return Wide{edge.time.count()} * period_.rounds - Wide{edge.rounds} * period_.time.count();
  };
  std::vector<Wide> far(events_.op.size(), 0);
  for (bool farther = true; farther;) {
    farther = false;
    for (const EventGraph::Edge& edge : edges) {
      const Wide reached = far[edge.from] + weight(edge);
      if (reached <= far[edge.to]) continue;
      far[edge.to] = reached;
      farther = true;
    }
  }
  for (std::size_t e = 0; e < edges.size(); ++e) {
    if (far[edges[e].from] + weight(edges[e]) == far[edges[e].to]) tight_.push_back(used[e]);
  }
}

Period PeriodCurve::at(const TaskTable& part, double factor) const {
  std::vector<std::size_t> used;
  return period_of(with_times(scaled(all_, part, factor), used));
}

// The most of the part on a critical cycle; `rest`: the most of all that is not the part, so the
// least of the part.
PeriodSlope PeriodCurve::most_of(const TaskTable& part, bool rest) const {
  EventGraph events = events_;
  std::vector<Time> parts;
  for (const std::size_t w : tight_) {
    const Way& way = ways_[w];
    const Time whole = time_of(way, all_);
    parts.push_back(std::clamp(time_of(way, part), Time{}, whole));
    events.edges.push_back(
        {way.from, way.to, way.rounds, rest ? whole - parts.back() : parts.back(), way.wait});
  }
  const std::vector<std::size_t> cycle = critical_edges(events);
  // No cycle has any of what is asked for.
  if (cycle.empty()) {
    return rest ? PeriodSlope{period_.time.count(), period_.rounds} : PeriodSlope{};
  }
  PeriodSlope slope{0, 0};
  for (const std::size_t e : cycle) {
    slope.time += parts[e].count();
    slope.rounds += events.edges[e].rounds;
  }
  return slope;
}

PeriodSlopes PeriodCurve::slopes(const TaskTable& part) const {
  if (tight_.empty()) return {};
  return {most_of(part, true), most_of(part, false)};
}

PeriodCurve::Line PeriodCurve::critical_line(const TaskTable& part, double factor) const {
  std::vector<std::size_t> used;
  const EventGraph events = with_times(scaled(all_, part, factor), used);
  std::int64_t time = 0;
  std::int64_t slope = 0;
  std::int64_t rounds = 0;
  const std::vector<std::size_t> cycle = critical_edges(events);
  for (const std::size_t e : cycle) {
    const Way& way = ways_[used[e]];
    time += time_of(way, all_).count();
    slope += time_of(way, part).count();
    rounds += way.rounds;
  }
  if (rounds == 0) return {};
  const auto by = static_cast<double>(rounds);
  // Three rounded entries an edge, of this cycle and of the one of the slope.
  return {static_cast<double>(time) / by, static_cast<double>(slope) / by,
          3 * static_cast<double>(cycle.size() + events_.op.size()) / by};
}

// Where the line through the period with that slope is left, on the way from 1 to `from`.
double PeriodCurve::end_of(const TaskTable& part, double slope, double from) const {
  const double period =
      static_cast<double>(period_.time.count()) / static_cast<double>(period_.rounds);
  double factor = from;
  for (int tried = 0; tried < most_lines; ++tried) {
    const Line line = critical_line(part, factor);
    const double above = line.time + line.slope * (factor - 1) - (period + slope * (factor - 1));
    if (above <= line.error) return factor;
    const double met = 1 + (period - line.time) / (line.slope - slope);
    const bool nearer = from < 1 ? met > factor && met <= 1 : met < factor && met >= 1;
    if (!nearer) return 1;
    factor = met;
  }
  return factor;
}

SlopeReach PeriodCurve::reach(const TaskTable& part, const PeriodSlopes& slopes) const {
  if (period_.cycle.empty()) return {0, most_factor};
  return {end_of(part, slopes.faster.value(), 0), end_of(part, slopes.slower.value(), most_factor)};
}

}  // namespace stageline
