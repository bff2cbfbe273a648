// Records what devices hold.
#include "tools/executor/run/held_record.hpp"

#include "sim/base/index.hpp"

namespace stageline::executor {

HeldRecord::HeldRecord(const Job& job, const TaskGraph& graph, const CompletionBoard& board,
                       const std::vector<Accelerator>& devices)
    : job_(job), graph_(graph), board_(board) {
  for (const Accelerator& device : devices) device_.emplace_back(device.where);
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    const Op op = graph.op[task];
    if (is_send(op.kind))
      message_[{*cargo_of(op.kind), wire_of(job.graph, op), op.microbatch}] = task;
    if (lane_of(op.kind) != LaneKind::compute) continue;
    maker_[plain(op)] = task;
    if (op.overlapped && !graph.partner.empty()) maker_[plain(graph.partner[task])] = task;
  }
}

void HeldRecord::restart() {
  for (Device& device : device_) {
    device.log.restart();
    device.stashes.restart();
    device.changes.clear();
  }
}

std::optional<std::uint32_t> HeldRecord::send_of(Cargo cargo, int wire,
                                                 std::uint32_t number) const {
  const auto found = message_.find({cargo, wire, number});
  return found == message_.end() ? std::nullopt : std::optional(found->second);
}

void HeldRecord::set_hooks(std::size_t device, MessageHooks& hooks) {
  Device& here = device_[device];
  hooks.passage = [this](Cargo cargo, int wire, std::uint32_t number) {
    const Passage passage = passage_of(cargo, wire, number);
    return MessageHooks::Passage{moment(passage.comes), moment(passage.left)};
  };
  hooks.date = [&here](Moment at) { return here.log.date(at); };
  hooks.stash_came = [this, &here](int wire, std::uint32_t number, std::int64_t bytes) {
    here.stashes.note(passage_of(Cargo::stash, wire, number).comes, bytes);
  };
}

HeldRecord::Passage HeldRecord::passage_of(std::uint32_t send) const {
  const Time arrival = board_.at(send);
  return {arrival - graph_.duration[send], arrival - graph_.paths[graph_.path_of[send]].lag};
}

// Where no message carries a tensor, it is there as soon as it is made.
HeldRecord::Passage HeldRecord::passage_of(Cargo cargo, int wire_number,
                                           std::uint32_t number) const {
  if (const auto send = send_of(cargo, wire_number, number)) return passage_of(*send);
  const Wire& way = wire(job_.graph, cargo, wire_number);
  for (const OpKind kind : {OpKind::forward, OpKind::input_grad, OpKind::backward}) {
    if ((kind == OpKind::forward) != (cargo == Cargo::activation)) continue;
    const auto made = maker_.find(op_of(kind, way.sender, number, way.part));
    if (made == maker_.end()) continue;
    const Time at = board_.at(made->second);
    return {at, at};
  }
  return {};
}

void HeldRecord::computed(std::size_t device, Op op, const StashChange& change) {
  device_[device].changes.emplace_back(op, change);
}

void HeldRecord::ended(std::size_t device, Time start, Time end) {
  Device& here = device_[device];
  for (const auto& [op, change] : here.changes) {
    const auto messages = nth(job_.graph.sends, Cargo::stash)[op.stage].size();
    here.stashes.note(op, change, start, end, static_cast<int>(messages));
  }
  here.changes.clear();
}

void HeldRecord::copied(std::size_t device, Time at, std::int64_t bytes) {
  device_[device].stashes.note(at, bytes);
}

HeldBytes HeldRecord::held(std::size_t device) {
  StashLog& stashes = device_[device].stashes;
  for (const auto& [message, task] : message_) {
    const bool mine = as_size(graph_.lanes[graph_.lane[task]].device) == device;
    if (mine && std::get<0>(message) == Cargo::stash) {
      stashes.left(graph_.op[task], passage_of(task).left);
    }
  }
  return {device_[device].log.peak(), stashes.peak()};
}

}  // namespace stageline::executor
