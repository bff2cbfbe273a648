// Lowering: the lists of a program become one array of tasks in a topological order. Every lane is
// walked until its next op needs something that is not made yet; the lane then waits in that
// product's slot and is taken up again when it is made. Each op is visited once or twice, so the
// whole is linear.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "sim/errors.hpp"
#include "sim/rules.hpp"
#include "sim/standstill.hpp"
#include "sim/task_graph.hpp"

namespace stageline {
namespace {

Time ring_time(Bytes bytes, int replicas, const Route& route) {
  // Ring all-reduce: 2(r-1) rounds, each moves 1/r of the gradients.
  const std::int64_t rounds = 2 * (static_cast<std::int64_t>(replicas) - 1);
  const Bytes moved{rounds * bytes.count / replicas};
  return transfer_time(moved, route.bandwidth) + rounds * route.latency;
}

struct Charge {
  Time duration{};
  std::uint16_t path = 0;
  bool known = false;
};

class Lowering {
 public:
  Lowering(const Program& program, const Costs& costs)
      : program_(program), costs_(costs), stages_(stage_graph(program)), index_(program, stages_) {
    check_fit();
  }

  TaskGraph lower() {
    fill_slots();
    make_lanes();
    graph_.paths.emplace_back();
    path_lane_.push_back(no_lane);
    path_of_pair_.assign(program_.devices.size() * (program_.devices.size() + 2), 0);
    for (std::size_t cargo = 0; cargo < cargoes; ++cargo) {
      message_charge_[cargo].resize(stages_.wires[cargo].size());
    }
    graph_.need_begin.push_back(0);
    for (std::uint32_t lane = 0; lane < graph_.lanes.size(); ++lane) queue_.push_back(lane);
    while (!queue_.empty()) {
      // First in, first out: lanes take turns, so what is near in time is near in memory.
      std::swap(queue_, turn_);
      for (const std::uint32_t lane : turn_) walk(lane);
      turn_.clear();
    }
    for (std::uint32_t lane = 0; lane < graph_.lanes.size(); ++lane) {
      if (head_[lane] != end_[lane]) explain_deadlock(standstill(), lane);
    }
    finish_lanes();
    keep_shared_resources();
    graph_.devices = program_.devices;
    return std::move(graph_);
  }

  Time duration(Op op) const {
    const StageCosts& stage = costs_.stage[op.stage];
    switch (op.kind) {
      case OpKind::forward:
        return stage.forward;
      case OpKind::input_grad:
        return Time{part_of(stage.input_grad.count(), program_.placement.stage[op.stage],
                            static_cast<int>(op.part))};
      case OpKind::weight_grad:
        return stage.weight_grad;
      case OpKind::backward:
        return stage.backward;
      case OpKind::recompute:
        return stage.recompute;
      case OpKind::update:
        return stage.update;
      case OpKind::offload:
        return transfer_time(stage.stash(), route_of(op).bandwidth);
      case OpKind::prefetch:
        return transfer_time(stage.stash(), route_of(op).bandwidth);
      case OpKind::reduce_grad: {
        const auto& replicas = program_.placement.stage[op.stage].replicas;
        return ring_time(stage.gradients, static_cast<int>(replicas.size()), route_of(op));
      }
      case OpKind::send_forward:
      case OpKind::receive_forward:
      case OpKind::send_backward:
      case OpKind::receive_backward:
      case OpKind::send_stash:
      case OpKind::receive_stash:
      case OpKind::send_weights:
      case OpKind::receive_weights:
        return transfer_time(message_bytes(program_, costs_, stages_, op), route_of(op).bandwidth);
    }
    return Time{};
  }

 private:
  void check_fit() const {
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

  void fill_slots() {
    slot_.assign(index_.size(), nobody);
    for (const auto& list : program_.ops) {
      for (const Op op : list) {
        makes(stages_, op, [&](Product product, int at, std::uint32_t number, int part) {
          const std::int64_t slot = index_.index(product, at, number, part);
          if (slot >= 0) slot_[static_cast<std::size_t>(slot)] = pending;
        });
      }
    }
  }

  // The ops of each lane in program order. Receives have no turn of their own.
  void make_lanes() {
    std::vector<std::uint32_t> count(program_.devices.size() * lane_kinds);
    for (std::size_t device = 0; device < program_.ops.size(); ++device) {
      for (const Op op : program_.ops[device]) {
        ++count[device * lane_kinds + static_cast<std::size_t>(lane_of(program_, op.kind))];
      }
    }
    std::vector<std::uint32_t> lane_at(count.size(), no_lane);
    std::uint32_t total = 0;
    for (std::size_t at = 0; at < count.size(); ++at) {
      const auto kind = static_cast<LaneKind>(at % lane_kinds);
      if (count[at] == 0 || kind == LaneKind::receive) continue;
      lane_at[at] = static_cast<std::uint32_t>(graph_.lanes.size());
      graph_.lanes.push_back({static_cast<int>(at / lane_kinds), kind});
      head_.push_back(total);
      total += count[at];
      end_.push_back(total);
    }
    ops_.resize(total);
    std::vector<std::uint32_t> fill = head_;
    for (std::size_t device = 0; device < program_.ops.size(); ++device) {
      for (const Op op : program_.ops[device]) {
        const std::uint32_t lane =
            lane_at[device * lane_kinds + static_cast<std::size_t>(lane_of(program_, op.kind))];
        if (lane == no_lane) continue;
        ops_[fill[lane]++] = op;
        any_overlapped_ = any_overlapped_ || op.overlapped;
      }
    }
    next_waiter_.assign(graph_.lanes.size(), no_lane);
    graph_.op.reserve(total);
    graph_.lane.reserve(total);
    graph_.path_of.reserve(total);
    graph_.duration.reserve(total);
    graph_.need_begin.reserve(total + std::size_t{1});
    graph_.need.reserve(total + total / 2);
    if (any_overlapped_) graph_.partner.reserve(total);
  }

  bool exists(Product product, int at, std::uint32_t number, int part) const {
    if (!index_.has(product)) return false;
    const std::int64_t slot = index_.index(product, at, number, part);
    return slot >= 0 && slot_[static_cast<std::size_t>(slot)] != nobody;
  }

  // Adds what `op` needs to graph_.need; false, and the lane waits, when something is not made yet.
  bool met(Op op, std::uint32_t lane) {
    bool all = true;
    needs(
        program_, stages_, op,
        [&](Product product, int at, std::uint32_t number, int part) {
          return exists(product, at, number, part);
        },
        [&](Product product, int at, std::uint32_t number, int part) {
          all = all && got(index_.index(product, at, number, part), op, lane);
        });
    return all;
  }

  bool got(std::int64_t place, Op op, std::uint32_t lane) {
    if (place < 0 || slot_[static_cast<std::size_t>(place)] == nobody)
      explain_missing(standstill(), op);
    Slot& slot = slot_[static_cast<std::size_t>(place)];
    if (slot < waited_for) {
      if (graph_.lane[slot] != lane) graph_.need.push_back(slot);
      return true;
    }
    next_waiter_[lane] = slot == pending ? no_lane : slot & ~waited_for;
    slot = waited_for | lane;
    return false;
  }

  void walk(std::uint32_t lane) {
    while (head_[lane] != end_[lane]) {
      const Op op = ops_[head_[lane]];
      // There are more lanes than the processor follows streams.
      __builtin_prefetch(ops_.data() + std::min(head_[lane] + 16, end_[lane]));
      const bool pair = op.overlapped && head_[lane] + 1 != end_[lane];
      const std::size_t needs_before = graph_.need.size();
      if (!met(op, lane) || (pair && !met(ops_[head_[lane] + 1], lane))) {
        graph_.need.resize(needs_before);
        return;
      }
      const auto task = graph_.tasks();
      const Charge charge = charge_of(op, lane);
      Time time = charge.duration;
      graph_.op.push_back(op);
      graph_.lane.push_back(static_cast<std::uint16_t>(lane));
      graph_.path_of.push_back(charge.path);
      ++head_[lane];
      done(op, task);
      if (any_overlapped_) graph_.partner.push_back(pair ? ops_[head_[lane]] : Op{});
      if (pair) {
        const Op second = ops_[head_[lane]++];
        time += duration(second);
        done(second, task);
      }
      graph_.duration.push_back(time);
      graph_.need_begin.push_back(static_cast<std::uint32_t>(graph_.need.size()));
    }
  }

  void done(Op op, std::uint32_t task) {
    makes(stages_, op, [&](Product product, int at, std::uint32_t number, int part) {
      Slot& slot = slot_[static_cast<std::size_t>(index_.index(product, at, number, part))];
      for (std::uint32_t lane = slot == pending ? no_lane : slot & ~waited_for; lane != no_lane;
           lane = next_waiter_[lane]) {
        queue_.push_back(lane);
      }
      slot = task;
    });
  }

  // Messages between two unreplicated stages are all charged alike: the first one asks the tables.
  Charge charge_of(Op op, std::uint32_t lane) {
    if (graph_.lanes[lane].kind == LaneKind::compute) return {duration(op), 0, true};
    Charge asked;
    Charge* charge = &asked;
    if (is_send(op.kind)) {
      const Cargo cargo = *cargo_of(op.kind);
      const int number = wire_of(stages_, op);
      const Wire& way = wire(stages_, cargo, number);
      const auto& places = program_.placement.stage;
      if (places[static_cast<std::size_t>(way.sender)].replicas.size() == 1 &&
          places[static_cast<std::size_t>(way.receiver)].replicas.size() == 1) {
        charge =
            &message_charge_[static_cast<std::size_t>(cargo)][static_cast<std::size_t>(number)];
      }
    }
    if (!charge->known) *charge = {duration(op), path_of(op, lane), true};
    return *charge;
  }

  // Devices that a task's bytes travel between; `to` is -1 for the host and `from` is -1 from it.
  Ends ends_of_task(Op op) const {
    const auto home = [&] { return device_of(program_.placement, op); };
    switch (op.kind) {
      case OpKind::send_forward:
      case OpKind::receive_forward:
      case OpKind::send_backward:
      case OpKind::receive_backward:
      case OpKind::send_stash:
      case OpKind::receive_stash:
      case OpKind::send_weights:
      case OpKind::receive_weights:
        return ends_of(program_.placement, wire(stages_, *cargo_of(op.kind), wire_of(stages_, op)),
                       op.microbatch);
      case OpKind::reduce_grad: {
        const auto& replicas = program_.placement.stage[op.stage].replicas;
        return {replicas[op.part], replicas[(op.part + 1U) % replicas.size()]};
      }
      case OpKind::offload:
        return {home(), -1};
      case OpKind::prefetch:
        return {-1, home()};
      case OpKind::forward:
      case OpKind::input_grad:
      case OpKind::weight_grad:
      case OpKind::backward:
      case OpKind::recompute:
      case OpKind::update:
        return {home(), home()};
    }
    return {};
  }

  const Route& route_of(Op op) const {
    const Ends ends = ends_of_task(op);
    if (ends.to < 0) return costs_.network.to_host[static_cast<std::size_t>(ends.from)];
    if (ends.from < 0) return costs_.network.from_host[static_cast<std::size_t>(ends.to)];
    return costs_.network.between(ends.from, ends.to);
  }

  // Every pair of ends has one path, used by one lane only: that of the sender or its copy engine;
  // and a second one for its part of a ring all-reduce, which has its latencies in its duration.
  std::uint16_t path_of(Op op, std::uint32_t lane) {
    const Ends ends = ends_of_task(op);
    const std::size_t devices = program_.devices.size();
    const std::size_t row = static_cast<std::size_t>(ends.from < 0 ? ends.to : ends.from);
    const std::size_t column = ends.to < 0     ? devices
                               : ends.from < 0 ? devices + 1
                                               : static_cast<std::size_t>(ends.to);
    const bool ring = op.kind == OpKind::reduce_grad;
    const std::size_t pair = row * (devices + 2) + column;
    std::uint16_t& known = ring ? ring_path_of_pair_[pair] : path_of_pair_[pair];
    if (known != 0) return known;
    const Route& route = route_of(op);
    if (route.is_free() && route.resources.empty()) return 0;
    if (graph_.paths.size() >= 65535) {
      throw ProgramError("more than 65534 pairs of devices talk to each other");
    }
    known = static_cast<std::uint16_t>(graph_.paths.size());
    Path path;
    path.lag = ring ? Time{} : route.latency;
    for (const int resource : route.resources) {
      path.resources.push_back(static_cast<std::uint32_t>(resource));
    }
    graph_.paths.push_back(path);
    path_lane_.push_back(lane);
    return known;
  }

  void finish_lanes() {
    graph_.lane_begin.assign(graph_.lanes.size() + 1, 0);
    for (const std::uint16_t lane : graph_.lane) ++graph_.lane_begin[lane + 1U];
    for (std::size_t i = 1; i < graph_.lane_begin.size(); ++i) {
      graph_.lane_begin[i] += graph_.lane_begin[i - 1];
    }
    graph_.lane_task.resize(graph_.lane.size());
    std::vector<std::uint32_t> fill(graph_.lane_begin.begin(), graph_.lane_begin.end() - 1);
    for (std::uint32_t task = 0; task < graph_.tasks(); ++task) {
      graph_.lane_task[fill[graph_.lane[task]]++] = task;
    }
  }

  // A resource that one lane alone uses never makes anybody wait: forget it.
  void keep_shared_resources() {
    constexpr std::uint32_t several = 0xfffffffe;
    std::vector<std::uint32_t> user(costs_.network.resources.size(), no_lane);
    for (std::size_t p = 1; p < graph_.paths.size(); ++p) {
      for (const std::uint32_t resource : graph_.paths[p].resources) {
        std::uint32_t& lane = user[resource];
        lane = lane == no_lane || lane == path_lane_[p] ? path_lane_[p] : several;
      }
    }
    std::vector<std::uint32_t> renumbered(user.size());
    for (std::size_t r = 0; r < user.size(); ++r) {
      if (user[r] != several) continue;
      renumbered[r] = static_cast<std::uint32_t>(graph_.resources.size());
      graph_.resources.push_back(costs_.network.resources[r]);
    }
    for (Path& path : graph_.paths) {
      std::erase_if(path.resources, [&](std::uint32_t r) { return user[r] != several; });
      for (std::uint32_t& resource : path.resources) resource = renumbered[resource];
    }
  }

  Standstill standstill() const { return {program_, stages_, index_, slot_, ops_, head_, end_}; }

  const Program& program_;
  const Costs& costs_;
  StageGraph stages_;
  ProductIndex index_;
  std::vector<Slot> slot_;
  std::vector<Op> ops_;                     // by lane
  std::vector<std::uint32_t> head_;         // by lane, into ops_
  std::vector<std::uint32_t> end_;          //
  std::vector<std::uint32_t> next_waiter_;  // by lane: who else waits for the same product
  std::vector<std::uint32_t> queue_;        // lanes to walk
  std::vector<std::uint32_t> turn_;
  std::vector<std::uint16_t> path_of_pair_;  // devices × (devices, to host, from host)
  std::map<std::size_t, std::uint16_t> ring_path_of_pair_;  // few
  std::vector<std::uint32_t> path_lane_;
  std::array<std::vector<Charge>, cargoes> message_charge_;  // by wire
  bool any_overlapped_ = false;
  TaskGraph graph_;
};

}  // namespace

TaskGraph compile(const Program& program, const Costs& costs) {
  return Lowering(program, costs).lower();
}

Time duration_of(const Program& program, const Costs& costs, Op op) {
  return Lowering(program, costs).duration(op);
}

Bytes message_bytes(const Program& program, const Costs& costs, const StageGraph& graph,
                    Op message) {
  const Cargo cargo = *cargo_of(message.kind);
  const Wire& way = wire(graph, cargo, wire_of(graph, message));
  const StagePlace& sender = program.placement.stage[static_cast<std::size_t>(way.sender)];
  const StageCosts& stage = costs.stage[static_cast<std::size_t>(way.sender)];
  switch (cargo) {
    case Cargo::activation:
      return costs.edges[static_cast<std::size_t>(way.edge)].activation;
    case Cargo::gradient: {
      const Bytes whole = costs.edges[static_cast<std::size_t>(way.edge)].gradient;
      return Bytes{part_of(whole.count, sender, way.part)};
    }
    case Cargo::stash:
      return stash_read_on(sender, stage, way.to).both();
    case Cargo::weights:
      return stage.weights;
  }
  return Bytes{};
}

bool shares_resources(const TaskGraph& graph) {
  return std::any_of(graph.paths.begin(), graph.paths.end(),
                     [](const Path& path) { return !path.resources.empty(); });
}

}  // namespace stageline
