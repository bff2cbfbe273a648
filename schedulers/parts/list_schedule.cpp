#include "schedulers/parts/list_schedule.hpp"

#include <algorithm>
#include <functional>
#include <queue>
#include <stdexcept>
#include <utility>

#include "schedulers/parts/stage_times.hpp"
#include "sim/base/index.hpp"

namespace stageline {
namespace {

constexpr Time never = Time::max();

struct Stage {
  StageTimes times;
  std::uint32_t forwards = 0;   // started
  std::uint32_t backwards = 0;  // started
};

// What an op still waits for, and when the last of it that is known arrives.
struct Inputs {
  Time ready{};
  int missing = 0;
};

struct DeviceState {
  std::vector<int> stages;
  std::vector<Op> done;
  std::vector<Op> weights;  // W's in the order of their I's
  std::size_t next_weight = 0;
  std::size_t at = 0;  // in the plan
  Time start = never;
  Time free{};
  Time wakes = never;  // its first event
  Time link{};         // its sends so far are over
  Time idle{};
  int ahead = 0;  // F's without I
  int forwards = 0;
};

class Run {
 public:
  Run(const Problem& problem, const ListRules& rules, const StashLimit& limit)
      : rules_(rules),
        bank_(problem, limit, rules.split),
        count_(static_cast<std::uint32_t>(problem.microbatches)) {
    read_stages(problem);
    devices_.resize(problem.devices.size());
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      device(stages_[s].times.device).stages.push_back(static_cast<int>(s));
    }
  }

  ListOutcome go() {
    for (std::size_t d = 0; d < devices_.size(); ++d) wake(Time{}, static_cast<int>(d));
    const std::size_t all = stages_.size() * count_ * (rules_.split ? 3 : 2);
    Time now{};
    while (done_ < all) {
      // Nobody has anything to wait for: the plan, or the warm-up, asks for more than the limit
      // allows. What is ready is safe to do.
      if (events_.empty()) {
        if (stuck_)
          throw std::logic_error("a list schedule has nothing ready and nothing under way");
        stuck_ = true;
        for (std::size_t d = 0; d < devices_.size(); ++d) wake(now, static_cast<int>(d));
      }
      const auto [at, d] = events_.top();
      events_.pop();
      if (device(d).wakes != at) continue;  // it has been woken earlier since
      now = at;
      device(d).wakes = never;
      turn(d, at);
    }
    return outcome();
  }

 private:
  using Event = std::pair<Time, int>;

  DeviceState& device(int d) { return nth(devices_, d); }
  Stage& stage(int s) { return nth(stages_, s); }
  Inputs& forward_inputs(int s, std::uint32_t m) { return forward_[as_size(s) * count_ + m]; }
  Inputs& backward_inputs(int s, std::uint32_t m) { return backward_[as_size(s) * count_ + m]; }
  void wake(Time at, int d) {
    if (device(d).wakes <= at) return;
    device(d).wakes = at;
    events_.push({at, d});
  }

  void read_stages(const Problem& problem) {
    for (StageTimes& times : stage_times(problem, rules_.split)) {
      forward_.insert(forward_.end(), count_, {Time{}, static_cast<int>(times.needs.size())});
      backward_.insert(backward_.end(), count_, {Time{}, static_cast<int>(times.to.size()) + 1});
      stages_.push_back({std::move(times)});
    }
  }

  // ---- one device's turn ------------------------------------------------------------------------

  struct Choice {
    Op op{};
    bool found = false;
    std::int64_t rank = 0;
    Time arrives = never;  // of those that are not there yet, the first
  };

  void look_at(Op op, Time now, bool by_rank, Choice& choice) {
    const int s = op.stage;
    const bool forward = op.kind == OpKind::forward;
    const Inputs& inputs =
        forward ? forward_inputs(s, op.microbatch) : backward_inputs(s, op.microbatch);
    if (inputs.missing > 0) return;
    const bool there = inputs.ready <= now;
    if (!there && inputs.ready >= choice.arrives) return;
    if (!there) {
      if (!forward || bank_.fits(s)) choice.arrives = inputs.ready;
      return;
    }
    const std::int64_t rank = by_rank ? rules_.rank(op.kind, s, op.microbatch) : 0;
    if (choice.found && rank >= choice.rank) return;
    if (forward && !bank_.fits(s)) return;
    choice.op = op;
    choice.found = true;
    choice.rank = rank;
  }

  OpKind backward_kind() const { return rules_.split ? OpKind::input_grad : OpKind::backward; }

  Choice any(DeviceState& here, int d, Time now) {
    Choice choice;
    const auto at = as_size(d);
    const bool held_back = !stuck_ && !rules_.ahead.empty() && here.ahead >= rules_.ahead[at];
    const bool warming = !stuck_ && !rules_.warm_up.empty() && here.forwards < rules_.warm_up[at];
    for (const int s : here.stages) {
      Stage& one = stage(s);
      if (one.backwards < one.forwards && !warming) {
        look_at(op_of(backward_kind(), s, one.backwards), now, true, choice);
      }
      const bool full = !stuck_ && !rules_.in_flight.empty() &&
                        one.forwards >= one.backwards + nth(rules_.in_flight, s);
      if (one.forwards < count_ && !held_back && !full) {
        look_at(op_of(OpKind::forward, s, one.forwards), now, true, choice);
      }
    }
    return choice;
  }

  Choice choose(DeviceState& here, int d, Time now) {
    if (rules_.plan.empty()) return any(here, d, now);
    const std::vector<Op>& plan = nth(rules_.plan, d);
    const auto is_done = [&](Op op) {
      const Stage& one = stage(op.stage);
      return op.microbatch < (op.kind == OpKind::forward ? one.forwards : one.backwards);
    };
    while (here.at < plan.size() && is_done(plan[here.at])) ++here.at;
    Choice choice;
    if (here.at == plan.size()) return choice;
    const Stage& next = stage(plan[here.at].stage);
    const bool forward = plan[here.at].kind == OpKind::forward;
    if (plan[here.at].microbatch == (forward ? next.forwards : next.backwards)) {
      look_at(plan[here.at], now, false, choice);
    }
    const bool loose =
        stuck_ || (!rules_.loose_from.empty() && here.at >= nth(rules_.loose_from, d));
    return choice.found || !loose ? choice : any(here, d, now);
  }

  bool fill_now(const DeviceState& here, Op weight, Time now, Time arrives) const {
    if (arrives == never) return true;
    const Time wait = arrives - now;
    __extension__ using Wide = __int128;  // a hundred times 53 days is more than 64 bits hold
    const Wide least = Wide{stages_[weight.stage].times.weight.count()} * rules_.fill;
    if (Wide{wait.count()} * 100 >= least) return true;
    return rules_.even_idle && here.idle + wait > most_idle_;
  }

  void turn(int d, Time now) {
    DeviceState& here = device(d);
    const Choice choice = choose(here, d, now);
    if (choice.found) return start(here, d, choice.op, now);
    if (here.next_weight < here.weights.size() &&
        fill_now(here, here.weights[here.next_weight], now, choice.arrives)) {
      return start(here, d, here.weights[here.next_weight++], now);
    }
    if (choice.arrives != never) wake(choice.arrives, d);
  }

  void start(DeviceState& here, int d, Op op, Time now) {
    stuck_ = false;
    Stage& one = stage(op.stage);
    const std::uint32_t m = op.microbatch;
    if (here.start == never) {
      here.start = now;
    } else {
      here.idle += now - here.free;
      most_idle_ = std::max(most_idle_, here.idle);
    }
    here.done.push_back(op);
    ++done_;
    switch (class_of(op.kind)) {
      case OpClass::forward:
        here.free = now + one.times.forward;
        bank_.forward(op.stage);
        ++one.forwards;
        ++here.ahead;
        ++here.forwards;
        give(here, op.stage, m, here.free, true);
        break;
      case OpClass::backward:
        if (op.kind == OpKind::weight_grad) {
          here.free = now + one.times.weight;
          bank_.weight(op.stage, m);
          break;
        }
        here.free = now + one.times.backward;
        ++one.backwards;
        --here.ahead;
        bank_.backward(op.stage, m);
        if (rules_.split) here.weights.push_back(op_of(OpKind::weight_grad, op.stage, m));
        give(here, op.stage, m, here.free, false);
        break;
      case OpClass::recompute:
      case OpClass::update:
      case OpClass::reduction:
      case OpClass::message:
      case OpClass::copy:
        break;  // never chosen
    }
    wake(here.free, d);
  }

  // Its results go out at `end`: those over links one after another.
  void give(DeviceState& here, int s, std::uint32_t m, Time end, bool forward) {
    const auto arrive = [&](Inputs& inputs, Time at, int to) {
      inputs.ready = std::max(inputs.ready, at);
      --inputs.missing;
      if (inputs.missing == 0 && device(to).free <= inputs.ready) wake(inputs.ready, to);
    };
    if (forward) arrive(backward_inputs(s, m), end, stage(s).times.device);
    for (const Way& way : forward ? stage(s).times.to : stage(s).times.back) {
      Time at = end;
      if (way.over_a_link) {
        here.link = std::max(here.link, end) + way.wire;
        at = here.link + way.latency;
      }
      Inputs& inputs = forward ? forward_inputs(way.stage, m) : backward_inputs(way.stage, m);
      arrive(inputs, at, stage(way.stage).times.device);
    }
  }

  ListOutcome outcome() {
    ListOutcome result;
    for (DeviceState& one : devices_) {
      if (!one.done.empty()) {
        result.span = std::max(result.span, one.free - one.start);
        result.makespan = std::max(result.makespan, one.free);
      }
      result.ops.push_back(std::move(one.done));
    }
    return result;
  }

  const ListRules& rules_;
  StashBank bank_;
  std::uint32_t count_;
  std::vector<Stage> stages_;
  std::vector<DeviceState> devices_;
  std::vector<Inputs> forward_;   // stages × micro-batches
  std::vector<Inputs> backward_;  // stages × micro-batches
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::size_t done_ = 0;
  Time most_idle_{};
  bool stuck_ = false;
};

}  // namespace

ListOutcome list_schedule(const Problem& problem, const ListRules& rules, const StashLimit& limit) {
  return Run(problem, rules, limit).go();
}

Program freeze(Program program, const StepLists& step) {
  for (std::size_t d = 0; d < step.size(); ++d) {
    program.ops[d].reserve(step[d].size() * as_size(program.steps));
    for (int k = 0; k < program.steps; ++k) {
      const auto first = static_cast<std::uint32_t>(k * program.microbatches);
      for (Op op : step[d]) {
        op.microbatch += first;
        program.ops[d].push_back(op);
      }
    }
  }
  return program;
}

}  // namespace stageline
