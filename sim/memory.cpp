// A merge of each device's lanes, all of which are in order of time already: no sorting, one pass.
#include "sim/memory.hpp"

#include <algorithm>

#include "sim/rules.hpp"
#include "sim/versions.hpp"

namespace stageline {

std::string_view name(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::weights:
      return "weights";
    case MemoryKind::versions:
      return "versions";
    case MemoryKind::gradients:
      return "gradients";
    case MemoryKind::optimizer:
      return "optimizer";
    case MemoryKind::stash:
      return "stash";
    case MemoryKind::buffers:
      return "buffers";
    case MemoryKind::workspace:
      return "workspace";
  }
  return "";
}

Bytes total(const MemoryUse& use) {
  Bytes sum{};
  for (const Bytes bytes : use) sum += bytes;
  return sum;
}

namespace {

struct VersionChange {
  Time at;
  Bytes bytes;  // signed
};

// What all devices share: tables by stage, and which micro-batches are recomputed or were half
// freed.
struct Tables {
  Tables(const Program& in_program, const Costs& in_costs)
      : program(in_program),
        costs(in_costs),
        stages(stage_graph(in_program)),
        input_grads(in_program) {
    const auto count = static_cast<std::size_t>(program.stages());
    recomputed.resize(count);
    half_done.resize(count);
    for (const auto& list : program.ops) {
      for (const Op op : list) {
        if (op.kind == OpKind::send_forward || op.kind == OpKind::send_backward)
          any_messages = true;
        if (op.kind != OpKind::recompute) continue;
        recomputed[op.stage].resize(program.total_microbatches());
        recomputed[op.stage][op.microbatch] = true;
      }
    }
  }

  bool is_recomputed(Op op) const {
    return !recomputed[op.stage].empty() && recomputed[op.stage][op.microbatch];
  }
  const EdgeCosts& edge(Op message) const {
    return costs.edges[static_cast<std::size_t>(edge_of(stages, message))];
  }
  Bytes bytes_of(Op message) const {
    const bool forward =
        message.kind == OpKind::send_forward || message.kind == OpKind::receive_forward;
    return forward ? edge(message).activation : edge(message).gradient;
  }
  bool crosses(StageEdge ends, std::uint32_t m) const {
    const auto& from = program.placement.stage[ends.from].replicas;
    const auto& to = program.placement.stage[ends.to].replicas;
    return from[m % from.size()] != to[m % to.size()];
  }
  // Bytes of the messages on one side of the op's stage, when the program has messages.
  Bytes messages(Op op, bool outgoing, bool forward) const {
    Bytes sum{};
    if (!any_messages) return sum;
    for (const int e : outgoing ? stages.out[op.stage] : stages.in[op.stage]) {
      const EdgeCosts& costs_of_edge = costs.edges[static_cast<std::size_t>(e)];
      if (!crosses(costs_of_edge.edge, op.microbatch)) continue;
      sum += forward ? costs_of_edge.activation : costs_of_edge.gradient;
    }
    return sum;
  }

  const Program& program;
  const Costs& costs;
  StageGraph stages;
  InputGrads input_grads;
  std::vector<std::vector<bool>> recomputed;
  std::vector<std::vector<bool>> half_done;  // I or W of a pair has ended
  bool any_messages = false;
};

class DeviceAccount {
 public:
  DeviceAccount(Tables& tables, int device, Curves curves, MemoryProfile& profile)
      : tables_(tables),
        curves_(curves),
        profile_(profile),
        result_(profile.device[static_cast<std::size_t>(device)]),
        held_(tables.costs.stage.size()) {
    for (std::size_t s = 0; s < tables.costs.stage.size(); ++s) {
      const auto& replicas = tables.program.placement.stage[s].replicas;
      if (std::find(replicas.begin(), replicas.end(), device) == replicas.end()) continue;
      const StageCosts& costs = tables.costs.stage[s];
      add(MemoryKind::weights, costs.weights);
      add(MemoryKind::gradients, costs.gradients);
      add(MemoryKind::optimizer, costs.optimizer_state);
    }
  }

  // Frees at one moment come before allocations; each stream keeps its own order.
  void merge(const Timeline& timeline, int device, const std::vector<VersionChange>& versions) {
    const auto& compute = timeline.lane(device, LaneKind::compute);
    const auto& send = timeline.lane(device, LaneKind::send);
    const auto& receive = timeline.lane(device, LaneKind::receive);
    const auto& out = timeline.lane(device, LaneKind::copy_out);
    const auto& in = timeline.lane(device, LaneKind::copy_in);
    std::size_t c = 0, s = 0, r = 0, o = 0, i = 0, v = 0;
    bool running = false;  // compute[c] has started
    Time now{};
    while (true) {
      Time best = Time::max();
      int which = -1;
      const auto offer = [&](bool there, Time at, int stream) {
        if (there && at < best) {
          best = at;
          which = stream;
        }
      };
      // in order of precedence at one moment
      offer(c < compute.size() && running, running ? compute[c].end : Time{}, 0);
      offer(s < send.size(), s < send.size() ? send[s].end : Time{}, 1);
      offer(o < out.size(), o < out.size() ? out[o].end : Time{}, 2);
      offer(v < versions.size(), v < versions.size() ? versions[v].at : Time{}, 3);
      offer(r < receive.size(), r < receive.size() ? receive[r].start : Time{}, 4);
      offer(i < in.size(), i < in.size() ? in[i].start : Time{}, 5);
      offer(c < compute.size() && !running, c < compute.size() ? compute[c].start : Time{}, 6);
      if (best != now) settle(now);
      now = best;
      switch (which) {
        case 0:
          for (const std::size_t end = unit_end(compute, c); c < end; ++c) ended(compute[c].op);
          running = false;
          break;
        case 1:
          if (send[s].op.kind != OpKind::reduce_grad) {
            drop(MemoryKind::buffers, tables_.bytes_of(send[s].op));
          }
          ++s;
          break;
        case 2:
          drop(MemoryKind::stash, tables_.costs.stage[out[o].op.stage].stash());
          hold(out[o++].op.stage, -1);
          break;
        case 3:
          add(MemoryKind::versions, versions[v++].bytes);
          break;
        case 4:
          add(MemoryKind::buffers, tables_.bytes_of(receive[r++].op));
          break;
        case 5:
          add(MemoryKind::stash, tables_.costs.stage[in[i].op.stage].stash());
          hold(in[i++].op.stage, +1);
          break;
        case 6:
          for (std::size_t at = c; at < unit_end(compute, c); ++at) started(compute[at].op);
          running = true;
          break;
        default:
          result_.at_end = use_;
          return;
      }
    }
  }

 private:
  void add(MemoryKind kind, Bytes bytes) {
    use_[static_cast<std::size_t>(kind)] += bytes;
    sum_ += bytes;
  }
  void drop(MemoryKind kind, Bytes bytes) { add(kind, Bytes{-bytes.count}); }

  // An overlapped pair starts as one and ends as one.
  static std::size_t unit_end(const std::vector<Span>& spans, std::size_t at) {
    return spans[at].op.overlapped && at + 1 < spans.size() ? at + 2 : at + 1;
  }

  void hold(std::size_t stage, int change) {
    held_[stage] += change;
    held_here_ += change;
    int& peak = profile_.stage[stage].stash_peak;
    peak = std::max(peak, held_[stage]);
    stash_peak_ = std::max(stash_peak_, held_here_);
  }

  void started(Op op) {
    const StageCosts& costs = tables_.costs.stage[op.stage];
    add(MemoryKind::workspace, costs.workspace);
    if (op.kind == OpKind::forward) {
      drop(MemoryKind::buffers, tables_.messages(op, false, true));
      const bool later = tables_.is_recomputed(op);
      add(MemoryKind::stash, later ? costs.boundary : costs.stash());
      if (!later) hold(op.stage, +1);
    } else if (op.kind == OpKind::recompute) {
      add(MemoryKind::stash, costs.stash() - costs.boundary);
      hold(op.stage, +1);
    } else if (tables_.input_grads.takes_output_gradient(op)) {
      drop(MemoryKind::buffers, tables_.messages(op, true, false));
    }
  }

  void ended(Op op) {
    const StageCosts& costs = tables_.costs.stage[op.stage];
    drop(MemoryKind::workspace, costs.workspace);
    if (op.kind == OpKind::forward) {
      add(MemoryKind::buffers, tables_.messages(op, true, true));
    } else if (op.kind == OpKind::backward) {
      drop(MemoryKind::stash, costs.stash());
      hold(op.stage, -1);
    } else if (op.kind == OpKind::weight_grad &&
               !tables_.input_grads.has(op.stage, op.microbatch)) {
      drop(MemoryKind::stash, costs.stash());
      hold(op.stage, -1);
    } else if (op.kind == OpKind::weight_grad) {
      drop(MemoryKind::stash, costs.stash_weight_grad);
      release_half(op);
    } else if (op.kind == OpKind::input_grad) {
      drop(MemoryKind::stash, costs.stash_input_grad);
      release_half(op);
    }
    if (op.kind == OpKind::backward || op.kind == OpKind::input_grad) {
      add(MemoryKind::buffers, tables_.messages(op, false, false));
    }
  }

  // The stash is gone when both I and W have ended.
  void release_half(Op op) {
    auto& half = tables_.half_done[op.stage];
    half.resize(tables_.program.total_microbatches());
    if (half[op.microbatch]) hold(op.stage, -1);
    half[op.microbatch] = true;
  }

  // A moment is over: what is held now is held until the next.
  void settle(Time at) {
    if (sum_ > result_.peak || result_.peak == Bytes{}) {
      result_.peak = sum_;
      result_.peak_at = at;
      result_.at_peak = use_;
    }
    if (curves_ == Curves::all) result_.curve.push_back({at, use_});
  }

 public:
  int stash_peak() const { return stash_peak_; }

 private:
  Tables& tables_;
  Curves curves_;
  MemoryProfile& profile_;
  DeviceMemory& result_;
  MemoryUse use_{};
  Bytes sum_{};
  std::vector<int> held_;  // by stage, here
  int held_here_ = 0;
  int stash_peak_ = 0;
};

}  // namespace

MemoryProfile memory_of(const Program& program, const Costs& costs, const Timeline& timeline,
                        Curves curves) {
  MemoryProfile profile;
  profile.device.resize(timeline.devices.size());
  profile.stage.resize(costs.stage.size());
  Tables tables(program, costs);

  std::vector<std::vector<VersionChange>> changes(timeline.devices.size());
  const bool old_versions =
      program.weights != WeightRule::flush && program.weights != WeightRule::latest;
  if (old_versions) {
    const std::vector<StageVersions> versions = versions_of(program, timeline);
    for (std::size_t s = 0; s < versions.size(); ++s) {
      for (const VersionEvent& event : versions[s].events) {
        changes[static_cast<std::size_t>(event.device)].push_back(
            {event.at, costs.stage[s].weights * event.change});
      }
    }
    for (auto& list : changes) {
      std::sort(list.begin(), list.end(), [](const VersionChange& a, const VersionChange& b) {
        return a.at != b.at ? a.at < b.at : a.bytes < b.bytes;
      });
    }
  }
  for (std::size_t device = 0; device < timeline.devices.size(); ++device) {
    DeviceAccount account(tables, static_cast<int>(device), curves, profile);
    account.merge(timeline, static_cast<int>(device), changes[device]);
    profile.device_stash_peak.push_back(account.stash_peak());
  }
  return profile;
}

}  // namespace stageline
