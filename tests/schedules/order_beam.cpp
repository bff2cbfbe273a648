// Branch and bound over orders: does it find the shortest one, and is what it proves true? Against
// every order there is, of small steps, and against proved optima.
#include "schedulers/search/order_beam.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "schedulers/search/device_bound.hpp"
#include "schedulers/search/order_climb.hpp"
#include "schedulers/search/stash_bound.hpp"
#include "sim/base/index.hpp"
#include "tests/make.hpp"
#include "tests/thorough.hpp"

namespace stageline::order_beam_tests {
namespace {

// A step whose ops have all been placed one after another, in any sequence: nothing of branch and
// bound is used. A device sends one message at a time.
class EveryOrder {
 public:
  EveryOrder(const Problem& problem, const StashLimit& limit, bool for_span)
      : stages_(stage_times(problem, true)),
        costs_(problem.costs),
        count_(problem.microbatches),
        limit_(limit),
        for_span_(for_span) {}

  std::optional<Time> shortest() const {
    Placed start;
    start.done.resize(3 * stages_.size());
    start.free.resize(limit_.most.size());
    start.link.resize(limit_.most.size());
    start.begins.assign(limit_.most.size(), Time::max());
    start.ends.resize(3 * stages_.size() * as_size(count_));
    std::set<Placed> level{start};
    for (std::size_t n = 0; n < 3 * stages_.size() * as_size(count_); ++n) {
      std::set<Placed> next;
      for (const Placed& one : level) {
        for (std::size_t op = 0; op < 3 * stages_.size(); ++op) {
          if (std::optional<Placed> then = place(one, op)) next.insert(*std::move(then));
        }
      }
      level = std::move(next);
    }
    std::optional<Time> best;
    for (const Placed& one : level) {
      Time value{};
      for (std::size_t d = 0; d < one.free.size(); ++d) {
        value = std::max(value, one.free[d] - (for_span_ ? one.begins[d] : Time{}));
      }
      best = std::min(best.value_or(value), value);
    }
    return best;
  }

 private:
  struct Placed {
    std::vector<int> done;  // by stage: F, I, W
    std::vector<Time> free;
    std::vector<Time> link;  // by device: its sends so far are over
    std::vector<Time> begins;
    /// By stage, kind and micro-batch: with its message sent; what is not read again is 0.
    std::vector<Time> ends;
    auto operator<=>(const Placed&) const = default;
  };

  std::size_t at(std::size_t op, int k) const { return op * as_size(count_) + as_size(k); }

  std::optional<Placed> place(const Placed& from, std::size_t op) const {
    const std::size_t s = op / 3;
    const std::size_t kind = op % 3;
    const int k = from.done[op];
    if (k == count_) return std::nullopt;
    const StageTimes& stage = stages_[s];
    const auto d = as_size(stage.device);
    Placed to = from;
    Time start = from.free[d];
    const auto after = [&](std::size_t other, Time way) {
      if (from.done[other] <= k) return false;
      start = std::max(start, from.ends[at(other, k)] + way);
      return true;
    };
    const auto way_from = [&](const std::vector<Way>& ways) { return ways.front().latency; };
    const bool last = s + 1 == stages_.size();
    const std::size_t none = 3 * stages_.size();
    const std::size_t reader = kind == 0 && !last ? s + 1 : kind == 1 && s > 0 ? s - 1 : none;
    const bool sends = reader != none && stages_[reader].device != stage.device;
    if (kind == 0 && s > 0 && !after(op - 3, way_from(stages_[s - 1].to))) return std::nullopt;
    if (kind > 0 && from.done[op - 1] <= k) return std::nullopt;
    if (kind == 1 && !last && !after(op + 3, way_from(stages_[s + 1].back))) return std::nullopt;
    ++to.done[op];
    if (limit_.most[d] >= 0 && held(to, d) > limit_.most[d]) return std::nullopt;
    to.begins[d] = std::min(to.begins[d], start);
    to.free[d] = start + (kind == 0 ? stage.forward : kind == 1 ? stage.backward : stage.weight);
    to.ends[at(op, k)] = to.free[d];
    if (sends) {
      to.link[d] =
          std::max(to.link[d], to.free[d]) + (kind == 0 ? stage.to : stage.back).front().wire;
      to.ends[at(op, k)] = to.link[d];
    }
    forget(to);
    return to;
  }

  // What nobody reads any more.
  void forget(Placed& one) const {
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      const bool last = s + 1 == stages_.size();
      for (int k = 0; k < count_; ++k) {
        const auto is_done = [&](std::size_t op) { return one.done[op] > k; };
        if ((last || is_done(3 * s + 3)) && is_done(3 * s + 1)) one.ends[at(3 * s, k)] = Time{};
        if ((s == 0 || is_done(3 * s - 2)) && is_done(3 * s + 2)) {
          one.ends[at(3 * s + 1, k)] = Time{};
        }
        one.ends[at(3 * s + 2, k)] = Time{};
      }
    }
  }

  std::int64_t held(const Placed& one, std::size_t device) const {
    const bool bytes = limit_.unit == StashLimit::Unit::bytes;
    std::int64_t sum = 0;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      if (as_size(stages_[s].device) != device) continue;
      const StageCosts& costs = costs_.stage[s];
      const std::int64_t all = bytes ? costs.stash().count : 1;
      const std::int64_t later = bytes ? costs.stash_after_input_grad().count : 1;
      sum += (one.done[3 * s] - one.done[3 * s + 1]) * all +
             (one.done[3 * s + 1] - one.done[3 * s + 2]) * later;
    }
    return sum;
  }

  std::vector<StageTimes> stages_;
  const Costs& costs_;
  int count_;
  StashLimit limit_;
  bool for_span_;
};

Costs drawn(std::mt19937& random, int stages, int p, bool wires) {
  Costs costs = uniform_costs(stages, p, Time{1}, Time{1}, Time{1}, Time{1});
  if (wires) {
    // One byte takes one unit.
    costs.network = test::tabulated(network_of(uniform_cluster(
        p, LinkSpec{Bandwidth{1'000'000'000'000}, Time{static_cast<int>(random() % 3)}},
        std::nullopt)));
    for (EdgeCosts& edge : costs.edges) {
      edge.activation = Bytes{static_cast<int>(random() % 12)};
      edge.gradient = Bytes{static_cast<int>(random() % 12)};
    }
  }
  for (Route& route : costs.network.routes) {
    if (route.is_free() || wires) continue;
    route = Route{};
    route.latency = Time{static_cast<int>(random() % 3)};
  }
  for (StageCosts& stage : costs.stage) {
    const auto time = [&] { return Time{static_cast<int>(random() % 6)}; };
    stage.forward = time();
    stage.input_grad = time();
    stage.weight_grad = time();
    stage.backward = stage.input_grad + stage.weight_grad;
    stage.stash_weight_grad = Bytes{static_cast<int>(random() % 4)};
    stage.stash_input_grad = Bytes{1 + static_cast<int>(random() % 4)};
    stage.stash_gradient = Bytes{static_cast<int>(random() % 2)};
  }
  return costs;
}

struct Small {
  const char* placement;
  int chunks;
  int p;
  int m;
};

struct Proofs {
  int cases = 0;
  int complete = 0;
};

void check_shortest(const Problem& problem, const StashLimit& limit, bool for_span,
                    Proofs& proofs) {
  CAPTURE(for_span);
  const std::optional<Time> shortest = EveryOrder(problem, limit, for_span).shortest();
  REQUIRE(shortest.has_value());
  if (const auto bound = stash_bound(problem, limit)) {
    CHECK((for_span ? bound->span : bound->makespan) <= *shortest);
  }
  const auto bounds = device_bounds(problem, limit);
  REQUIRE(bounds.has_value());
  CHECK((for_span ? bounds->span : bounds->makespan).value <= *shortest);
  const OrderStates states(problem, limit, for_span);
  REQUIRE(states.can());
  BeamLimits limits;
  limits.below = *shortest + Time{1};
  limits.width = 1 << 20;
  const BeamOutcome outcome = beam_search(states, limits);
  ++proofs.cases;
  if (!states.complete()) {
    CHECK((outcome.lists.empty() || outcome.value >= *shortest));
    return;
  }
  ++proofs.complete;
  REQUIRE(!outcome.lists.empty());
  CHECK(outcome.value == *shortest);
  CHECK(outcome.least == *shortest);
  OrderClimb climb(problem, limit, {}, for_span);
  const std::optional<StepTimes> times = climb.times(outcome.lists);
  REQUIRE(times.has_value());
  CHECK((for_span ? times->span : times->makespan) == *shortest);
  // Nothing is shorter, and that is said.
  limits.below = *shortest;
  const BeamOutcome none = beam_search(states, limits);
  CHECK(none.lists.empty());
  CHECK(none.least == *shortest);
  // With few states no more is said than is true.
  limits.below = *shortest * 2 + Time{1};
  limits.width = 2;
  const BeamOutcome narrow = beam_search(states, limits);
  CHECK(narrow.least <= *shortest);
  if (!narrow.lists.empty()) CHECK(narrow.value >= *shortest);
}

void check_small(const Small& small, const Costs& costs, std::mt19937& random, Proofs& proofs) {
  const ScheduleSpec spec = test::spec("zb_auto:placement=" + std::string(small.placement) +
                                       ",chunks=" + std::to_string(small.chunks));
  const Problem problem = test::problem_for(spec, small.p, costs, small.m);
  StashLimit limit = stash_limit(
      problem, small.chunks + static_cast<int>(random() % as_size(small.chunks * small.m)));
  if (random() % 3 == 0) {
    limit.unit = StashLimit::Unit::bytes;
    for (int d = 0; d < small.p; ++d) {
      const std::int64_t least = smallest_limit(problem, limit.unit, true, d);
      limit.most[as_size(d)] = least + static_cast<int>(random() % as_size(2 * small.m));
    }
  }
  for (const bool for_span : {true, false}) {
    CAPTURE(small.placement);
    CAPTURE(small.p);
    CAPTURE(small.m);
    check_shortest(problem, limit, for_span, proofs);
  }
}

TEST_CASE("the shortest order of small steps is found, and nothing is proved that is not so") {
  const Small all[] = {
      {"straight", 1, 1, 4}, {"straight", 1, 2, 3}, {"straight", 1, 2, 4}, {"straight", 1, 3, 2},
      {"v", 2, 1, 3},        {"v", 2, 2, 2},        {"looped", 2, 2, 2},   {"looped", 3, 1, 2},
  };
  std::mt19937 random(61);
  Proofs proofs;
  for (int i = 0; i < (test::thorough ? 2 : 1); ++i) {
    CAPTURE(i);
    for (const Small& small : all) {
      check_small(small, drawn(random, small.chunks * small.p, small.p, false), random, proofs);
    }
  }
  CHECK(3 * proofs.complete >= proofs.cases);
}

// A message may wait for the one before on its link: then an op that could go at once is better
// kept back where another's message is more urgent, and the beam does not keep ops back.
TEST_CASE("where messages wait for each other nothing is proved that is not so") {
  std::mt19937 random(67);
  Proofs proofs;
  for (int i = 0; i < (test::thorough ? 3 : 1); ++i) {
    CAPTURE(i);
    for (const Small& small : {Small{"straight", 1, 2, 3}, Small{"v", 2, 2, 2}}) {
      if (!test::thorough && small.chunks > 1) continue;
      check_small(small, drawn(random, small.chunks * small.p, small.p, true), random, proofs);
    }
  }
  Costs costs = drawn(random, 4, 2, true);
  constexpr int times[4][3] = {{2, 3, 3}, {3, 0, 2}, {2, 1, 2}, {0, 1, 2}};
  constexpr int bytes[3][2] = {{1, 5}, {7, 4}, {8, 7}};
  for (std::size_t s = 0; s < 4; ++s) {
    StageCosts& stage = costs.stage[s];
    stage.forward = Time{times[s][0]};
    stage.input_grad = Time{times[s][1]};
    stage.weight_grad = Time{times[s][2]};
    stage.backward = stage.input_grad + stage.weight_grad;
  }
  for (std::size_t s = 0; s < 3; ++s) {
    costs.edges[s].activation = Bytes{bytes[s][0]};
    costs.edges[s].gradient = Bytes{bytes[s][1]};
  }
  costs.network = test::tabulated(
      network_of(uniform_cluster(2, LinkSpec{Bandwidth{1'000'000'000'000}, Time{}}, std::nullopt)));
  const Problem problem =
      test::problem_for(test::spec("zb_auto:placement=v,chunks=2"), 2, costs, 2);
  check_shortest(problem, stash_limit(problem, 3), true, proofs);
}

}  // namespace
}  // namespace stageline::order_beam_tests
