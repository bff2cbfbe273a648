// Finds the levers of a program, and what part of each task's time they are.
#include "tools/study/whatif/levers.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "sim/analysis/blocking_time.hpp"
#include "sim/base/index.hpp"
#include "sim/op_time.hpp"
#include "sim/rules.hpp"

namespace stageline {
namespace {

Time part_of_time(Time whole, double share) {
  if (share == 1) return whole;
  return Time{std::llround(static_cast<double>(whole.count()) * share)};
}

// The SEND of a message, else the kind itself.
OpKind sent(OpKind kind) {
  const std::optional<Cargo> cargo = cargo_of(kind);
  return cargo ? send_of(*cargo) : kind;
}

std::string words(OpKind kind) {
  switch (kind) {
    case OpKind::forward:
      return "forward";
    case OpKind::input_grad:
      return "input gradient";
    case OpKind::weight_grad:
      return "weight gradient";
    case OpKind::backward:
      return "backward";
    case OpKind::recompute:
      return "recompute";
    case OpKind::update:
      return "optimizer";
    case OpKind::reduce_grad:
      return "gradient reduction";
    case OpKind::send_forward:
    case OpKind::receive_forward:
      return "messages: activations";
    case OpKind::send_backward:
    case OpKind::receive_backward:
      return "messages: gradients";
    case OpKind::send_stash:
    case OpKind::receive_stash:
      return "messages: stashes";
    case OpKind::send_weights:
    case OpKind::receive_weights:
      return "messages: weights";
    case OpKind::offload:
      return "copies to the host";
    case OpKind::prefetch:
      return "copies from the host";
  }
  return "";
}

BlockingTimes compute_of(const StageCosts& costs) {
  return {costs.forward,  costs.input_grad, costs.weight_grad,
          costs.backward, costs.recompute,  costs.update};
}

constexpr std::array compute_kinds{OpKind::forward,  OpKind::input_grad, OpKind::weight_grad,
                                   OpKind::backward, OpKind::recompute,  OpKind::update};

double share_of(Time part, Time whole) {
  if (whole <= Time{}) return 0;
  return std::clamp(static_cast<double>(part.count()) / static_cast<double>(whole.count()), 0.0,
                    1.0);
}

bool computes(OpKind kind) { return lane_of(kind) == LaneKind::compute; }

}  // namespace

std::string_view name(LeverKind kind) {
  switch (kind) {
    case LeverKind::op_kind:
      return "op-kind";
    case LeverKind::stage:
      return "stage";
    case LeverKind::stage_op:
      return "stage-op";
    case LeverKind::device:
      return "device";
    case LeverKind::memory:
      return "memory";
    case LeverKind::collectives:
      return "collectives";
    case LeverKind::bandwidth:
      return "bandwidth";
    case LeverKind::latency:
      return "latency";
    case LeverKind::route:
      return "route";
  }
  return "";
}

Levers::Levers(const Case& asked, const Layout& layout, const Costs& costs, const Program& program,
               const TaskGraph& graph)
    : costs_(costs),
      program_(program),
      graph_(graph),
      times_(table_of(graph)),
      whole_backward_(costs.stage.size()) {
  for (const auto& ops : program.ops) {
    for (const Op op : ops) {
      if (op.kind == OpKind::backward) whole_backward_[op.stage] = true;
    }
  }
  find_pairs();
  find_memory_shares(asked, layout);
  list(asked);
}

Levers::Pair Levers::pair_of(std::uint32_t task) const {
  const int device = graph_.lanes[graph_.lane[task]].device;
  return {pair_half_on(costs_, program_.placement, graph_.op[task], device),
          pair_half_on(costs_, program_.placement, graph_.partner[task], device)};
}

// Rounded as compile() rounds them, so that the longest one is the duration of the graph.
void Levers::find_pairs() {
  if (graph_.partner.empty()) return;
  times_.others.assign(costs_.pair_overlap ? 1 : 3, times_.duration);
  for (std::uint32_t task = 0; task < graph_.tasks(); ++task) {
    if (!graph_.op[task].overlapped) continue;
    const Pair pair = pair_of(task);
    if (!costs_.pair_overlap) {
      set_hiding(pair, task, times_);
      continue;
    }
    const Time both = pair.one.time + pair.other.time;
    const auto without = [&](Time hidden) {
      return both - part_of_time(hidden, *costs_.pair_overlap);
    };
    times_.duration[task] = without(pair.one.time);
    times_.others[0][task] = without(pair.other.time);
  }
}

// What a pair that hides transfers takes is the longest of these.
void Levers::set_hiding(const Pair& pair, std::uint32_t task, TaskTable& table) const {
  table.duration[task] = pair_work(costs_, pair.one, pair.other);
  table.others[0][task] = pair.one.time;
  table.others[1][task] = pair.other.time;
  table.others[2][task] = pair.one.transfers + pair.other.transfers;
}

// By the costs of the same case without that work: rates, recomputation and chunks are theirs.
void Levers::find_memory_shares(const Case& asked, const Layout& layout) {
  const auto bound = [](const Layer& layer) { return layer.memory_bound; };
  if (std::none_of(asked.model.layers.begin(), asked.model.layers.end(), bound)) return;
  Case without = asked;
  const auto leave_out = [](Model& model) {
    for (Layer& layer : model.layers) {
      if (!layer.memory_bound) continue;
      layer.forward = layer.input_grad = layer.weight_grad = layer.backward = Time{};
      layer.selective_forward = Time{};
      for (LayerModule& module : layer.modules) module.forward = Time{};
    }
  };
  leave_out(without.model);
  without.kinds.clear();  // the mean is what is compared
  if (asked.slice) {
    Model slice = *asked.slice;
    leave_out(slice);
    without.slice = std::make_shared<const Model>(std::move(slice));
  }
  const Costs rest = costs_of(without, layout);
  memory_share_.resize(costs_.stage.size());
  for (std::size_t s = 0; s < costs_.stage.size(); ++s) {
    const BlockingTimes all = compute_of(costs_.stage[s]);
    const BlockingTimes left = compute_of(rest.stage[s]);
    for (const OpKind kind : compute_kinds) {
      const Time time = blocking_time(all, kind);
      nth(memory_share_[s], kind) = kind == OpKind::update
                                        ? share_of(time - costs_.stage[s].blocking.update, time)
                                        : share_of(time - blocking_time(left, kind), time);
    }
  }
}

double Levers::compute_share(const Lever& lever, Op op, int device) const {
  const StageCosts& stage = costs_.of(op);
  // At the pace of the device, and not of the part of a divided I alone.
  const Time blocked = blocking_time(stage.blocking, op.kind);
  const Time computed =
      costs_.paced(std::max(Time{}, blocking_time(compute_of(stage), op.kind) - blocked), device);
  const auto without_collectives = [&] { return 1 - share_of(blocked, blocked + computed); };
  switch (lever.kind) {
    case LeverKind::op_kind:
      return op.kind == *lever.op ? 1 : 0;
    case LeverKind::stage:
      return int{op.stage} == *lever.stage ? without_collectives() : 0;
    case LeverKind::stage_op:
      return int{op.stage} == *lever.stage && op.kind == *lever.op ? 1 : 0;
    case LeverKind::device:
      return device == *lever.device ? without_collectives() : 0;
    case LeverKind::memory: {
      const Time whole = blocking_time(compute_of(stage), op.kind);
      const double share = nth(memory_share_[op.stage], op.kind);
      if (costs_.paced(whole, device) == whole) return share;
      return share_of(costs_.paced(part_of_time(whole, share), device), blocked + computed);
    }
    case LeverKind::collectives:
      return share_of(lever.dimension
                          ? blocking_time(nth(stage.blocking_by, *lever.dimension), op.kind)
                          : blocked,
                      blocked + computed);
    case LeverKind::bandwidth:
    case LeverKind::latency:
    case LeverKind::route:
      return 0;
  }
  return 0;
}

// Whether the lever's part of an op includes the transfers that an overlapped pair hides.
bool Levers::has_transfers(const Lever& lever, Op op) {
  switch (lever.kind) {
    case LeverKind::op_kind:
      return op.kind == *lever.op;
    case LeverKind::stage_op:
      return int{op.stage} == *lever.stage && op.kind == *lever.op;
    case LeverKind::collectives:
      return lever.dimension.value_or(hidden_in_pairs) == hidden_in_pairs;
    case LeverKind::stage:
    case LeverKind::device:
    case LeverKind::memory:
    case LeverKind::bandwidth:
    case LeverKind::latency:
    case LeverKind::route:
      return false;
  }
  return false;
}

void Levers::set_compute(const Lever& lever, std::uint32_t task, TaskTable& part) const {
  const Op op = graph_.op[task];
  const int device = graph_.lanes[graph_.lane[task]].device;
  if (!op.overlapped || times_.others.empty()) {
    part.duration[task] = part_of_time(times_.duration[task], compute_share(lever, op, device));
    for (std::vector<Time>& other : part.others) other[task] = part.duration[task];
    return;
  }
  const Op partner = graph_.partner[task];
  const Pair whole = pair_of(task);
  const Time one = part_of_time(whole.one.time, compute_share(lever, op, device));
  const Time other = part_of_time(whole.other.time, compute_share(lever, partner, device));
  if (!costs_.pair_overlap) {
    const auto half = [&](Op of, Time time, Time transfers) {
      return PairHalf{time, has_transfers(lever, of) ? std::min(time, transfers) : Time{}};
    };
    set_hiding({half(op, one, whole.one.transfers), half(partner, other, whole.other.transfers)},
               task, part);
    part.duration[task] = std::min(times_.duration[task], part.duration[task]);
    return;
  }
  const double shown = 1 - *costs_.pair_overlap;
  part.duration[task] = std::min(times_.duration[task], part_of_time(one, shown) + other);
  part.others[0][task] = std::min(times_.others[0][task], one + part_of_time(other, shown));
}

// The first part of a transfer that is not bytes: rounds of a collective, or the latency of a
// message that blocks.
void Levers::set_transfer(const Lever& lever, std::uint32_t task, TaskTable& part) const {
  const Op op = graph_.op[task];
  const Path& path = graph_.paths[graph_.path_of[task]];
  const OpClass is = class_of(op.kind);
  const bool receives = cargo_of(op.kind) && !is_send(op.kind);
  const Time all = times_.duration[task];
  const Time setup = receives ? all : is == OpClass::reduction ? std::min(path.setup, all) : Time{};
  switch (lever.kind) {
    case LeverKind::op_kind:
      if (sent(op.kind) != *lever.op) return;
      part.duration[task] = is == OpClass::message ? all - setup : all;
      // Messages of several kinds may share a path, and so a lag.
      if (is == OpClass::copy) part.lag[task] = times_.lag[task];
      break;
    case LeverKind::bandwidth:
      if (is != OpClass::copy) part.duration[task] = all - setup;
      break;
    case LeverKind::latency:
      if (is == OpClass::copy) return;
      part.duration[task] = setup;
      part.lag[task] = times_.lag[task];
      break;
    case LeverKind::route:
      if (is != OpClass::message || path.devices.size() != 2) return;
      if (int{path.devices[0]} != *lever.device || int{path.devices[1]} != *lever.to) return;
      part.duration[task] = all - setup;
      break;
    case LeverKind::stage:
    case LeverKind::stage_op:
    case LeverKind::device:
    case LeverKind::memory:
    case LeverKind::collectives:
      break;
  }
}

// Buckets fill while the backward runs, in proportion to its time, and each is reduced in
// proportion to that of the reduction; so what is left of it behind the backward is, too.
void Levers::set_head_start(const Lever& lever, std::uint32_t task, TaskTable& part) const {
  const Time head_start = times_.head_start[task];
  if (head_start == Time{}) return;
  const Op op = graph_.op[task];
  const OpKind last = whole_backward_[op.stage] ? OpKind::backward : OpKind::weight_grad;
  const double share =
      compute_share(lever, op_of(last, op.stage, 0), graph_.lanes[graph_.lane[task]].device) +
      share_of(part.duration[task], times_.duration[task]);
  part.head_start[task] = part_of_time(head_start, std::min(share, 1.0));
}

bool Levers::has_setups(const Lever& lever) {
  return lever.kind == LeverKind::op_kind || lever.kind == LeverKind::latency;
}

TaskTable Levers::part(const Lever& lever) const {
  const std::vector<Time> none(graph_.tasks());
  TaskTable part{none, {}, none, none};
  part.others.assign(times_.others.size(), none);
  for (std::uint32_t task = 0; task < graph_.tasks(); ++task) {
    if (computes(graph_.op[task].kind)) {
      set_compute(lever, task, part);
    } else {
      set_transfer(lever, task, part);
      set_head_start(lever, task, part);
      for (std::vector<Time>& other : part.others) other[task] = part.duration[task];
    }
  }
  return part;
}

bool Levers::takes_time(const Lever& lever) const {
  const TaskTable part = this->part(lever);
  const auto any = [](const std::vector<Time>& times) {
    return std::any_of(times.begin(), times.end(), [](Time time) { return time > Time{}; });
  };
  return any(part.duration) || any(part.lag) ||
         std::any_of(part.others.begin(), part.others.end(), any);
}

void Levers::add(Lever lever) {
  if (takes_time(lever)) levers_.push_back(std::move(lever));
}

void Levers::list(const Case& asked) {
  const auto device_name = [&](int device) { return nth(program_.devices, device); };
  std::set<OpKind> kinds;
  std::set<std::pair<int, OpKind>> by_stage;
  std::vector<std::set<int>> stages_on(program_.devices.size());
  std::vector<std::set<int>> devices_of(costs_.stage.size());
  std::set<std::pair<int, int>> routes;
  for (std::uint32_t task = 0; task < graph_.tasks(); ++task) {
    for (const Op op : {graph_.op[task], graph_.op[task].overlapped && !graph_.partner.empty()
                                             ? graph_.partner[task]
                                             : graph_.op[task]}) {
      kinds.insert(sent(op.kind));
      if (!computes(op.kind)) continue;
      const int device = graph_.lanes[graph_.lane[task]].device;
      by_stage.insert({op.stage, op.kind});
      nth(stages_on, device).insert(op.stage);
      devices_of[op.stage].insert(device);
    }
    const Path& path = graph_.paths[graph_.path_of[task]];
    if (class_of(graph_.op[task].kind) == OpClass::message && path.devices.size() == 2) {
      routes.insert({path.devices[0], path.devices[1]});
    }
  }
  for (const OpKind kind : kinds) {
    Lever lever{LeverKind::op_kind, words(kind), kind, {}, {}, {}, {}};
    add(std::move(lever));
  }
  // A stage that has a device for itself is that device.
  const auto alone_on = [&](int stage) -> std::optional<int> {
    const std::set<int>& devices = nth(devices_of, stage);
    if (devices.size() != 1 || nth(stages_on, *devices.begin()).size() != 1) return std::nullopt;
    return *devices.begin();
  };
  for (int stage = 0; stage < static_cast<int>(costs_.stage.size()); ++stage) {
    const std::optional<int> device = alone_on(stage);
    add({LeverKind::stage,
         device ? fmt::format("stage {} ({})", stage, device_name(*device))
                : fmt::format("stage {}", stage),
         {},
         stage,
         device,
         {},
         {}});
  }
  for (const auto& [stage, kind] : by_stage) {
    add({LeverKind::stage_op,
         fmt::format("stage {}: {}", stage, words(kind)),
         kind,
         stage,
         {},
         {},
         {}});
  }
  for (int device = 0; device < static_cast<int>(program_.devices.size()); ++device) {
    const std::set<int>& stages = nth(stages_on, device);
    if (stages.size() == 1 && alone_on(*stages.begin())) continue;
    add({LeverKind::device,
         fmt::format("compute of {}", device_name(device)),
         {},
         {},
         device,
         {},
         {}});
  }
  if (!memory_share_.empty()) {
    add({LeverKind::memory, "memory-bound work", {}, {}, {}, {}, {}});
  }
  add({LeverKind::collectives, "blocking collectives", {}, {}, {}, {}, {}});
  if (asked.ranked) {
    for (const Dimension dimension : all_dimensions) {
      add({LeverKind::collectives,
           fmt::format("blocking collectives: {}", stageline::name(dimension)),
           {},
           {},
           {},
           {},
           dimension});
    }
  }
  add({LeverKind::bandwidth, "links: bandwidth", {}, {}, {}, {}, {}});
  add({LeverKind::latency, "links: latency", {}, {}, {}, {}, {}});
  for (const auto& [from, to] : routes) {
    add({LeverKind::route,
         fmt::format("{} to {}: bandwidth", device_name(from), device_name(to)),
         {},
         {},
         from,
         to,
         {}});
  }
}

}  // namespace stageline
