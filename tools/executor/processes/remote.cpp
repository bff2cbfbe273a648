// Exchanges finished tasks and their tensors with the other processes of a run.
#include "tools/executor/processes/remote.hpp"

#include <algorithm>
#include <thread>

namespace stageline::executor {
namespace {

// In the place of a task: the delivery carries the start of the run.
constexpr std::uint32_t start_signal = 0xffffffff;

}  // namespace

Remote::Remote(Peers& peers, const Job& job, const TaskGraph& graph, const GatherNeeds& gathers,
               Exchange& exchange, CompletionBoard& board, std::vector<Time>& start)
    : peers_(peers),
      job_(job),
      graph_(graph),
      exchange_(exchange),
      board_(board),
      start_(start),
      waiting_(graph.tasks()) {
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    const int reader = graph.lanes[graph.lane[task]].device;
    for (std::uint32_t n = graph.need_begin[task]; n != graph.need_begin[task + 1]; ++n) {
      add_reader(reader, graph.need[n]);
    }
    for (const std::uint32_t update : gathers.of_task[task]) add_reader(reader, update);
  }
  for (std::size_t device = 0; device < gathers.at_end.size(); ++device) {
    for (const std::uint32_t update : gathers.at_end[device]) {
      add_reader(static_cast<int>(device), update);
    }
  }
  for (std::uint32_t lane = 0; lane < graph.lanes.size(); ++lane) {
    const Lane& one = graph.lanes[lane];
    if (one.kind == LaneKind::send && one.device == peers.rank()) lanes_.push_back(lane);
  }
  restart();
  peers_.listen([this](int from, Delivery delivery) { take(from, std::move(delivery)); });
}

void Remote::add_reader(int reader, std::uint32_t needed) {
  std::vector<int>& ranks = waiting_[needed];
  const bool elsewhere = graph_.lanes[graph_.lane[needed]].device != reader;
  if (elsewhere && std::find(ranks.begin(), ranks.end(), reader) == ranks.end()) {
    ranks.push_back(reader);
  }
}

Remote::~Remote() { peers_.listen({}); }

void Remote::restart() {
  const std::lock_guard lock(mutex_);
  head_ = lanes_.empty() ? 0 : graph_.lane_begin[lanes_[0]];
  lane_free_ = Time{};
}

void Remote::check() const {
  if (const auto why = peers_.failure()) throw PeerFailure(*why);
}

std::chrono::steady_clock::time_point Remote::agree_on_start() {
  announced_start_ = 0;
  peers_.barrier();
  if (peers_.rank() == 0) {
    const std::int64_t at = peers_.now() + 3'000'000;
    for (int rank = 1; rank < peers_.size(); ++rank) peers_.send(rank, {start_signal, at, {}});
    announced_start_ = at;
  }
  while (announced_start_ == 0) {
    check();
    std::this_thread::yield();
  }
  origin_ = announced_start_;
  return std::chrono::steady_clock::time_point(
      std::chrono::nanoseconds(origin_ - peers_.clock_offset()));
}

// The tensors that the task has left in the exchange for others.
Tensors Remote::payload_of(std::uint32_t task) {
  const Op op = graph_.op[task];
  if (const auto cargo = cargo_of(op.kind)) {
    Tensors payload =
        std::exchange(exchange_.mailbox.at(*cargo, wire_of(job_.graph, op), op.microbatch), {});
    if (*cargo == Cargo::activation && job_.program.settings.weights == WeightRule::vertical_sync) {
      payload.push_back(at::scalar_tensor(
          static_cast<std::int64_t>(exchange_.entered[op.microbatch]), at::kLong));
    }
    return payload;
  }
  if (op.kind == OpKind::offload) return exchange_.host[op.stage][op.microbatch];
  if (op.kind == OpKind::update && is_sharded(job_, op.stage)) {
    return std::exchange(exchange_.shards[op.stage][op.microbatch]->of_replica[op.part], {});
  }
  const bool sums = op.kind == OpKind::backward || op.kind == OpKind::weight_grad;
  if (!sums || exchange_.reductions[op.stage].empty()) return {};
  const auto& replicas = job_.program.placement.stage[op.stage].replicas;
  const auto size = static_cast<std::uint32_t>(microbatches_per_update(job_.program, op.stage));
  return exchange_.reductions[op.stage][op.microbatch / size]
      ->of_replica[op.microbatch % replicas.size()];
}

// A replica gets the gradients of its shard where a sharded optimizer sums them, else all.
Tensors Remote::part_for(int rank, Op op, const Tensors& payload) const {
  const bool sums = op.kind == OpKind::backward || op.kind == OpKind::weight_grad;
  if (!sums || payload.empty() || !is_sharded(job_, op.stage)) return payload;
  const std::vector<int>& replicas = job_.program.placement.stage[op.stage].replicas;
  const auto its = std::find(replicas.begin(), replicas.end(), rank);
  if (its == replicas.end()) return {};
  return shard_of(payload, static_cast<std::size_t>(its - replicas.begin()), replicas.size());
}

void Remote::unpack(std::uint32_t task, const Tensors& tensors) {
  if (tensors.empty()) return;
  const Op op = graph_.op[task];
  if (const auto cargo = cargo_of(op.kind)) {
    Tensors payload = tensors;
    if (*cargo == Cargo::activation && job_.program.settings.weights == WeightRule::vertical_sync) {
      exchange_.entered[op.microbatch] =
          static_cast<std::uint32_t>(payload.back().item<std::int64_t>());
      payload.pop_back();
    }
    exchange_.mailbox.at(*cargo, wire_of(job_.graph, op), op.microbatch) = std::move(payload);
    return;
  }
  if (op.kind == OpKind::offload) {
    exchange_.host[op.stage][op.microbatch] = tensors;
    return;
  }
  if (op.kind == OpKind::update) {
    exchange_.shards[op.stage][op.microbatch]->of_replica[op.part] = tensors;
    return;
  }
  const auto& replicas = job_.program.placement.stage[op.stage].replicas;
  const auto size = static_cast<std::uint32_t>(microbatches_per_update(job_.program, op.stage));
  exchange_.reductions[op.stage][op.microbatch / size]
      ->of_replica[op.microbatch % replicas.size()] = tensors;
}

void Remote::take(int, Delivery delivery) {
  if (delivery.task == start_signal) {
    announced_start_ = delivery.at;
    return;
  }
  // Another rank may have heard of the start, and begun, before this one has.
  while (announced_start_ == 0) {
    if (peers_.failure()) return;
    std::this_thread::yield();
  }
  const std::int64_t origin = announced_start_;
  const std::uint32_t task = delivery.task;
  unpack(task, delivery.tensors);
  Time there = std::chrono::duration_cast<Time>(std::chrono::nanoseconds(peers_.now() - origin));
  if (is_send(graph_.op[task].kind)) {
    const Time left =
        std::chrono::duration_cast<Time>(std::chrono::nanoseconds(delivery.at - origin));
    start_[task] = left;
    there = std::max(there, left + graph_.duration[task] + graph_.paths[graph_.path_of[task]].lag);
  }
  board_.publish(task, there);
}

void Remote::done(std::uint32_t task, Time at) {
  if (waiting_[task].empty()) return;
  const std::int64_t on_clock =
      origin_ + std::chrono::duration_cast<std::chrono::nanoseconds>(at).count();
  const Tensors payload = payload_of(task);
  for (const int rank : waiting_[task]) {
    peers_.send(rank, {task, on_clock, part_for(rank, graph_.op[task], payload)});
  }
}

bool Remote::idle() {
  const std::lock_guard lock(mutex_);
  return lanes_.empty() || head_ == graph_.lane_begin[lanes_[0] + 1];
}

void Remote::poll(Time now) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || lanes_.empty()) return;
  while (head_ != graph_.lane_begin[lanes_[0] + 1]) {
    const std::uint32_t task = graph_.lane_task[head_];
    Time ask = lane_free_;
    for (std::uint32_t n = graph_.need_begin[task]; n != graph_.need_begin[task + 1]; ++n) {
      if (!board_.known(graph_.need[n])) return;
      ask = std::max(ask, board_.at(graph_.need[n]));
    }
    if (ask > now) return;
    ++head_;
    start_[task] = ask;
    lane_free_ = ask + graph_.duration[task];
    // A task that waits for it here (a reduction's replica) sees when the link is done with it; the
    // receiver reports when it has arrived.
    board_.publish(task, lane_free_ + graph_.paths[graph_.path_of[task]].lag);
    done(task, ask);
  }
}

}  // namespace stageline::executor
