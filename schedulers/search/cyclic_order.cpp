#include "schedulers/search/cyclic_order.hpp"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "schedulers/parts/building_block.hpp"
#include "schedulers/parts/interleaved_plan.hpp"
#include "schedulers/parts/priorities.hpp"
#include "schedulers/parts/warm_up.hpp"
#include "schedulers/search/cyclic_period.hpp"
#include "schedulers/search/grouped_candidates.hpp"
#include "schedulers/search/order_climb.hpp"
#include "sim/base/index.hpp"

namespace stageline {
namespace {

// Ops looked at; of rounds of several micro-batches, each.
constexpr std::int64_t most_work = 2'000'000;
constexpr std::int64_t most_work_of_several = 2'000'000;
constexpr std::int64_t most_listed = 40'000;  // forwards of a list schedule
constexpr int waits = 8;                      // before the first I, in shares of the period
constexpr std::int64_t finer = 200;           // periods tried lie so close: 1/200;
constexpr std::int64_t coarser = 40;          // of several micro-batches, 1/40

Time rounded_up(Time time, std::int64_t by) { return Time{(time.count() + by - 1) / by}; }

class Search {
 public:
  Search(const Problem& problem, const StashLimit& limit, int each)
      : problem_(problem),
        limit_(limit),
        each_(each),
        stages_(stage_times(problem, true)),
        devices_(problem.devices.size()),
        clock_(stages_, each),
        step_(problem, limit, {}, true),
        bound_(least_period(problem, limit) * each),
        takes_time_(std::all_of(stages_.begin(), stages_.end(), [](const StageTimes& one) {
          return one.forward > Time{} && one.backward > Time{} && one.weight > Time{};
        })) {}

  CyclicOrder best(const std::vector<StepLists>& known) {
    try_one_by_one();
    for (const StepLists& lists : known) try_rhythm(lists);
    try_gaps();
    improve();
    // The period is what it is; now the ends of the step.
    times_steps_ = true;
    spent_ = 0;
    found_->step = *step_.times(unrolled(best_, problem_.microbatches));
    improve();
    return outcome();
  }

  /// A given round, where it keeps the limit.
  std::optional<CyclicOrder> as_it_is(const CyclicRound& round) {
    times_steps_ = true;
    if (!try_round(round)) return std::nullopt;
    return outcome();
  }

 private:
  const StageTimes& stage(int s) const { return nth(stages_, s); }
  int stage_count() const { return static_cast<int>(stages_.size()); }

  // What is to be small, the first first.
  struct Value {
    RoundTimes round;
    StepTimes step;
    bool operator<(const Value& other) const {
      return std::tuple(round.period, step.span, step.makespan, round.through) <
             std::tuple(other.round.period, other.step.span, other.step.makespan,
                        other.round.through);
    }
  };

  CyclicOrder outcome() const { return {best_, found_->round.period, bound_, found_->step}; }

  // Whether it is better than all before.
  bool try_round(const CyclicRound& round) {
    if (!keeps_limit(problem_, limit_, round)) return false;
    const Time most = found_ ? found_->round.period : Time::max();
    const std::int64_t before = clock_.looked_at();
    const std::optional<RoundTimes> times = clock_.times(round, bound_, most);
    spent_ += clock_.looked_at() - before;
    if (!times) return false;
    Value value{*times, {}};
    // A circle of ops that take no time has no period, and still never begins: the step tells.
    if (times_steps_ || times->period == bound_ || !takes_time_) {
      const std::optional<StepTimes> step = step_.times(unrolled(round, problem_.microbatches));
      spent_ += std::int64_t{3} * stage_count() * problem_.microbatches;
      if (!step) return false;
      value.step = *step;
    }
    if (found_ && !(value < *found_)) return false;
    found_ = value;
    best_ = round;
    return true;
  }

  bool over() const { return spent_ > (each_ == 1 ? most_work : most_work_of_several); }

  void try_rhythm(const StepLists& lists) {
    if (const std::optional<CyclicRound> round = middle_round(lists, stage_count(), each_)) {
      try_round(*round);
    }
  }

  // Every micro-batch alone: as little as can be held, and there is always a period.
  void try_one_by_one() {
    CyclicRound round{each_, std::vector<std::vector<CyclicOp>>(devices_)};
    for (int n = 0; n < each_; ++n) {
      for (int s = 0; s < stage_count(); ++s) {
        nth(round.device, stage(s).device).push_back({OpKind::forward, s, n, 0});
      }
      for (int s = stage_count() - 1; s >= 0; --s) {
        for (const OpKind kind : {OpKind::input_grad, OpKind::weight_grad}) {
          nth(round.device, stage(s).device).push_back({kind, s, n, 0});
        }
      }
    }
    try_round(round);
  }

  // The ops of a device in the time of a period, by their starts modulo it.
  struct Ring {
    struct Taken {
      Time at{};
      Time time{};
      CyclicOp op;
    };
    std::vector<Taken> taken;

    // The earliest start from `ready` on that leaves the ops there alone; nothing where no gap is
    // wide enough.
    std::optional<Time> gap(Time ready, Time time, Time period) const {
      Time start = ready;
      for (std::size_t tries = 0; tries <= 2 * taken.size() + 1; ++tries) {
        bool free = true;
        for (const Taken& one : taken) {
          // Where `one` is next to `start`: its repetition that ends behind it.
          const Time into = (start - one.at) % period;
          const Time past = into < Time{} ? into + period : into;
          if (past < one.time) {
            start += one.time - past;
            free = false;
          } else if (past + time > period) {
            start += period - past + one.time;
            free = false;
          }
        }
        if (free) return start;
      }
      return std::nullopt;
    }
    void take(Time start, Time time, Time period, CyclicOp op) {
      op.behind = static_cast<int>(start / period);
      taken.push_back({start % period, time, op});
    }
  };

  std::optional<CyclicRound> in_gaps(Time period, Time wait) const {
    std::vector<Ring> rings(devices_);
    std::vector<std::vector<Time>> weight(as_size(each_));  // by number and stage: I is over
    const auto place = [&](OpKind kind, int s, int number, Time ready) -> std::optional<Time> {
      Ring& ring = nth(rings, stage(s).device);
      const Time time = clock_.work(kind, s);
      const std::optional<Time> start = ring.gap(ready, time, period);
      if (start) ring.take(*start, time, period, {kind, s, number, 0});
      return start;
    };
    for (int n = 0; n < each_; ++n) {
      std::vector<Time> forward(stages_.size(), period * n / each_);
      std::vector<Time> input(stages_.size());
      for (int s = 0; s < stage_count(); ++s) {
        const std::optional<Time> start = place(OpKind::forward, s, n, nth(forward, s));
        if (!start) return std::nullopt;
        nth(input, s) = *start + stage(s).forward;
        for (const Way& way : stage(s).to) {
          Time& next = nth(forward, way.stage);
          next = std::max(next, *start + stage(s).forward + way.wire + way.latency);
        }
      }
      input.back() += wait;
      nth(weight, n).resize(stages_.size());
      for (int s = stage_count() - 1; s >= 0; --s) {
        const std::optional<Time> start = place(OpKind::input_grad, s, n, nth(input, s));
        if (!start) return std::nullopt;
        const Time end = *start + stage(s).backward;
        nth(nth(weight, n), s) = end;
        for (const Way& way : stage(s).back) {
          Time& next = nth(input, way.stage);
          next = std::max(next, end + way.wire + way.latency);
        }
      }
    }
    for (int n = 0; n < each_; ++n) {
      for (int s = stage_count() - 1; s >= 0; --s) {
        if (!place(OpKind::weight_grad, s, n, nth(nth(weight, n), s))) return std::nullopt;
      }
    }
    CyclicRound round{each_, {}};
    for (Ring& ring : rings) {
      std::stable_sort(ring.taken.begin(), ring.taken.end(),
                       [](const auto& a, const auto& b) { return a.at < b.at; });
      std::vector<CyclicOp>& list = round.device.emplace_back();
      for (const auto& one : ring.taken) list.push_back(one.op);
    }
    return round;
  }

  void try_gaps() {
    for (Time period = bound_; !over();
         period += std::max(Time{1}, rounded_up(bound_, each_ == 1 ? finer : coarser))) {
      if (found_ && period > std::max(found_->round.period, bound_ + bound_ / 4)) break;
      for (int wait = 0; wait < waits; ++wait) {
        const std::int64_t ops = std::int64_t{3} * stage_count() * each_;
        spent_ += ops * ops / static_cast<std::int64_t>(devices_);
        const std::optional<CyclicRound> round = in_gaps(period, period * wait / waits);
        if (round) try_round(*round);
      }
      if (found_ && found_->round.period == bound_) break;
    }
  }

  // The op at `from`, so many places later (or earlier) in its device's rounds.
  static std::vector<CyclicOp> moved(std::vector<CyclicOp> list, std::size_t from, int by) {
    CyclicOp op = list[from];
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(from));
    const int others = static_cast<int>(list.size());
    int to = static_cast<int>(from) + by;
    while (to > others) {
      to -= others;
      ++op.behind;
    }
    while (to < 0) {
      to += others;
      --op.behind;
    }
    list.insert(list.begin() + to, op);
    return list;
  }

  // All of one kind and of some stages, so many rounds later.
  CyclicRound shifted(OpKind kind, int from, int to, int by) const {
    CyclicRound round = best_;
    for (std::vector<CyclicOp>& list : round.device) {
      for (CyclicOp& op : list) {
        if (op.kind == kind && op.stage >= from && op.stage < to) op.behind += by;
      }
    }
    return round;
  }

  // The first stages' or the last's.
  bool shift() {
    bool better = false;
    const auto try_shift = [&](int from, int to) {
      for (const auto& [kind, by] :
           {std::pair(OpKind::forward, -1), std::pair(OpKind::forward, 1),
            std::pair(OpKind::weight_grad, 1), std::pair(OpKind::weight_grad, -1)}) {
        if (!over()) better = try_round(shifted(kind, from, to, by)) || better;
      }
    };
    for (int s = stage_count(); s > 0; --s) try_shift(0, s);
    for (int s = 1; s < stage_count(); ++s) try_shift(s, stage_count());
    return better;
  }

  // Single ops elsewhere, device by device.
  bool move_ops() {
    bool better = false;
    for (std::size_t d = 0; d < devices_; ++d) {
      const int ops = static_cast<int>(best_.device[d].size());
      for (int from = 0; from < ops; ++from) {
        for (int by = 1 - ops; by < ops && !over(); ++by) {
          if (by == 0) continue;
          CyclicRound round = best_;
          round.device[d] = moved(best_.device[d], as_size(from), by);
          better = try_round(round) || better;
        }
      }
    }
    return better;
  }

  void improve() {
    bool better = true;
    while (better && !over()) {
      better = shift();
      better = move_ops() || better;
    }
  }

  const Problem& problem_;
  const StashLimit& limit_;
  int each_;
  std::vector<StageTimes> stages_;
  std::size_t devices_;
  RoundClock clock_;
  OrderClimb step_;
  Time bound_;
  bool takes_time_;  // each op does
  CyclicRound best_;
  std::optional<Value> found_;
  bool times_steps_ = false;  // else only where the period cannot be shorter
  std::int64_t spent_ = 0;    // ops looked at
};

// Two stages a device, there and back again.
bool is_v(const Problem& problem) {
  const int stages = problem.placement.stages();
  if (stages != 2 * static_cast<int>(problem.devices.size())) return false;
  const auto device = [&](int s) { return nth(problem.placement.stage, s).replicas[0]; };
  for (int s = 0; s < stages; ++s) {
    if (device(s) != device(stages - 1 - s)) return false;
  }
  return true;
}

// Orders of a long step, which may have a rhythm.
std::vector<StepLists> known_orders(const Problem& problem, const StashLimit& limit) {
  const int stages = problem.placement.stages();
  const auto devices = static_cast<int>(problem.devices.size());
  Problem longer = problem;
  longer.steps = 1;
  longer.microbatches =
      static_cast<int>(std::clamp<std::int64_t>(most_listed / stages, 4, 6 * std::int64_t{stages}));
  std::vector<StepLists> known;
  ListRules rules;
  for (const Rank& rank : {backward_first(), critical_path_first(longer, true), forward_first()}) {
    rules.rank = rank;
    for (const int fill : {0, 100}) {
      rules.fill = fill;
      known.push_back(list_schedule(longer, rules, limit).ops);
    }
  }
  rules.rank = backward_first();
  rules.fill = 0;
  const auto follow = [&](StepLists plan) {
    rules.plan = std::move(plan);
    known.push_back(list_schedule(longer, rules, limit).ops);
  };
  if (stages == devices) {
    for (const int factor : {1, 2}) {
      known.push_back(in_turn(longer, by_distance(longer, factor), false));
    }
    return known;
  }
  if (is_v(problem)) {
    follow(zb_v_plan(longer));
    follow(v_rounds_plan(longer));
    follow(block_plan(longer, v_half_block(devices), 0));
    follow(block_plan(longer, v_min_block(devices), 0));
  } else if (problem.knobs.at("placement") == "looped") {
    for (const int factor : {2, 1}) follow(interleaved_plan(longer, factor));
  }
  return known;
}

// A period a micro-batch, then a step.
bool is_better(const CyclicOrder& order, const CyclicOrder& than) {
  const Time period = order.period * than.round.each;
  const Time other = than.period * order.round.each;
  return std::tie(period, order.step.span, order.step.makespan) <
         std::tie(other, than.step.span, than.step.makespan);
}

}  // namespace

CyclicOrder cyclic_order(const Problem& problem, const StashLimit& limit) {
  const std::vector<StepLists> known = known_orders(problem, limit);
  CyclicOrder best = Search(problem, limit, 1).best(known);
  const auto devices = static_cast<int>(problem.devices.size());
  for (const int each : {2, 3, 4, devices}) {
    if (best.period == best.bound || each > problem.microbatches) break;
    if (each == devices && devices <= 4) break;
    const CyclicOrder other = Search(problem, limit, each).best(known);
    if (other.period * best.round.each < best.period * each) best = other;
  }
  if (problem.placement.stages() == devices || problem.knobs.at("placement") != "looped") {
    return best;
  }
  for (const CyclicRound& round : grouped_rounds(problem)) {
    const auto other = Search(problem, limit, round.each).as_it_is(round);
    if (other && is_better(*other, best)) best = *other;
  }
  return best;
}

}  // namespace stageline
