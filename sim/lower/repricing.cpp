// Finds the classes of tasks that cost the same, and charges them one by one.
#include "sim/lower/repricing.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "sim/lower/charges.hpp"
#include "sim/op_time.hpp"

namespace stageline {
namespace {

// All that a charge depends on where it is the same for all numbers.
auto key_of(const TaskGraph& graph, std::uint32_t task) {
  const auto sort = [](Op op) {
    return std::tuple(op.kind, std::uint16_t{op.stage}, std::uint8_t{op.part});
  };
  const Op op = graph.op[task];
  const Op second = op.overlapped ? graph.partner[task] : Op{};
  return std::tuple(sort(op), op.overlapped != 0, sort(second), graph.lane[task]);
}

}  // namespace

Repricing::Repricing(const Program& program, const Costs& costs)
    : program_(program), stages_(stage_graph(program)), graph_(compile(program, costs)) {
  const Charges charges(program, costs, stages_);
  std::map<decltype(key_of(graph_, 0)), std::uint32_t> known;
  for (std::uint32_t task = 0; task < graph_.tasks(); ++task) {
    auto number = static_cast<std::uint32_t>(first_.size());
    if (charges.same_for_all(graph_.op[task])) {
      number = known.try_emplace(key_of(graph_, task), number).first->second;
    }
    if (number == first_.size()) {
      first_.push_back(task);
      size_.push_back(0);
    }
    class_of_.push_back(number);
    ++size_[number];
  }
}

void Repricing::price(const Costs& costs, TaskGraph& graph) const {
  struct Price {
    Time time{};
    std::uint16_t path = 0;
    Bytes bytes{};
  };
  __extension__ using Wide = __int128;
  Charges charges(program_, costs, stages_);
  std::vector<Price> price(first_.size());
  Wide busy = 0;
  for (std::size_t c = 0; c < first_.size(); ++c) {
    const std::uint32_t task = first_[c];
    const Op op = graph_.op[task];
    const Charge charge = charges.of(op, graph_.lane[task]);
    price[c] = {charge.duration, charge.path, {}};
    if (op.overlapped) price[c].time = charges.of_pair(op, graph_.partner[task]);
    busy += Wide{price[c].time.count()} * size_[c];
    if (lane_of(op.kind) != LaneKind::compute || costs.pace.empty()) continue;
    price[c].time = task_time_on(costs, program_.placement, op,
                                 op.overlapped ? std::optional(graph_.partner[task]) : std::nullopt,
                                 graph_.lanes[graph_.lane[task]].device);
  }
  graph = graph_;
  graph.resources.clear();
  graph.capacity.clear();
  charges.give_paths(graph);
  Wide late = 0;
  for (std::size_t c = 0; c < first_.size(); ++c) {
    late += Wide{graph.paths[price[c].path].lag.count()} * size_[c];
    price[c].bytes = charges.bytes_of(graph_.op[first_[c]], price[c].path);
  }
  // A run may be too long to be added up: that has a message of its own.
  if (static_cast<double>(busy) * charges.most_slowdown() + static_cast<double>(late) >=
      0.9 * static_cast<double>(longest_run.count())) {
    graph = compile(program_, costs);
    return;
  }
  const bool fair = costs.sharing == Sharing::fair;
  graph.bytes.resize(fair ? graph.tasks() : 0);
  charges.give_slowdowns(graph);
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    const Price& of_task = price[class_of_[task]];
    graph.duration[task] = of_task.time;
    graph.path_of[task] = of_task.path;
    if (fair) graph.bytes[task] = of_task.bytes;
  }
}

}  // namespace stageline
