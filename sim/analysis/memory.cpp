// A merge of each device's lanes, all of which are in order of time already: no sorting, one pass.
#include "sim/analysis/memory.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "sim/analysis/versions.hpp"
#include "sim/rules.hpp"
#include "sim/sums.hpp"
#include "sim/task_graph.hpp"

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
    offloaded.resize(count);
    whole.resize(count);
    for (const auto& list : program.ops) {
      for (const Op op : list) {
        if (is_send(op.kind)) any_messages = true;
        if (op.kind == OpKind::offload) offloaded[op.stage] = true;
        if (op.kind == OpKind::backward) whole[op.stage] = true;
        if (op.kind != OpKind::recompute) continue;
        recomputed[op.stage].resize(program.total_microbatches());
        recomputed[op.stage][op.microbatch] = true;
      }
    }
  }

  bool has_input_grad(Op op) const {
    // B makes it too.
    return input_grads.has(op.stage, op.microbatch) || whole[op.stage];
  }
  bool is_recomputed(Op op) const {
    return !recomputed[op.stage].empty() && recomputed[op.stage][op.microbatch];
  }
  Bytes bytes_of(Op message) const { return message_bytes(program, costs, stages, message); }
  // Bytes of the messages of that cargo which the op's stage sends from, or receives on, `device`;
  // 0 when the program has no messages. Of a gradient's, those of the op's own part.
  Bytes messages(Op op, Cargo cargo, bool sends, int device) const {
    Bytes sum{};
    if (!any_messages) return sum;
    const auto c = static_cast<std::size_t>(cargo);
    const auto& wires = (sends ? stages.sends : stages.receives)[c][op.stage];
    for (std::size_t i = 0; i < wires.size(); ++i) {
      const Wire& way = stages.wires[c][static_cast<std::size_t>(wires[i])];
      const Ends ends = ends_of(program.placement, way, op.microbatch);
      if (ends.from == ends.to || (sends ? ends.from : ends.to) != device) continue;
      if (cargo == Cargo::gradient && sends && way.part != op.part) continue;
      if (cargo == Cargo::weights && !program.weights_transfer) continue;
      Op message = op;
      message.kind = sends ? send_of(cargo) : receive_of(cargo);
      message.part = static_cast<std::uint8_t>(i & 0x7f);
      sum += bytes_of(message);
    }
    return sum;
  }

  const Program& program;
  const Costs& costs;
  StageGraph stages;
  InputGrads input_grads;
  std::vector<std::vector<bool>> recomputed;
  std::vector<std::vector<bool>> half_done;  // I or W of a pair has ended
  std::vector<bool> whole;                   // by stage: I and W are one op, B
  std::vector<bool> offloaded;               // by stage: its stash goes by way of the host
  bool any_messages = false;
};

class DeviceAccount {
 public:
  DeviceAccount(Tables& tables, int device, Curves curves, MemoryProfile& profile)
      : tables_(tables),
        curves_(curves),
        profile_(profile),
        result_(profile.device[static_cast<std::size_t>(device)]),
        device_(device),
        held_(tables.costs.stage.size()) {
    for (std::size_t s = 0; s < tables.costs.stage.size(); ++s) {
      const StagePlace& place = tables.program.placement.stage[s];
      const StageCosts& costs = tables.costs.stage[s];
      if (tables.program.correction == moving_average && updates_here(place)) {
        add(MemoryKind::optimizer, costs.gradients);
      }
      if (place.apart()) {
        add_copy(place, costs);
        continue;
      }
      if (std::find(place.replicas.begin(), place.replicas.end(), device) == place.replicas.end()) {
        continue;
      }
      add(MemoryKind::weights, costs.weights);
      add(MemoryKind::gradients, costs.gradients);
      add(MemoryKind::optimizer, costs.optimizer_state);
    }
  }

  // Frees at one moment come before allocations; each stream keeps its own order.
  void merge(const Timeline& timeline, int device, const std::vector<VersionChange>& versions) {
    const auto& compute = timeline.lane(device, LaneKind::compute);
    // Those of one batch start together and end as they may.
    const auto ends_sooner = [](const Span& a, const Span& b) { return a.end < b.end; };
    const auto& as_started = timeline.lane(device, LaneKind::send);
    Spans as_ended;
    if (!std::is_sorted(as_started.begin(), as_started.end(), ends_sooner)) {
      as_ended = as_started;
      std::stable_sort(as_ended.begin(), as_ended.end(), ends_sooner);
    }
    const auto& send = as_ended.empty() ? as_started : as_ended;
    const auto& receive = timeline.lane(device, LaneKind::receive);
    const auto& out = timeline.lane(device, LaneKind::copy_out);
    const auto& in = timeline.lane(device, LaneKind::copy_in);
    std::size_t c = 0, s = 0, r = 0, o = 0, i = 0, v = 0;
    bool running = false;     // compute[c] has started
    bool copying_in = false;  // out[o] has, a PREFETCH in turn with the OFFLOADs
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
      const bool out_ends = o < out.size() && (out[o].op.kind != OpKind::prefetch || copying_in);
      offer(out_ends, out_ends ? out[o].end : Time{}, 2);
      offer(v < versions.size(), v < versions.size() ? versions[v].at : Time{}, 3);
      offer(r < receive.size(), r < receive.size() ? receive[r].start : Time{}, 4);
      offer(i < in.size(), i < in.size() ? in[i].start : Time{}, 5);
      // In a lane that copies both ways, what comes in is there from its start.
      const bool in_out_lane = o < out.size() && out[o].op.kind == OpKind::prefetch && !copying_in;
      offer(in_out_lane, in_out_lane ? out[o].start : Time{}, 7);
      offer(c < compute.size() && !running, c < compute.size() ? compute[c].start : Time{}, 6);
      if (best != now) settle(now);
      now = best;
      switch (which) {
        case 0:
          for (const std::size_t end = unit_end(compute, c); c < end; ++c) ended(compute[c].op);
          running = false;
          break;
        case 1:
          sent(send[s++].op);
          break;
        case 2:
          if (out[o].op.kind == OpKind::offload) copied_out(out[o].op);
          ++o;
          copying_in = false;
          break;
        case 3:
          add(MemoryKind::versions, versions[v++].bytes);
          break;
        case 4:
          received(receive[r++].op);
          break;
        case 5:
          copied_in(in[i++].op);
          break;
        case 7:
          copied_in(out[o].op);
          copying_in = true;
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
  static std::size_t unit_end(const Spans& spans, std::size_t at) {
    return spans[at].op.overlapped && at + 1 < spans.size() ? at + 2 : at + 1;
  }

  void hold(std::size_t stage, int change) {
    held_[stage] += change;
    held_here_ += change;
    int& peak = profile_.stage[stage].stash_peak;
    peak = std::max(peak, held_[stage]);
    stash_peak_ = std::max(stash_peak_, held_here_);
  }

  bool updates_here(const StagePlace& place) const {
    const auto& homes = place.weight_grad.empty() ? place.replicas : place.weight_grad;
    return std::find(homes.begin(), homes.end(), device_) != homes.end();
  }
  const StagePlace& place_of(Op op) const { return tables_.program.placement.stage[op.stage]; }
  static bool is_backward(OpKind kind) {
    return kind == OpKind::backward || kind == OpKind::input_grad || kind == OpKind::weight_grad;
  }

  // A copy of the weights of a stage with its roles apart; gradients and optimizer where W is. New
  // weights arrive beside those in use.
  void add_copy(const StagePlace& place, const StageCosts& costs) {
    const int f = place.replicas[0];
    const int w = place.weight_grad.empty() ? f : place.weight_grad[0];
    const bool has_i = std::find(place.input_grad.begin(), place.input_grad.end(), device_) !=
                       place.input_grad.end();
    if (w == device_) {
      add(MemoryKind::weights, costs.weights);
      add(MemoryKind::gradients, costs.gradients);
      add(MemoryKind::optimizer, costs.optimizer_state);
    } else if (f == device_ || has_i) {
      add(MemoryKind::weights, costs.weights * (tables_.program.weights_transfer ? 2 : 1));
    }
  }

  Bytes workspace_of(Op op) const {
    const StageCosts& costs = tables_.costs.stage[op.stage];
    const Bytes backward = costs.backward_workspace.value_or(costs.workspace);
    if (op.kind == OpKind::input_grad) return costs.input_grad_workspace.value_or(backward);
    if (tables_.input_grads.takes_output_gradient(op)) return backward;
    if (op.kind == OpKind::weight_grad) {
      return costs.weight_grad_workspace.value_or(costs.workspace);
    }
    if (op.kind == OpKind::forward && tables_.is_recomputed(op)) {
      return costs.recomputed_workspace.value_or(costs.workspace);
    }
    return costs.workspace;
  }

  void started(Op op) {
    const StageCosts& costs = tables_.costs.stage[op.stage];
    const bool apart = place_of(op).apart();
    add(MemoryKind::workspace, workspace_of(op));
    if (op.kind == OpKind::forward) {
      drop(MemoryKind::buffers, tables_.messages(op, Cargo::activation, false, device_));
      const bool later = tables_.is_recomputed(op);
      add(MemoryKind::stash, later ? costs.boundary : costs.stash());
      if (!later) hold(op.stage, +1);
      if (apart) keep_forward(op, costs);
    } else if (op.kind == OpKind::recompute) {
      add(MemoryKind::stash, costs.stash() - costs.boundary);
      hold(op.stage, +1);
    } else if (apart && is_backward(op.kind)) {
      // The first of them to read the output gradient takes it over.
      Kept& here = kept_[{op.stage, op.microbatch}];
      const bool reads =
          tables_.input_grads.takes_output_gradient(op) || tables_.program.independent_w[op.stage];
      if (reads && !here.gradient_read) {
        here.gradient_read = true;
        drop(MemoryKind::buffers, tables_.messages(op, Cargo::gradient, false, device_));
      }
    } else if (tables_.input_grads.takes_output_gradient(op)) {
      drop(MemoryKind::buffers, tables_.messages(op, Cargo::gradient, false, device_));
    }
  }

  void ended(Op op) {
    const StageCosts& costs = tables_.costs.stage[op.stage];
    drop(MemoryKind::workspace, workspace_of(op));
    if (op.kind == OpKind::forward) {
      add(MemoryKind::buffers, tables_.messages(op, Cargo::activation, true, device_));
    } else if (op.kind == OpKind::update) {
      add(MemoryKind::buffers, tables_.messages(op, Cargo::weights, true, device_));
    } else if (is_backward(op.kind) && place_of(op).apart()) {
      Kept& here = kept_[{op.stage, op.microbatch}];
      if (op.kind != OpKind::weight_grad) --here.input_grad_readers;
      if (op.kind != OpKind::input_grad) {
        --here.weight_grad_readers;
      } else if (here.there && here.weight_grad_readers > 0 && !here.gradient_kept) {
        // The first part of I here has made it. W may be elsewhere: then it makes its own.
        here.gradient_kept = true;
        add(MemoryKind::stash, costs.stash_gradient);
        here.for_weight_grad += costs.stash_gradient;
      }
      release(op);
    } else if (op.kind == OpKind::backward) {
      drop(MemoryKind::stash, costs.stash());
      hold(op.stage, -1);
    } else if (op.kind == OpKind::weight_grad &&
               !tables_.input_grads.has(op.stage, op.microbatch)) {
      drop(MemoryKind::stash, costs.stash());
      hold(op.stage, -1);
    } else if (op.kind == OpKind::weight_grad) {
      drop(MemoryKind::stash, costs.stash_weight_grad);
      if (release_half(op)) drop(MemoryKind::stash, costs.stash_gradient);
    } else if (op.kind == OpKind::input_grad) {
      drop(MemoryKind::stash, costs.stash_input_grad);
      if (!release_half(op)) add(MemoryKind::stash, costs.stash_gradient);
    }
    if (op.kind == OpKind::backward || op.kind == OpKind::input_grad) {
      add(MemoryKind::buffers, tables_.messages(op, Cargo::gradient, true, device_));
    }
  }

  // ---- a stage with its roles apart: what this device holds of a micro-batch, and for whom
  // --------

  struct Kept {
    Bytes for_input_grad{};
    Bytes for_weight_grad{};
    int input_grad_readers = 0;   // ops here and messages that still read it
    int weight_grad_readers = 0;  //
    bool gradient_read = false;   // the output gradient has been taken over
    bool gradient_kept = false;   // what I adds for W is in for_weight_grad
    bool there = false;
  };

  // Ops on this device that read the stash: parts of I (B is one), W (B is one).
  int input_grad_ops(Op op) const {
    const StagePlace& place = place_of(op);
    if (!tables_.has_input_grad(op)) return 0;
    if (place.input_grad.empty()) return place.replicas[0] == device_ ? 1 : 0;
    return static_cast<int>(std::count(place.input_grad.begin(), place.input_grad.end(), device_));
  }
  int weight_grad_ops(Op op) const {
    const StagePlace& place = place_of(op);
    return (place.weight_grad.empty() ? place.replicas[0] : place.weight_grad[0]) == device_ ? 1
                                                                                             : 0;
  }

  void keep(Op op, StashRead bytes, int others) {
    Kept& here = kept_[{op.stage, op.microbatch}];
    here.there = true;
    here.for_input_grad = bytes.by_input_grad;
    here.for_weight_grad = bytes.by_weight_grad;
    here.input_grad_readers += input_grad_ops(op) + others;
    here.weight_grad_readers += weight_grad_ops(op) + others;
  }

  // F keeps all of it until those here, and the messages or the copy to the host, have read it.
  void keep_forward(Op op, const StageCosts& costs) {
    int others = 0;
    if (tables_.offloaded[op.stage]) {
      others = 1;
    } else {
      const auto cargo = static_cast<std::size_t>(Cargo::stash);
      others = static_cast<int>(tables_.stages.sends[cargo][op.stage].size());
    }
    keep(op, {costs.stash_input_grad, costs.stash_weight_grad}, others);
    release(op);
  }

  void release(Op op) {
    const auto found = kept_.find({op.stage, op.microbatch});
    Kept& here = found->second;
    if (here.there && here.input_grad_readers == 0) {
      drop(MemoryKind::stash, here.for_input_grad);
      here.for_input_grad = Bytes{};
    }
    if (here.there && here.weight_grad_readers == 0) {
      drop(MemoryKind::stash, here.for_weight_grad);
      here.for_weight_grad = Bytes{};
    }
    if (here.input_grad_readers != 0 || here.weight_grad_readers != 0) return;
    if (here.there) hold(op.stage, -1);
    kept_.erase(found);
  }

  void sent(Op op) {
    if (op.kind == OpKind::reduce_grad) return;
    if (op.kind != OpKind::send_stash) return drop(MemoryKind::buffers, tables_.bytes_of(op));
    read_by_message(op);
  }

  void read_by_message(Op op) {
    Kept& here = kept_[{op.stage, op.microbatch}];
    --here.input_grad_readers;
    --here.weight_grad_readers;
    release(op);
  }

  void received(Op op) {
    if (op.kind == OpKind::receive_weights) return;  // beside those in use: see add_copy
    if (op.kind != OpKind::receive_stash) return add(MemoryKind::buffers, tables_.bytes_of(op));
    const StashRead bytes = stash_read_on(place_of(op), tables_.costs.stage[op.stage], device_);
    add(MemoryKind::stash, bytes.both());
    hold(op.stage, +1);
    keep(op, bytes, 0);
  }

  void copied_out(Op op) {
    if (place_of(op).apart()) return read_by_message(op);
    drop(MemoryKind::stash, tables_.costs.stage[op.stage].stash());
    hold(op.stage, -1);
  }

  void copied_in(Op op) {
    const StageCosts& costs = tables_.costs.stage[op.stage];
    add(MemoryKind::stash, costs.stash());
    hold(op.stage, +1);
    if (place_of(op).apart()) keep(op, {costs.stash_input_grad, costs.stash_weight_grad}, 0);
  }

  // The stash is gone when both I and W have ended. Whether the other one had ended before.
  bool release_half(Op op) {
    auto& half = tables_.half_done[op.stage];
    half.resize(tables_.program.total_microbatches());
    const bool both = half[op.microbatch];
    if (both) hold(op.stage, -1);
    half[op.microbatch] = true;
    return both;
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
  int device_;
  std::map<std::pair<int, std::uint32_t>, Kept> kept_;  // by stage and micro-batch; those in flight
  MemoryUse use_{};
  Bytes sum_{};
  std::vector<int> held_;  // by stage, here
  int held_here_ = 0;
  int stash_peak_ = 0;
};

// Hosts hold a stash from the start of its OFFLOAD to the end of its PREFETCH.
void read_hosts(const Costs& costs, const Timeline& timeline, Curves curves,
                MemoryProfile& profile) {
  struct Change {
    Time at;
    Bytes bytes;  // signed
  };
  const Network& network = costs.network;
  std::vector<std::vector<Change>> changes(std::max<std::size_t>(network.hosts.size(), 1));
  const auto host_of = [&](std::size_t device) {
    return network.host.empty() ? std::size_t{0} : static_cast<std::size_t>(network.host[device]);
  };
  for (std::size_t device = 0; device < timeline.devices.size(); ++device) {
    for (const LaneKind kind : {LaneKind::copy_out, LaneKind::copy_in}) {
      for (const Span& span : timeline.lane(static_cast<int>(device), kind)) {
        const bool out = span.op.kind == OpKind::offload;
        const Bytes stash = costs.stage[span.op.stage].stash();
        changes[host_of(device)].push_back(
            {out ? span.start : span.end, out ? stash : Bytes{-stash.count}});
      }
    }
  }
  profile.host.resize(changes.size());
  for (std::size_t h = 0; h < changes.size(); ++h) {
    // At one moment frees come first, as on devices.
    std::sort(changes[h].begin(), changes[h].end(), [](const Change& a, const Change& b) {
      return a.at != b.at ? a.at < b.at : a.bytes < b.bytes;
    });
    DeviceMemory& host = profile.host[h];
    MemoryUse use{};
    Bytes& held = use[static_cast<std::size_t>(MemoryKind::stash)];
    for (std::size_t i = 0; i < changes[h].size(); ++i) {
      held += changes[h][i].bytes;
      const Time at = changes[h][i].at;
      if (i + 1 < changes[h].size() && changes[h][i + 1].at == at) continue;
      if (held > host.peak) {
        host.peak = held;
        host.peak_at = at;
        host.at_peak = use;
      }
      if (curves == Curves::all) host.curve.push_back({at, use});
    }
    host.at_end = use;
  }
}

}  // namespace

MemoryProfile memory_of(const Program& program, const Costs& costs, const Timeline& timeline,
                        Curves curves) {
  check_sums(costs, program.placement, program.total_microbatches(), program.steps);
  MemoryProfile profile;
  profile.device.resize(timeline.devices.size());
  profile.stage.resize(costs.stage.size());
  Tables tables(program, costs);

  std::vector<std::vector<VersionChange>> changes(timeline.devices.size());
  // A moving average of the gradients takes the place of old versions.
  const bool old_versions = program.weights != WeightRule::flush &&
                            program.weights != WeightRule::latest &&
                            program.correction != moving_average;
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
  read_hosts(costs, timeline, curves, profile);
  return profile;
}

}  // namespace stageline
