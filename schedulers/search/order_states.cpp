#include "schedulers/search/order_states.hpp"

#include <algorithm>
#include <limits>

#include "sim/base/index.hpp"

namespace stageline {
namespace {

constexpr std::size_t most_stages = 64;
constexpr int most_microbatches = 65'535;

constexpr std::size_t number_of(OpKind kind) {
  return kind == OpKind::forward ? 0 : kind == OpKind::input_grad ? 1 : 2;
}

}  // namespace

OrderStates::OrderStates(const Problem& problem, const StashLimit& limit, bool for_span)
    : count_(as_size(problem.microbatches)) {
  const std::vector<StageTimes> times = stage_times(problem, true);
  const bool bytes = limit.unit == StashLimit::Unit::bytes;
  can_ = times.size() <= most_stages && problem.microbatches <= most_microbatches;
  // What takes less time than its stage says could be sooner than is seen here.
  for (const double pace : problem.costs.pace) can_ = can_ && pace >= 1;
  devices_.resize(problem.devices.size());
  ops_ = 3 * times.size() * count_;
  Time begins{};
  for (std::size_t s = 0; s < times.size(); ++s) {
    const StageTimes& from = times[s];
    const bool last = s + 1 == times.size();
    // The next stage reads it, and nobody else.
    can_ = can_ && from.to.size() == (last ? 0U : 1U) && from.needs.size() == (s > 0 ? 1U : 0U);
    can_ = can_ && (last || as_size(from.to.front().stage) == s + 1);
    if (!can_) return;
    Stage stage;
    stage.device = as_size(from.device);
    stage.forward = from.forward;
    stage.backward = from.backward;
    stage.weight = from.weight;
    if (!last) {
      stage.wire = from.to.front().wire;
      stage.latency = from.to.front().latency;
      stage.back_from_afar = times[s + 1].device != from.device;
    }
    if (s > 0) {
      stage.back_wire = from.back.front().wire;
      stage.back_latency = from.back.front().latency;
      stage.from_afar = times[s - 1].device != from.device;
    }
    has_wires_ = has_wires_ || stage.wire > Time{} || stage.back_wire > Time{};
    const StageCosts& costs = problem.costs.stage[s];
    stage.holds = bytes ? costs.stash_split().count : 1;
    stage.weight_frees = bytes ? costs.stash_after_input_grad().count : 1;
    if (bytes && costs.stash_after_input_grad() > costs.stash()) complete_ = false;
    Device& device = devices_[stage.device];
    if (for_span && device.stages.empty()) device.begins = begins;
    begins += stage.forward + stage.wire + stage.latency;
    device.stages.push_back(static_cast<std::uint32_t>(s));
    stages_.push_back(std::move(stage));
  }
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    Device& device = devices_[d];
    complete_ = complete_ && !may_wait_to_send(device);
    if (d < limit.most.size()) device.most = limit.most[d];
    if (device.most < 0 || device.stages.size() > 1) continue;
    Stage& stage = stages_[device.stages.front()];
    const std::int64_t whole = stage.holds == 0 ? problem.microbatches : device.most / stage.holds;
    stage.most = std::clamp<std::int64_t>(whole, 1, problem.microbatches);
    stage.until_weight = stage.weight_frees == stage.holds && stage.holds > 0;
  }
  segment_.resize(2 * stages_.size());
  head_.resize(2 * stages_.size());
  make_tails();
}

// An op that is put before another delays its message, although it does not delay the op itself,
// unless the link is free whenever an op ends.
bool OrderStates::may_wait_to_send(const Device& device) const {
  Time longest_wire{};
  Time shortest_op = Time::max();
  for (const std::uint32_t s : device.stages) {
    const Stage& stage = stages_[s];
    longest_wire = std::max({longest_wire, stage.wire, stage.back_wire});
    if (stage.back_from_afar) shortest_op = std::min(shortest_op, stage.forward);
    if (stage.from_afar) shortest_op = std::min(shortest_op, stage.backward);
  }
  return longest_wire > shortest_op;
}

// The longest ways to the end: needs, the order of micro-batches, the stash that another F waits
// for, and what is left for the device.
void OrderStates::make_tails() {
  for (Stage& stage : stages_) stage.tail.assign(3 * count_, Time::min() / 4);
  for (std::size_t k = count_; k-- > 0;) {
    const auto left = static_cast<std::int64_t>(count_ - k);
    const auto later = [&](std::size_t s, std::size_t kind, std::size_t number) {
      return number < count_ ? stages_[s].tail[std::size_t{3} * number + kind] : Time::min() / 4;
    };
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      Stage& stage = stages_[s];
      const Time begins = devices_[stage.device].begins;
      Time& weight = stage.tail[std::size_t{3} * k + 2];
      weight = std::max(weight, stage.weight * left - begins);
      if (stage.until_weight) {
        weight = std::max(weight, stage.weight + later(s, 0, k + as_size(stage.most)));
      }
      Time& input = stage.tail[std::size_t{3} * k + 1];
      input = std::max((stage.backward + stage.weight) * left - begins, stage.backward + weight);
      input = std::max(input, stage.backward + later(s, 1, k + 1));
      if (s > 0) {
        const Time way = stage.back_wire + stage.back_latency;
        input = std::max(input, stage.backward + way + stages_[s - 1].tail[std::size_t{3} * k + 1]);
      }
    }
    for (std::size_t s = stages_.size(); s-- > 0;) {
      Stage& stage = stages_[s];
      const Time begins = devices_[stage.device].begins;
      Time& forward = stage.tail[std::size_t{3} * k];
      forward = (stage.forward + stage.backward + stage.weight) * left - begins;
      forward = std::max(forward, stage.forward + stage.tail[std::size_t{3} * k + 1]);
      forward = std::max(forward, stage.forward + later(s, 0, k + 1));
      if (s + 1 < stages_.size()) {
        const Time way = stage.wire + stage.latency;
        forward = std::max(forward, stage.forward + way + stages_[s + 1].tail[std::size_t{3} * k]);
      }
    }
  }
  Time there_and_back{};
  for (std::size_t s = stages_.size(); s-- > 0;) {
    Stage& stage = stages_[s];
    const bool last = s + 1 == stages_.size();
    if (!last) {
      there_and_back += stage.wire + stage.latency + stages_[s + 1].forward +
                        stages_[s + 1].backward + stages_[s + 1].back_wire +
                        stages_[s + 1].back_latency;
    }
    stage.after_last =
        count_ > 0 ? tail(static_cast<std::uint32_t>(s), 1, count_ - 1) - stage.backward : Time{};
    const std::int64_t others = stage.most - 1;
    if (!stage.until_weight || as_size(stage.most) >= count_) continue;
    const auto idle = [&](Time work) { return std::max(there_and_back - work * others, Time{}); };
    stage.cool = idle(stage.backward + stage.weight);
    stage.cool_input = idle(stage.backward);
  }
}

OrderStates::State OrderStates::begin() const {
  State state;
  state.done.resize(3 * stages_.size());
  state.times.resize(devices_.size() * (has_wires_ ? 2 : 1));
  return state;
}

void OrderStates::find_segments(const State& state) const {
  std::size_t at = devices_.size() * (has_wires_ ? 2 : 1);
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    segment_[std::size_t{2} * s] = at;
    if (stages_[s].from_afar) {
      at += std::size_t{state.done[3 * s - 3]} - state.done[std::size_t{3} * s];
    }
    segment_[std::size_t{2} * s + 1] = at;
    if (stages_[s].back_from_afar) {
      at += std::size_t{state.done[std::size_t{3} * s + 4]} - state.done[std::size_t{3} * s + 1];
    }
  }
}

// As StashBank::fits, from what is done.
bool OrderStates::fits(const State& state, std::uint32_t chosen) const {
  const Device& device = devices_[stages_[chosen].device];
  if (device.most < 0) return true;
  const auto done = [&](std::uint32_t s, std::size_t kind) {
    return std::int64_t{state.done[std::size_t{3} * s + kind]};
  };
  const auto started = [&](std::uint32_t s) { return done(s, 0) + (s == chosen ? 1 : 0); };
  // Held by the micro-batches before that one.
  const auto held = [&](std::uint32_t s, std::int64_t before) {
    const std::int64_t f = std::min(before, started(s));
    const std::int64_t i = std::min(before, done(s, 1));
    const std::int64_t w = std::min(before, done(s, 2));
    return (f - i) * stages_[s].holds + (i - w) * stages_[s].weight_frees;
  };
  const auto all = static_cast<std::int64_t>(count_);
  std::int64_t free = device.most;
  for (const std::uint32_t s : device.stages) free -= held(s, all);
  if (free < 0 || device.stages.size() == 1) return free >= 0;
  for (const std::uint32_t j : device.stages) {
    const std::int64_t waiting = started(j);
    if (waiting >= all) continue;
    std::int64_t room = free;
    for (const std::uint32_t s : device.stages) {
      room += held(s, waiting);
      if (started(s) <= waiting) room -= stages_[s].holds;
    }
    if (room < 0) return false;
  }
  return true;
}

void OrderStates::next(const State& state,
                       std::vector<std::pair<NextOp, std::uint64_t>>& ops) const {
  ops.clear();
  find_segments(state);
  std::vector<std::pair<NextOp, Time>> ready;  // and their ends
  for (std::uint32_t s = 0; s < stages_.size(); ++s) {
    const Stage& stage = stages_[s];
    const Count* const done = &state.done[std::size_t{3} * s];
    const Time free = state.times[stage.device];
    const bool last = s + 1 == stages_.size();
    if (done[0] < count_ && (s == 0 || done[0] < *(done - 3)) && fits(state, s)) {
      const Time arrives = stage.from_afar ? state.times[segment_[std::size_t{2} * s]] : Time{};
      const Time start = std::max(free, arrives);
      ready.push_back({{s, OpKind::forward, start}, start + stage.forward});
    }
    if (done[1] < done[0] && (last || done[1] < done[4])) {
      const Time arrives =
          stage.back_from_afar ? state.times[segment_[std::size_t{2} * s + 1]] : Time{};
      const Time start = std::max(free, arrives);
      ready.push_back({{s, OpKind::input_grad, start}, start + stage.backward});
    }
    if (done[2] < done[1]) {
      ready.push_back({{s, OpKind::weight_grad, free}, free + stage.weight});
    }
  }
  std::uint64_t barred = state.barred;
  const auto is_barred = [&](const NextOp& op) {
    return op.kind == OpKind::forward && (barred >> op.stage & 1) != 0;
  };
  while (true) {
    const std::pair<NextOp, Time>* soonest = nullptr;
    for (const auto& one : ready) {
      if (is_barred(one.first)) continue;
      if (soonest == nullptr || one.second < soonest->second) soonest = &one;
    }
    if (soonest == nullptr) return;
    const Device& device = devices_[stages_[soonest->first.stage].device];
    std::uint64_t here = 0;
    for (const std::uint32_t s : device.stages) here |= std::uint64_t{1} << s;
    for (const auto& one : ready) {
      if ((here >> one.first.stage & 1) == 0 || is_barred(one.first)) continue;
      if (&one == soonest || one.first.start < soonest->second) {
        ops.push_back({one.first, barred & ~here});
      }
    }
    // Its room may be better kept for the F of another stage, though that starts later.
    if (soonest->first.kind != OpKind::forward || device.most < 0 || device.stages.size() == 1) {
      return;
    }
    barred |= std::uint64_t{1} << soonest->first.stage;
  }
}

void OrderStates::place(State& state, NextOp op) const {
  find_segments(state);
  const Stage& stage = stages_[op.stage];
  const std::size_t s = op.stage;
  const std::size_t kind = number_of(op.kind);
  const Time duration = kind == 0 ? stage.forward : kind == 1 ? stage.backward : stage.weight;
  const Time end = op.start + duration;
  state.times[stage.device] = end;
  const bool consumes = (kind == 0 && stage.from_afar) || (kind == 1 && stage.back_from_afar);
  const bool sends = (kind == 0 && stage.back_from_afar) || (kind == 1 && stage.from_afar);
  if (sends) {
    Time sent = end;
    if (has_wires_) {
      Time& link = state.times[devices_.size() + stage.device];
      link = sent = std::max(link, end) + (kind == 0 ? stage.wire : stage.back_wire);
    }
    sent += kind == 0 ? stage.latency : stage.back_latency;
    // Behind the last that is under way to the next stage, or to the one before.
    const std::size_t target = kind == 0 ? s + 1 : s - 1;
    const std::size_t behind = 2 * target + kind + 1;
    const std::size_t at = behind < segment_.size() ? segment_[behind] : state.times.size();
    state.times.insert(state.times.begin() + static_cast<std::ptrdiff_t>(at), sent);
    if (at <= segment_[std::size_t{2} * s + kind]) ++segment_[std::size_t{2} * s + kind];
  }
  if (consumes) {
    state.times.erase(state.times.begin() +
                      static_cast<std::ptrdiff_t>(segment_[std::size_t{2} * s + kind]));
  }
  ++state.done[std::size_t{3} * s + kind];
}

}  // namespace stageline
