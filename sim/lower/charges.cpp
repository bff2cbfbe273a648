// Durations and paths of tasks, from the tables of costs and the routes of the network.
#include "sim/lower/charges.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/op_time.hpp"

namespace stageline {

Time ring_time(Bytes bytes, int replicas, const Route& route) {
  __extension__ using Wide = __int128;
  const std::int64_t rounds = 2 * (static_cast<std::int64_t>(replicas) - 1);
  const Wide moved = Wide{rounds} * bytes.count / replicas;
  const Wide latency = Wide{rounds} * route.latency.count();
  if (moved > most_bytes_held.count || latency > longest_run.count()) {
    throw UsageError(
        fmt::format("{} rounds of an all-reduce of {} among {} replicas, each {} late, are more "
                    "than can be added up; check the units of sizes and links",
                    rounds, print(bytes), replicas, print(route.latency)));
  }
  return transfer_time(Bytes{static_cast<std::int64_t>(moved)}, route.bandwidth) +
         Time{static_cast<std::int64_t>(latency)};
}

namespace {

constexpr std::uint32_t unused = 0xffffffff;
constexpr std::uint32_t several = 0xfffffffe;  // lanes

}  // namespace

Charges::Charges(const Program& program, const Costs& costs, const StageGraph& stages)
    : program_(program),
      costs_(costs),
      stages_(stages),
      blocks_(program.settings.messages != Messages::async),
      path_of_pair_(program.devices.size() * (program.devices.size() + 2)) {
  check_fit();
  find_last_ops();
  paths_.emplace_back();
  path_lane_.push_back(unused);
}

// A device's pace and interference make its ops longer, which leaves a start right.
void Charges::find_last_ops() {
  const auto in_buckets = [](const StageCosts& stage) {
    return stage.reduction && stage.reduction->head_start > Time{};
  };
  if (std::none_of(costs_.stage.begin(), costs_.stage.end(), in_buckets)) return;
  for (const std::vector<Op>& list : program_.ops) {
    std::map<int, Time> last;  // by stage
    for (const Op op : list) {
      if (!in_buckets(costs_.stage[op.stage])) continue;
      if (op.kind == OpKind::backward || op.kind == OpKind::weight_grad) {
        last[op.stage] = duration(op);
      } else if (op.kind == OpKind::reduce_grad && last.count(op.stage) > 0) {
        const auto [known, is_new] =
            last_op_.try_emplace({int{op.stage}, static_cast<int>(op.part)}, last[op.stage]);
        if (!is_new) known->second = std::min(known->second, last[op.stage]);
      }
    }
  }
}

Time Charges::duration(Op op) const {
  if (lane_of(op.kind) != LaneKind::compute) return on_the_wire(op);
  return compute_time(costs_.of(op), program_.placement.stage[op.stage], op);
}

Time Charges::of_pair(Op first, Op second) const {
  return pair_time(costs_, pair_half(costs_, program_.placement, first),
                   pair_half(costs_, program_.placement, second));
}

Charge Charges::of(Op op, std::uint32_t lane) {
  if (lane_of(op.kind) == LaneKind::compute) return {duration(op), 0};
  const Time time = duration(op);
  return {time, path_of(op, lane)};
}

bool Charges::same_for_all(Op op) const {
  if (!costs_.kinds.empty()) return false;
  if (lane_of(op.kind) == LaneKind::compute) return true;
  const auto alone = [&](int stage) {
    return program_.placement.stage[static_cast<std::size_t>(stage)].replicas.size() == 1;
  };
  const std::optional<Cargo> cargo = cargo_of(op.kind);
  // A copy of what is rebuilt has other bytes.
  if (class_of(op.kind) == OpClass::copy && is_recomputed(stages_, op.stage)) return false;
  if (!cargo) return alone(op.stage);
  const Wire& way = wire(stages_, *cargo, wire_of(stages_, op));
  return alone(way.sender) && alone(way.receiver);
}

void Charges::used(std::uint16_t path, std::uint32_t lane) {
  if (path_lane_[path] != lane) path_lane_[path] = several;
}

Time Charges::latency(Op message) const { return route_of(message).latency; }

void Charges::give_paths(TaskGraph& graph) {
  std::vector<std::uint32_t> user(costs_.network.resources.size(), unused);
  for (std::size_t p = 1; p < paths_.size(); ++p) {
    for (const std::uint32_t resource : paths_[p].resources) {
      std::uint32_t& lane = user[resource];
      lane = lane == unused || lane == path_lane_[p] ? path_lane_[p] : several;
    }
  }
  std::vector<std::uint32_t> renumbered(user.size());
  for (std::size_t r = 0; r < user.size(); ++r) {
    if (user[r] != several) continue;
    renumbered[r] = static_cast<std::uint32_t>(graph.resources.size());
    graph.resources.push_back(costs_.network.resources[r]);
    if (costs_.sharing == Sharing::fair) graph.capacity.push_back(costs_.network.capacity[r]);
  }
  for (Path& path : paths_) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < path.resources.size(); ++i) {
      const std::uint32_t resource = path.resources[i];
      if (user[resource] != several) continue;
      path.resources[kept] = renumbered[resource];
      if (!path.load.empty()) path.load[kept] = path.load[i];
      ++kept;
    }
    path.resources.resize(kept);
    if (!path.load.empty()) path.load.resize(kept);
  }
  graph.paths = std::move(paths_);
}

Bytes Charges::bytes_of(Op op, std::uint16_t path) const {
  if (lane_of(op.kind) == LaneKind::compute || path == 0) return Bytes{};
  const StageCosts& stage = costs_.stage[op.stage];
  switch (class_of(op.kind)) {
    case OpClass::message:
      // The task of a blocking RECV is the latency alone.
      return is_send(op.kind) ? message_bytes(program_, costs_, stages_, op) : Bytes{};
    case OpClass::reduction: {
      if (stage.reduction) return stage.reduction->bytes;
      const auto replicas =
          static_cast<std::int64_t>(program_.placement.stage[op.stage].replicas.size());
      return Bytes{2 * (replicas - 1) * stage.gradients.count / replicas};
    }
    case OpClass::copy:
      return copy_bytes(costs_, stages_, op);
    case OpClass::forward:
    case OpClass::backward:
    case OpClass::recompute:
    case OpClass::update:
      break;
  }
  return Bytes{};
}

void Charges::give_slowdowns(TaskGraph& graph) const {
  if (costs_.sharing != Sharing::fair) return;
  graph.overlap_slowdown = costs_.overlap_slowdown;
  graph.message_slowdown = costs_.message_slowdown;
  graph.transfer_slowdown = costs_.transfer_slowdown;
}

void Charges::give_bytes(TaskGraph& graph) const {
  if (costs_.sharing != Sharing::fair) return;
  give_slowdowns(graph);
  graph.bytes.resize(graph.tasks());
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    graph.bytes[task] = bytes_of(graph.op[task], graph.path_of[task]);
  }
}

void Charges::set_pace(TaskGraph& graph) const {
  if (costs_.pace.empty()) return;
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    const Lane& lane = graph.lanes[graph.lane[task]];
    const Op op = graph.op[task];
    if (lane_of(op.kind) != LaneKind::compute || nth(costs_.pace, lane.device) == 1) continue;
    graph.duration[task] = task_time_on(
        costs_, program_.placement, op,
        op.overlapped ? std::optional(graph.partner[task]) : std::nullopt, lane.device);
  }
}

double Charges::most_slowdown() const {
  double pace = 1;
  for (const double of_device : costs_.pace) pace = std::max(pace, of_device);
  double together = 1;
  for (const double slowdown : costs_.slowdown) together = std::max(together, slowdown);
  return pace * together;
}

Time Charges::on_the_wire(Op op) const {
  const StageCosts& stage = costs_.stage[op.stage];
  try {
    if (op.kind == OpKind::reduce_grad && stage.reduction) return alone(*stage.reduction);
    if (op.kind == OpKind::reduce_grad) {
      const auto& replicas = program_.placement.stage[op.stage].replicas;
      return ring_time(stage.gradients, static_cast<int>(replicas.size()), slowest_hop(op));
    }
    const bool copy = op.kind == OpKind::offload || op.kind == OpKind::prefetch;
    return transfer_time(
        copy ? copy_bytes(costs_, stages_, op) : message_bytes(program_, costs_, stages_, op),
        route_of(op).bandwidth);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{} of stage {}: {}", print(op), op.stage, error.what()));
  }
}

// The devices that a task's bytes travel between: `to` is -1 if they go to the host, `from` if they
// come from it. A copy goes to the host, or to the device that holds the stage's stashes.
Ends Charges::ends_of_task(Op op) const {
  const auto home = [&] { return device_of(program_.placement, op); };
  switch (class_of(op.kind)) {
    case OpClass::message:
      return ends_of(program_.placement, wire(stages_, *cargo_of(op.kind), wire_of(stages_, op)),
                     op.microbatch);
    case OpClass::reduction: {
      const auto& replicas = program_.placement.stage[op.stage].replicas;
      return {replicas[op.part], replicas[(op.part + 1U) % replicas.size()]};
    }
    case OpClass::copy: {
      const int there = stash_home(program_.placement.stage[op.stage], op.microbatch);
      return op.kind == OpKind::offload ? Ends{home(), there} : Ends{there, home()};
    }
    case OpClass::forward:
    case OpClass::backward:
    case OpClass::recompute:
    case OpClass::update:
      return {home(), home()};
  }
  return {};
}

const Route& Charges::route_of(Op op) const {
  const Ends ends = ends_of_task(op);
  if (ends.to < 0) return costs_.network.to_host[static_cast<std::size_t>(ends.from)];
  if (ends.from < 0) return costs_.network.from_host[static_cast<std::size_t>(ends.to)];
  return costs_.network.between(ends.from, ends.to);
}

// A ring is as fast as its slowest hop, in each of its parts: what a replica sends on has come by
// all others. The least bandwidth and the longest latency, which may be of two hops.
Route Charges::slowest_hop(Op op) const {
  Route slowest;
  const auto replicas = static_cast<int>(program_.placement.stage[op.stage].replicas.size());
  for (int part = 0; part < replicas; ++part) {
    const Route& hop = route_of(op_of(op.kind, op.stage, op.microbatch, part));
    slowest.bandwidth = std::min(slowest.bandwidth, hop.bandwidth);
    slowest.latency = std::max(slowest.latency, hop.latency);
  }
  return slowest;
}

// Each pair of ends has one path, used by one lane only: that of the sender or its copy engine. It
// has others for its part of a ring all-reduce, whose duration includes its latencies, and for the
// copies of stashes between devices, whose lane is the one of the stage's device.
std::uint16_t Charges::path_of(Op op, std::uint32_t lane) {
  if (op.kind == OpKind::reduce_grad && costs_.stage[op.stage].reduction) {
    return reduction_path(op, lane);
  }
  const Ends ends = ends_of_task(op);
  const std::size_t devices = program_.devices.size();
  const std::size_t row = static_cast<std::size_t>(ends.from < 0 ? ends.to : ends.from);
  const std::size_t column = ends.to < 0     ? devices
                             : ends.from < 0 ? devices + 1
                                             : static_cast<std::size_t>(ends.to);
  const bool ring = op.kind == OpKind::reduce_grad;
  const std::size_t pair = row * (devices + 2) + column;
  const bool between_devices = class_of(op.kind) == OpClass::copy && ends.from >= 0 && ends.to >= 0;
  std::uint16_t& known = ring              ? ring_path_[{int{op.stage}, pair}]
                         : between_devices ? copy_path_[{static_cast<int>(lane), pair}]
                                           : path_of_pair_[pair];
  if (known != 0) return known;
  const Route& route = route_of(op);
  if (route.is_free() && route.resources.empty()) return 0;
  Path path = path_on(route);
  path.is_message = !ring;
  // Where messages block, their latency is a task of its own.
  path.lag = ring || (blocks_ && cargo_of(op.kind)) ? Time{} : route.latency;
  if (ring) {
    const auto replicas =
        static_cast<std::int64_t>(program_.placement.stage[op.stage].replicas.size());
    const Route slowest = slowest_hop(op);
    path.setup = 2 * (replicas - 1) * slowest.latency;
    if (costs_.sharing == Sharing::fair) path.bandwidth = slowest.bandwidth;
  }
  for (const int end : {ends.from, ends.to}) {
    if (end >= 0) path.devices.push_back(static_cast<std::uint16_t>(end));
  }
  known = add_path(std::move(path), lane);
  return known;
}

// All replicas' tasks share one collective. Under fair sharing each has its part of the load. First
// come, first served, the first one holds the links for all.
std::uint16_t Charges::reduction_path(Op op, std::uint32_t lane) {
  std::uint16_t& known = reduction_path_[{int{op.stage}, static_cast<int>(op.part)}];
  if (known != 0) return known;
  const CollectiveCosts& reduction = *costs_.stage[op.stage].reduction;
  Path path = path_on(reduction.route);
  if (op.part > 0 && costs_.sharing == Sharing::fifo) path.resources.clear();
  path.setup = reduction.setup;
  const auto last = last_op_.find({int{op.stage}, static_cast<int>(op.part)});
  path.head_start =
      head_start_behind(reduction, last == last_op_.end() ? reduction.backward : last->second);
  path.devices = {static_cast<std::uint16_t>(device_of(program_.placement, op))};
  known = add_path(std::move(path), lane);
  return known;
}

Path Charges::path_on(const Route& route) const {
  Path path;
  for (const int resource : route.resources) {
    path.resources.push_back(static_cast<std::uint32_t>(resource));
  }
  path.tier = route.tier;
  if (costs_.sharing == Sharing::fair) {
    path.load = route.load;
    path.bandwidth = route.bandwidth;
  }
  return path;
}

std::uint16_t Charges::add_path(Path path, std::uint32_t lane) {
  if (paths_.size() >= 65535) {
    throw ProgramError("more than 65534 pairs of devices talk to each other");
  }
  paths_.push_back(std::move(path));
  path_lane_.push_back(lane);
  return static_cast<std::uint16_t>(paths_.size() - 1);
}

void Charges::check_fit() const {
  if (costs_.stages() != program_.stages()) {
    throw ProgramError(
        fmt::format("the program has {} stages, but the costs are of {}; cut the "
                    "model into {} (--partition)",
                    program_.stages(), costs_.stages(), program_.stages()));
  }
  const bool same = std::equal(
      program_.edges.begin(), program_.edges.end(), costs_.edges.begin(), costs_.edges.end(),
      [](StageEdge edge, const EdgeCosts& with_bytes) { return edge == with_bytes.edge; });
  if (!same) {
    std::string edges;
    for (const EdgeCosts& edge : costs_.edges) {
      edges += fmt::format(" {}>{}", edge.edge.from, edge.edge.to);
    }
    throw ProgramError(fmt::format(
        "the program's stage edges are not those of the model as it is cut; give the program the "
        "line \"edges:{}\"",
        edges));
  }
  if (static_cast<int>(program_.devices.size()) > costs_.network.devices) {
    throw ProgramError(fmt::format("the program has {} devices, but the cluster {}",
                                   program_.devices.size(), costs_.network.devices));
  }
  if (program_.devices.size() * lane_kinds > 65535) {
    throw ProgramError(fmt::format("{} devices are more than the {} that can be simulated",
                                   program_.devices.size(), 65535 / lane_kinds));
  }
}

Time duration_of(const Program& program, const Costs& costs, Op op) {
  if (lane_of(op.kind) == LaneKind::compute) {
    return time_on(costs, program.placement, op, device_of(program.placement, op));
  }
  const StageGraph stages = stage_graph(program);
  return Charges(program, costs, stages).duration(op);
}

Bytes message_bytes(const Program& program, const Costs& costs, const StageGraph& graph,
                    Op message) {
  const Cargo cargo = *cargo_of(message.kind);
  const Wire& way = wire(graph, cargo, wire_of(graph, message));
  const StagePlace& sender = program.placement.stage[way.sender];
  const StageCosts& stage = costs.of(op_of(OpKind::forward, way.sender, message.microbatch));
  switch (cargo) {
    case Cargo::activation:
      return costs.edge(way.edge, message.microbatch).activation;
    case Cargo::gradient: {
      const Bytes whole = costs.edge(way.edge, message.microbatch).gradient;
      return Bytes{part_of(whole.count, sender, way.part)};
    }
    case Cargo::stash:
      return left_by_forward(stage, is_recomputed(graph, way.sender));
    case Cargo::weights:
      return stage.weights;
  }
  return Bytes{};
}

}  // namespace stageline
