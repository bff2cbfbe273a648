// LayerPipe (Unnikrishnan & Parhi 2021, arXiv 2108.06629; LayerPipe2, arXiv 2512.08160): F, I and W
// of a layer as tasks of their own. Intra-layer: I_l and W_l do not wait for each other and may run
// on different processors. Inter-layer: I_l may be divided between two. The processor assignment is
// rebuilt from the papers' abstracts: layers are written as a chain [I_l] F_l W_l, l = 1.. (nothing
// asks for I_1), and the chain is cut into contiguous pieces, the largest as small as can be. That
// piece is the period.
//
// Delays come from retiming: in each cycle a processor does every op it has once, forwards first,
// each for its own mini-batch; what comes from another processor was made a cycle ago. So op v of
// mini-batch m runs in cycle m + k(v), and layer l computes with weights k(W_l) - k(F_l) updates
// old: 2 S(l) with S(l) groups of layers downstream, and one more where F_l and W_l are apart. A
// message longer than what is left of the cycle costs another one.
//
// figure: devices 2, stages 2, microbatches 6, F 2, I 2, W 2
//   0 |001122aAA33bBB44cCC55dDDeEE  fFF
//   1 |  00aAA11bBB22cCC33dDD44eEE55fFF
//
// figure: devices 2, stages 2, mode intra, microbatches 6, F 2, I 2, W 2
//   0 |001122AA33  BB44  CC55  DD    EE    FF
//   1 |  00aaAA11bbBB22ccCC33ddDD44eeEE55ffFF
#include <fmt/core.h>

#include <algorithm>

#include "schedulers/partition/chain_cut.hpp"
#include "schedulers/scheduler.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/rules.hpp"
#include "sim/task_graph.hpp"

namespace stageline::layerpipe_scheduler {
namespace {

constexpr Knob knobs[] = {
    {"mode", "inter|intra", "inter", "intra: I is not divided between processors (rebuilt)"},
    {"share", "best|half", "best", "where I is divided: anywhere, or in halves"},
    {"weights", "stash|average", "stash",
     "old weights are kept, or rebuilt from a moving average of gradients (LayerPipe2)"},
};

constexpr std::int64_t most_cycles = 1 << 16;  // that a message is under way

bool is_fed(const std::vector<EdgeCosts>& edges, int stage) {
  return std::any_of(edges.begin(), edges.end(),
                     [&](const EdgeCosts& edge) { return edge.edge.to == stage; });
}

Placement assign(const Assignment& request) {
  const Costs& costs = request.costs;
  const int devices = static_cast<int>(request.rates.size());
  std::vector<ChainItem> items;
  for (int s = 0; s < costs.stages(); ++s) {
    const StageCosts& layer = nth(costs.stage, s);
    if (is_fed(costs.edges, s)) items.push_back({layer.input_grad, true, s, OpKind::input_grad});
    items.push_back({layer.forward, false, s, OpKind::forward});
    items.push_back({layer.weight_grad + layer.update, false, s, OpKind::weight_grad});
  }
  const Division division = request.knobs.at("mode") == "intra"   ? Division::never
                            : request.knobs.at("share") == "half" ? Division::half
                                                                  : Division::anywhere;
  const ChainCut cut = chain_cut(items, devices, division, request.rates);
  Placement placement;
  placement.stage.resize(costs.stage.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    StagePlace& place = nth(placement.stage, items[i].layer);
    const std::vector<ChainShare>& shares = cut.shares[i];
    if (items[i].kind == OpKind::forward) {
      place.replicas = {shares[0].piece};
    } else if (items[i].kind == OpKind::weight_grad) {
      place.weight_grad = {shares[0].piece};
    } else {
      for (const ChainShare& share : shares) {
        place.input_grad.push_back(share.piece);
        if (shares.size() > 1) {
          place.share.push_back(static_cast<double>(share.time.count()) /
                                static_cast<double>(items[i].time.count()));
        }
      }
    }
  }
  for (int s = 0; s < costs.stages(); ++s) {
    StagePlace& place = nth(placement.stage, s);
    // A stage that nothing feeds has no I; only W reads its output gradient.
    if (!is_fed(costs.edges, s)) place.input_grad = place.weight_grad;
    const auto home = [&](const std::vector<int>& role) {
      return role.empty() || role == place.replicas;
    };
    if (!home(place.input_grad) || !home(place.weight_grad)) continue;
    place.input_grad.clear();
    place.weight_grad.clear();
  }
  return placement;
}

// The ops of one mini-batch on one processor, in the order in which every cycle does them.
struct Slot {
  Op op;
  std::int64_t lag = 0;  // k: it is done for mini-batch m in cycle m + k
  Time from{};           // its start, from the beginning of the cycle
  Time to{};             // its end, likewise
};

class Retiming {
 public:
  Retiming(const Problem& problem, Program& program)
      : problem_(problem),
        program_(program),
        graph_(stage_graph(program)),
        cycle_(program.devices.size()) {
    for (int s = 0; s < program.stages(); ++s) add(first_op(OpKind::forward, s));
    for (int s = program.stages() - 1; s >= 0; --s) {
      const StagePlace& place = place_of(s);
      if (is_fed(problem.costs.edges, s)) {
        for (int part = 0; part < place.parts(); ++part) add(first_op(OpKind::input_grad, s, part));
      }
      add(first_op(OpKind::weight_grad, s));
    }
    for (const auto& list : cycle_) {
      if (!list.empty()) period_ = std::max(period_, list.back().to);
    }
    for (int s = 0; s < program.stages(); ++s) retime_forward(s);
    for (int s = program.stages() - 1; s >= 0; --s) retime_backward(s);
  }

  // Updates between what F reads and the one that its gradient goes into.
  int delay(int s) {
    const Slot& f = slot(first_op(OpKind::forward, s));
    const Slot& w = slot(first_op(OpKind::weight_grad, s));
    std::int64_t delay = w.lag - f.lag;
    const int from = device_of(program_.placement, w.op);
    const int to = device_of(program_.placement, f.op);
    if (from != to) {
      // F of cycle n+1 reads what the update of cycle n sends.
      const Time sent = transfer(nth(problem_.costs.stage, s).weights, from, to);
      // The fewest updates after which it has arrived.
      delay = std::max(delay, cycles_until(w.to + sent - f.from) - 1 - f.lag + w.lag);
    }
    return static_cast<int>(delay);
  }

  void write() {
    const std::int64_t total = program_.total_microbatches();
    std::int64_t last = 0;
    for (const auto& list : cycle_) {
      for (const Slot& one : list) last = std::max(last, total + one.lag);
    }
    for (std::size_t device = 0; device < cycle_.size(); ++device) {
      for (std::int64_t n = 0; n < last; ++n) {
        for (const Slot& one : cycle_[device]) {
          if (n < one.lag || n - one.lag >= total) continue;
          Op op = one.op;
          op.microbatch = static_cast<std::uint32_t>(n - one.lag);
          program_.ops[device].push_back(op);
        }
      }
    }
  }

 private:
  // The op in the cycle in which mini-batch 0 is at it.
  static Op first_op(OpKind kind, int stage, int part = 0) { return op_of(kind, stage, 0, part); }
  const StagePlace& place_of(int s) const { return nth(program_.placement.stage, s); }
  Time transfer(Bytes bytes, int from, int to) const {
    const Route& route = problem_.costs.network.between(from, to);
    return transfer_time(bytes, route.bandwidth) + route.latency;
  }

  // The least number of cycles that take so long; where a cycle takes no time, 0.
  std::int64_t cycles_until(Time time) const {
    if (period_ == Time{} || time <= Time{}) return 0;
    const std::int64_t cycles = (time - Time{1}) / period_ + 1;
    if (cycles > most_cycles) {
      throw UsageError(fmt::format(
          "layerpipe: a message arrives {} after its cycle of {} began, {} cycles later, and at "
          "most {} can be planned for; check the units of times and links",
          print(time), print(period_), cycles, most_cycles));
    }
    return cycles;
  }

  void add(Op op) {
    const auto device = as_size(device_of(program_.placement, op));
    const Time begin = cycle_[device].empty() ? Time{} : cycle_[device].back().to;
    Time takes = duration_of(program_, problem_.costs, op);
    if (op.kind == OpKind::weight_grad) takes += problem_.costs.stage[op.stage].update;
    cycle_[device].push_back({op, 0, begin, begin + takes});
  }

  Slot& slot(Op op) {
    auto& list = nth(cycle_, device_of(program_.placement, op));
    return *std::find_if(list.begin(), list.end(), [&](const Slot& one) { return one.op == op; });
  }

  // `op` comes behind `before`, which is earlier in the same cycle on the same processor, or in a
  // cycle before and its bytes are there.
  void follow(Op op, Op before, Bytes bytes) {
    Slot& later = slot(op);
    const Slot& first = slot(before);
    const int from = device_of(program_.placement, before);
    const int to = device_of(program_.placement, op);
    if (from == to) {
      later.lag = std::max(later.lag, first.lag);
      return;
    }
    const Time there = first.to + transfer(bytes, from, to);
    const std::int64_t cycles = std::max<std::int64_t>(1, cycles_until(there - later.from));
    later.lag = std::max(later.lag, first.lag + cycles);
  }

  void retime_forward(int s) {
    for (const int e : graph_.in[as_size(s)]) {
      const EdgeCosts& edge = nth(problem_.costs.edges, e);
      follow(first_op(OpKind::forward, s), first_op(OpKind::forward, edge.edge.from),
             edge.activation);
    }
  }

  void retime_backward(int s) {
    const StagePlace& place = place_of(s);
    const StageCosts& costs = nth(problem_.costs.stage, s);
    const auto behind_gradient = [&](Op op) {
      for (const int e : nth(graph_.out, s)) {
        const EdgeCosts& edge = nth(problem_.costs.edges, e);
        const StagePlace& next = place_of(edge.edge.to);
        for (int part = 0; part < next.parts(); ++part) {
          follow(op, first_op(OpKind::input_grad, edge.edge.to, part),
                 Bytes{part_of(edge.gradient.count, next, part)});
        }
      }
      follow(op, first_op(OpKind::forward, s), costs.stash());
    };
    const bool fed = is_fed(problem_.costs.edges, s);
    for (int part = 0; fed && part < place.parts(); ++part) {
      behind_gradient(first_op(OpKind::input_grad, s, part));
    }
    behind_gradient(first_op(OpKind::weight_grad, s));
    if (fed && !nth(program_.independent_w, s)) {
      for (int part = 0; part < place.parts(); ++part) {
        follow(first_op(OpKind::weight_grad, s), first_op(OpKind::input_grad, s, part), Bytes{});
      }
    }
  }

  const Problem& problem_;
  Program& program_;
  StageGraph graph_;
  std::vector<std::vector<Slot>> cycle_;  // by processor
  Time period_{};
};

Program schedule(const Problem& problem) {
  Program program = blank_program(problem, "layerpipe", WeightRule::stash);
  if (problem.knobs.at("weights") == "average") program.settings.correction = moving_average;
  if (!problem.one_layer.empty()) program.independent_w = problem.one_layer;
  Retiming retiming(problem, program);
  for (int s = 0; s < program.stages(); ++s) program.settings.delay.push_back(retiming.delay(s));
  retiming.write();
  return program;
}

}  // namespace

extern const Scheduler entry;
const Scheduler entry = {
    "layerpipe",
    "F, I and W apart, I divided: a layer's gradients on several devices (assignment rebuilt)",
    "Unnikrishnan & Parhi 2021, arXiv 2108.06629; 2025, arXiv 2512.08160",
    Synchrony::asynchronous,
    knobs,
    nullptr,
    schedule,
    assign,
    "which device does what is rebuilt from the papers' abstracts",
};

}  // namespace stageline::layerpipe_scheduler
