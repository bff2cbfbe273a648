// Messages and timed waits in the place of compute ops.
#include "tools/executor/run/imitation.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>
#include <utility>

#include "sim/base/index.hpp"
#include "sim/wires.hpp"

namespace stageline::executor {
namespace {

bool sums_gradients(Op op) { return op.kind == OpKind::backward || op.kind == OpKind::weight_grad; }

std::uint32_t update_of(const Job& job, Op op) {
  return op.microbatch / static_cast<std::uint32_t>(microbatches_per_update(job.program, op.stage));
}

}  // namespace

Imitation::Imitation(const Job& job, const Costs& costs, const TaskGraph& graph, Exchange& exchange,
                     const std::function<bool(int device)>& is_here)
    : job_(job),
      graph_(graph),
      exchange_(exchange),
      messages_(graph.tasks()),
      ends_sum_(graph.tasks()) {
  Bytes most{};
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    const Op op = graph.op[task];
    if (!is_send(op.kind)) continue;
    const Cargo cargo = *cargo_of(op.kind);
    const Message message{cargo, wire_of(job.graph, op), op.microbatch,
                          message_bytes(job.program, costs, job.graph, op)};
    for (std::uint32_t n = graph.need_begin[task]; n != graph.need_begin[task + 1]; ++n) {
      const std::uint32_t sender = graph.need[n];
      const Lane& lane = graph.lanes[graph.lane[sender]];
      if (lane.kind != LaneKind::compute || !is_here(lane.device)) continue;
      messages_[sender].push_back(message);
      most = std::max(most, message.bytes);
    }
  }
  for (const StageCosts& stage : costs.stage) {
    gradients_.push_back(stage.gradients);
    stash_.push_back(stage.stash());
    most = std::max({most, stage.gradients, stage.stash()});
  }
  note_reductions(is_here);
  bytes_ = at::ones({most.count}, at::kByte);
}

void Imitation::note_reductions(const std::function<bool(int device)>& is_here) {
  for (std::uint32_t lane = 0; lane < graph_.lanes.size(); ++lane) {
    const Lane& one = graph_.lanes[lane];
    if (one.kind != LaneKind::compute || !is_here(one.device)) continue;
    std::map<std::pair<int, std::uint32_t>, std::uint32_t> last;  // stage, update → task
    for (std::uint32_t at = graph_.lane_begin[lane]; at != graph_.lane_begin[lane + 1]; ++at) {
      const std::uint32_t task = graph_.lane_task[at];
      const Op op = graph_.op[task];
      if (sums_gradients(op) && !exchange_.reductions[op.stage].empty()) {
        last[{op.stage, update_of(job_, op)}] = task;
      }
    }
    for (const auto& [update, task] : last) ends_sum_[task] = true;
  }
}

// All share their bytes, which nobody reads or writes.
at::Tensor Imitation::of_size(Bytes bytes) const { return bytes_.narrow(0, 0, bytes.count); }

void Imitation::leave(std::uint32_t task) {
  for (const Message& message : messages_[task]) {
    exchange_.mailbox.at(message.cargo, message.wire, message.number) = {of_size(message.bytes)};
  }
  if (!ends_sum_[task]) return;
  const Op op = graph_.op[task];
  const std::size_t replicas = job_.program.placement.stage[op.stage].replicas.size();
  exchange_.reductions[op.stage][update_of(job_, op)]->of_replica[op.microbatch % replicas] = {
      of_size(gradients_[op.stage])};
}

void Imitation::take(std::uint32_t task) {
  for (std::uint32_t n = graph_.need_begin[task]; n != graph_.need_begin[task + 1]; ++n) {
    const Op op = graph_.op[graph_.need[n]];
    if (!is_send(op.kind)) continue;
    exchange_.mailbox.at(*cargo_of(op.kind), wire_of(job_.graph, op), op.microbatch).clear();
  }
}

void Imitation::copy(Op op) {
  Tensors& host = exchange_.host[op.stage][op.microbatch];
  if (op.kind == OpKind::offload) {
    host = {of_size(stash_[op.stage])};
  } else {
    host.clear();
  }
}

void wait_exactly() { ::prctl(PR_SET_TIMERSLACK, 1000UL); }

void wait_until(std::chrono::steady_clock::time_point end, const std::function<void()>& check) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds often{20};
  while (true) {
    check();
    const Clock::time_point now = Clock::now();
    if (now >= end) return;
    std::this_thread::sleep_until(std::min<Clock::time_point>(end, now + often));
  }
}

}  // namespace stageline::executor
