#include "schedulers/search/order_beam.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>
#include <unordered_map>

#include "sim/base/index.hpp"

namespace stageline {
namespace {

using Count = OrderStates::Count;
using State = OrderStates::State;

constexpr std::size_t most_compared = 24;  // states with the same ops done
constexpr std::int64_t states_a_question = 4096;

struct Choice {
  std::uint32_t parent = 0;  // of the level before
  std::uint16_t stage = 0;
  std::uint8_t kind = 0;
};

// States of a level: their counts and times in a row.
struct Level {
  std::vector<Count> done;
  std::vector<Time> times;
  std::vector<std::size_t> begin;  // in `times`
  std::vector<std::uint64_t> barred;
  std::vector<OrderStates::Least> least;
  std::vector<Choice> choice;

  std::size_t size() const { return begin.size(); }
  void clear() {
    done.clear();
    times.clear();
    begin.clear();
    barred.clear();
    least.clear();
    choice.clear();
  }
};

std::uint64_t hash_of(const State& state) {
  std::uint64_t hash = 1469598103934665603U ^ state.barred;
  for (const Count count : state.done) {
    hash = (hash ^ count) * 1099511628211U;
    hash ^= hash >> 29;
  }
  return hash;
}

class Beam {
 public:
  Beam(const OrderStates& states, const BeamLimits& limits) : states_(states), limits_(limits) {}

  BeamOutcome go() {
    BeamOutcome outcome;
    outcome.least = limits_.below;
    put(states_.begin(), {Time{}, 0}, {});
    for (std::size_t n = 0; n < states_.ops(); ++n) {
      cut(outcome);
      std::swap(now_, then_);
      then_.clear();
      index_.clear();
      before_.clear();
      for (std::size_t i = 0; i < now_.size(); ++i) {
        if (outcome.states++ % states_a_question == 0 && limits_.stop &&
            limits_.stop(outcome.states)) {
          for (const auto& one : now_.least) outcome.least = std::min(outcome.least, one.value);
          outcome.stopped = true;
          return outcome;
        }
        expand(i);
      }
      choices_.push_back(now_.choice);
      if (then_.size() == 0) return outcome;
    }
    // All are done: the least is the value.
    std::size_t best = 0;
    for (std::size_t i = 1; i < then_.size(); ++i) {
      if (then_.least[i].value < then_.least[best].value) best = i;
    }
    outcome.value = then_.least[best].value;
    outcome.least = std::min(outcome.least, outcome.value);
    outcome.lists = lists_to(then_.choice[best]);
    return outcome;
  }

 private:
  State state_at(const Level& level, std::size_t i) const {
    State state;
    const std::size_t counts = 3 * states_.stages();
    const auto done = level.done.begin() + static_cast<std::ptrdiff_t>(i * counts);
    state.done.assign(done, done + static_cast<std::ptrdiff_t>(counts));
    const std::size_t end = i + 1 < level.size() ? level.begin[i + 1] : level.times.size();
    state.times.assign(level.times.begin() + static_cast<std::ptrdiff_t>(level.begin[i]),
                       level.times.begin() + static_cast<std::ptrdiff_t>(end));
    state.barred = level.barred[i];
    return state;
  }

  void expand(std::size_t i) {
    const State state = state_at(now_, i);
    states_.next(state, next_);
    for (const auto& [op, barred] : next_) {
      child_ = state;
      child_.barred = barred;
      states_.place(child_, op);
      OrderStates::Least least = states_.least(child_);
      least.value = std::max(least.value, now_.least[i].value);
      if (least.value >= limits_.below) continue;
      const std::size_t kind = op.kind == OpKind::forward      ? 0
                               : op.kind == OpKind::input_grad ? 1
                                                               : 2;
      put(child_, least,
          {static_cast<std::uint32_t>(i), static_cast<std::uint16_t>(op.stage),
           static_cast<std::uint8_t>(kind)});
    }
  }

  // Unless another of the same ops has nothing later; in place of one that has nothing earlier.
  void put(const State& state, OrderStates::Least least, Choice choice) {
    const std::uint64_t hash = hash_of(state);
    const auto [at, is_new] = index_.try_emplace(hash, none);
    std::size_t compared = 0;
    for (std::uint32_t other = at->second; other != none && compared < most_compared;
         other = before_[other], ++compared) {
      if (!alike(state, other)) continue;
      const Time* const times = &then_.times[then_.begin[other]];
      bool none_later = true;
      bool none_earlier = true;
      for (std::size_t t = 0; t < state.times.size(); ++t) {
        none_later = none_later && times[t] <= state.times[t];
        none_earlier = none_earlier && times[t] >= state.times[t];
      }
      if (none_later) return;
      if (!none_earlier) continue;
      std::copy(state.times.begin(), state.times.end(),
                then_.times.begin() + static_cast<std::ptrdiff_t>(then_.begin[other]));
      then_.least[other] = least;
      then_.choice[other] = choice;
      return;
    }
    const auto number = static_cast<std::uint32_t>(then_.size());
    then_.begin.push_back(then_.times.size());
    then_.done.insert(then_.done.end(), state.done.begin(), state.done.end());
    then_.times.insert(then_.times.end(), state.times.begin(), state.times.end());
    then_.barred.push_back(state.barred);
    then_.least.push_back(least);
    then_.choice.push_back(choice);
    before_.push_back(at->second);
    at->second = number;
  }

  bool alike(const State& state, std::uint32_t other) const {
    const auto done = then_.done.begin() + static_cast<std::ptrdiff_t>(other * state.done.size());
    return then_.barred[other] == state.barred &&
           std::equal(state.done.begin(), state.done.end(), done);
  }

  // The most promising `width` of `then_`.
  void cut(BeamOutcome& outcome) {
    if (then_.size() <= limits_.width) return;
    std::vector<std::uint32_t> by(then_.size());
    std::iota(by.begin(), by.end(), 0U);
    const auto better = [&](std::uint32_t a, std::uint32_t b) {
      const OrderStates::Least& x = then_.least[a];
      const OrderStates::Least& y = then_.least[b];
      return std::tie(x.value, x.sum, a) < std::tie(y.value, y.sum, b);
    };
    const auto end = by.begin() + static_cast<std::ptrdiff_t>(limits_.width);
    std::nth_element(by.begin(), end, by.end(), better);
    for (auto left = end; left != by.end(); ++left) {
      outcome.least = std::min(outcome.least, then_.least[*left].value);
    }
    by.erase(end, by.end());
    std::sort(by.begin(), by.end());
    Level kept;
    for (const std::uint32_t i : by) {
      const State state = state_at(then_, i);
      kept.begin.push_back(kept.times.size());
      kept.done.insert(kept.done.end(), state.done.begin(), state.done.end());
      kept.times.insert(kept.times.end(), state.times.begin(), state.times.end());
      kept.barred.push_back(state.barred);
      kept.least.push_back(then_.least[i]);
      kept.choice.push_back(then_.choice[i]);
    }
    std::swap(then_, kept);
  }

  StepLists lists_to(Choice last) const {
    std::vector<Choice> ways;
    for (std::size_t level = choices_.size(); level-- > 0;) {
      ways.push_back(last);
      last = choices_[level][last.parent];
    }
    StepLists lists(states_.devices());
    std::vector<std::uint32_t> done(3 * states_.stages());
    constexpr OpKind kinds[] = {OpKind::forward, OpKind::input_grad, OpKind::weight_grad};
    for (auto at = ways.rbegin(); at != ways.rend(); ++at) {
      std::uint32_t& number = done[std::size_t{3} * at->stage + at->kind];
      lists[states_.device_of(at->stage)].push_back(op_of(kinds[at->kind], at->stage, number++));
    }
    return lists;
  }

  static constexpr std::uint32_t none = 0xffffffff;

  const OrderStates& states_;
  const BeamLimits& limits_;
  Level now_;
  Level then_;
  std::unordered_map<std::uint64_t, std::uint32_t> index_;  // the last of `then_` with that hash
  std::vector<std::uint32_t> before_;                       // by state of `then_`: the one before
  std::vector<std::vector<Choice>> choices_;                // by level
  std::vector<std::pair<NextOp, std::uint64_t>> next_;
  State child_;
};

}  // namespace

BeamOutcome beam_search(const OrderStates& states, const BeamLimits& limits) {
  return Beam(states, limits).go();
}

}  // namespace stageline
