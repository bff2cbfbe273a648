// Turns the record of a run into text and into an Execution.
#include "tools/executor/run/run_record.hpp"

#include <fmt/format.h>

#include <sstream>

#include "sim/base/index.hpp"

namespace stageline::executor {
namespace {

int receiver_of(const Job& job, Op op) {
  const Wire& of_message = wire(job.graph, *cargo_of(op.kind), wire_of(job.graph, op));
  return ends_of(job.program.placement, of_message, op.microbatch).to;
}

}  // namespace

RunRecord::RunRecord(const Job& job_of_run, const TaskGraph& graph_of_run, Tensors& losses_of_run)
    : job(job_of_run),
      graph(graph_of_run),
      losses(losses_of_run),
      board(graph.tasks()),
      start(graph.tasks()),
      version(graph.tasks()),
      held(job.program.devices.size()) {}

std::string RunRecord::text_of(int device) const {
  std::string text;
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    const Op op = graph.op[task];
    const int reporter =
        is_send(op.kind) ? receiver_of(job, op) : graph.lanes[graph.lane[task]].device;
    if (reporter != device) continue;
    text += fmt::format("{} {} {} {}\n", task, start[task].count(), board.at(task).count(),
                        version[task]);
  }
  text += "losses\n";
  for (std::size_t m = 0; m < losses.size(); ++m) {
    if (losses[m].defined()) text += fmt::format("{} {:.17g}\n", m, losses[m].item<double>());
  }
  const HeldBytes& mine = nth(held, device);
  return text + fmt::format("held\n{} {} {} {}\n", device, mine.peak, mine.stash, mine.optimizer);
}

void RunRecord::read(const std::string& text) {
  std::istringstream lines(text);
  std::string word;
  while (lines >> word && word != "losses") {
    const auto task = static_cast<std::uint32_t>(std::stoul(word));
    std::int64_t from = 0;
    std::int64_t there = 0;
    lines >> from >> there >> version[task];
    start[task] = Time{from};
    board.publish(task, Time{there});
  }
  while (lines >> word && word != "held") {
    double loss = 0;
    lines >> loss;
    losses[std::stoul(word)] = at::scalar_tensor(loss, at::kDouble);
  }
  std::size_t device = 0;
  lines >> device;
  lines >> held[device].peak >> held[device].stash >> held[device].optimizer;
}

Execution RunRecord::execution(bool between_processes, bool wires_copied) const {
  Execution result{graph, {}, version, {}};
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    const Time end = board.at(task);
    result.times.available.push_back(end);
    // A copy's latency is the link's: it counts as the copy's own time here. Between processes a
    // message lasts from its departure to its arrival.
    const LaneKind kind = graph.lanes[graph.lane[task]].kind;
    if (kind == LaneKind::send && !between_processes) continue;
    if (wires_copied && (kind == LaneKind::copy_out || kind == LaneKind::copy_in)) continue;
    result.graph.duration[task] = end - start[task];
    result.graph.path_of[task] = 0;
  }
  for (const at::Tensor& loss : losses) {
    result.losses.push_back(loss.defined() ? loss.item<double>() : 0);
  }
  return result;
}

}  // namespace stageline::executor
