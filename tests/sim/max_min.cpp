// Are rates max-min fair, whatever came and went before?
#include "sim/fair/max_min.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "sim/base/index.hpp"
#include "tests/schedules/fair_brute_force.hpp"

namespace stageline::max_min_tests {
namespace {

struct Crossing {
  std::vector<std::uint32_t> links;
  double bound = MaxMin::unbounded;
  double weight = 1;
};

std::vector<double> rates(const std::vector<double>& capacity,
                          const std::vector<Crossing>& crossings) {
  std::vector<std::vector<ResourceLoad>> loads;
  for (const Crossing& crossing : crossings) {
    std::vector<ResourceLoad>& of_flow = loads.emplace_back();
    for (const std::uint32_t link : crossing.links) of_flow.push_back({link, 1});
  }
  MaxMin solver(capacity);
  std::vector<MaxMin::Flow> flows;
  for (std::uint32_t i = 0; i < crossings.size(); ++i) {
    flows.push_back(solver.add(i, loads[i], crossings[i].bound, crossings[i].weight));
  }
  solver.update();
  std::vector<double> result;
  for (const MaxMin::Flow flow : flows) result.push_back(solver.rate(flow));
  return result;
}

void check_rates(const std::vector<double>& found, const std::vector<double>& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CAPTURE(i);
    CHECK(found[i] == doctest::Approx(expected[i]).epsilon(1e-14));
  }
}

// A network that changes: the flows that are there, and the solver that followed all changes.
class Changing {
 public:
  Changing(unsigned seed, int links) : random_(seed) {
    for (int i = 0; i < links; ++i) capacity_.push_back(number(1, 40) / 4.0);
    solver_ = std::make_unique<MaxMin>(capacity_);
  }

  void add() {
    Known& known = *known_.emplace_back(std::make_unique<Known>());
    for (std::uint32_t link = 0; link < capacity_.size(); ++link) {
      if (number(0, 3) > 0) continue;
      const double load = number(1, 12) / 6.0;
      known.loads.push_back({link, load});
      known.across.links.push_back(link);
      known.across.load.push_back(load);
    }
    if (known.loads.empty()) {
      known.loads.push_back({0, 1});
      known.across.links.push_back(0);
      known.across.load.push_back(1);
    }
    if (number(0, 2) == 0) known.across.bound = number(1, 20) / 8.0;
    known.across.weight = number(1, 3);
    known.rank = next_rank_++;
    known.flow = solver_->add(known.rank, known.loads, known.across.bound, known.across.weight);
  }
  void remove() {
    if (known_.empty()) return;
    const auto which = known_.begin() + number(0, static_cast<int>(known_.size()) - 1);
    solver_->remove((*which)->flow);
    known_.erase(which);
  }
  std::vector<MaxMin::Flow> update() { return solver_->update(); }

  int number(int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random_);
  }

  struct Known {
    std::uint32_t rank = 0;
    std::vector<ResourceLoad> loads;
    test::FlowAcross across;
    MaxMin::Flow flow = 0;
  };
  const std::vector<std::unique_ptr<Known>>& known() const { return known_; }
  const std::vector<double>& capacity() const { return capacity_; }
  double rate(const Known& known) const { return solver_->rate(known.flow); }

 private:
  std::mt19937 random_;
  std::vector<double> capacity_;
  std::unique_ptr<MaxMin> solver_;
  std::vector<std::unique_ptr<Known>> known_;  // in order of rank
  std::uint32_t next_rank_ = 0;
};

// The rates are feasible, and each flow is at its bound or crosses a full link on which no flow has
// a larger rate / weight: then they are max-min fair, and no others are.
void check_fair(const Changing& network) {
  std::vector<double> used(network.capacity().size());
  std::vector<double> highest(network.capacity().size());
  for (const auto& known : network.known()) {
    for (const ResourceLoad& load : known->loads) {
      used[load.resource] += network.rate(*known) * load.share;
      highest[load.resource] =
          std::max(highest[load.resource], network.rate(*known) / known->across.weight);
    }
  }
  for (std::size_t link = 0; link < used.size(); ++link) {
    CHECK(used[link] <= network.capacity()[link] * (1 + 1e-9));
  }
  for (const auto& known : network.known()) {
    const double rate = network.rate(*known);
    CHECK(rate <= known->across.bound);
    bool held = rate >= known->across.bound * (1 - 1e-12);
    for (const ResourceLoad& load : known->loads) {
      const bool full = used[load.resource] >= network.capacity()[load.resource] * (1 - 1e-9);
      held = held || (full && rate / known->across.weight >= highest[load.resource] * (1 - 1e-9));
    }
    CHECK(held);
  }
}

TEST_CASE("fair shares: the published examples") {
  check_rates(rates({10, 6}, {{{0}}, {{0, 1}}, {{1}}}), {7, 3, 3});
  check_rates(rates({12, 6}, {{{0}}, {{0, 1}}, {{1}}}), {9, 3, 3});
  check_rates(rates({10, 6}, {{{0}}, {{0, 1}, 1}, {{1}}}), {9, 1, 5});
  check_rates(rates({10, 8, 2}, {{{0, 1}}, {{1, 2}}}), {6, 2});
  check_rates(rates({12}, {{{0}, MaxMin::unbounded, 1}, {{0}, MaxMin::unbounded, 2}}), {4, 8});
  check_rates(rates({1, 1, 1}, {{{0, 1, 2}}, {{0}}, {{1}}, {{2}}}), {0.5, 0.5, 0.5, 0.5});
}

TEST_CASE(
    "a flow without links gets its bound, and one alone the least of its links and its bound") {
  check_rates(rates({5}, {{{}, 3}}), {3});
  check_rates(rates({5, 4}, {{{0, 1}}}), {4});
  check_rates(rates({5, 4}, {{{0, 1}, 2}}), {2});
  check_rates(rates({5, 4}, {{{0, 1}, 2, 7}}), {2});
}

TEST_CASE("loads: a collective that crosses a link twice a byte has half of it") {
  const std::vector<ResourceLoad> ring{{0, 1.75}};
  const std::vector<ResourceLoad> plain{{0, 1}};
  MaxMin solver({11});
  const MaxMin::Flow collective = solver.add(0, ring);
  CHECK(solver.update() == std::vector<MaxMin::Flow>{collective});
  CHECK(solver.rate(collective) == doctest::Approx(11 / 1.75));
  const MaxMin::Flow message = solver.add(1, plain);
  CHECK(solver.update() == std::vector<MaxMin::Flow>{collective, message});
  CHECK(solver.rate(collective) == 4);  // equal rates, unequal shares of the link
  CHECK(solver.rate(message) == 4);
}

TEST_CASE("only what a change reaches is computed anew, and only new rates are reported") {
  const std::vector<ResourceLoad> left{{0, 1}};
  const std::vector<ResourceLoad> right{{1, 1}};
  const std::vector<ResourceLoad> both{{0, 1}, {1, 1}};
  MaxMin solver({10, 30});
  const MaxMin::Flow a = solver.add(2, left);
  const MaxMin::Flow b = solver.add(1, right, 12);
  CHECK(solver.update() == std::vector<MaxMin::Flow>{b, a});  // by rank
  CHECK_FALSE(solver.is_changed());
  CHECK(solver.update().empty());
  // It takes half of the left link; on the right one b keeps its bound.
  const MaxMin::Flow c = solver.add(0, both);
  CHECK(solver.update() == std::vector<MaxMin::Flow>{c, a});
  CHECK(solver.rate(b) == 12);
  CHECK(solver.is_at_bound(b));
  CHECK_FALSE(solver.is_at_bound(a));
  solver.remove(c);
  CHECK(solver.is_changed());
  CHECK(solver.update() == std::vector<MaxMin::Flow>{a});
  CHECK(solver.rate(a) == 10);
}

TEST_CASE("a bound that equals the level of a link comes before the link") {
  const std::vector<ResourceLoad> loads{{0, 1}};
  MaxMin solver({10});
  const MaxMin::Flow flow = solver.add(0, loads, 10);
  solver.update();
  CHECK(solver.is_at_bound(flow));
}

TEST_CASE("random networks that change: fair, and equal to rates found from nothing") {
  int compared = 0;
  for (unsigned seed = 1; seed <= 300; ++seed) {
    Changing network(seed, static_cast<int>(seed % 9) + 1);
    for (int step = 0; step < 30; ++step) {
      for (int i = network.number(1, 3); i > 0; --i) {
        if (network.number(0, 2) > 0) {
          network.add();
        } else {
          network.remove();
        }
      }
      network.update();
      CAPTURE(seed);
      check_fair(network);
      std::vector<test::FlowAcross> across;
      for (const auto& known : network.known()) across.push_back(known->across);
      const std::vector<test::FairShare> shares = test::fair_shares(network.capacity(), across);
      for (std::size_t i = 0; i < shares.size(); ++i) {
        REQUIRE(network.rate(*network.known()[i]) ==
                doctest::Approx(shares[i].rate).epsilon(1e-11));
        ++compared;
      }
    }
  }
  CHECK(compared > 50'000);
}

TEST_CASE("the same changes give the same rates to the bit") {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::vector<double> first;
    for (int time = 0; time < 2; ++time) {
      Changing network(seed, 6);
      std::vector<double> found;
      for (int step = 0; step < 40; ++step) {
        if (step % 3 == 2) {
          network.remove();
        } else {
          network.add();
        }
        network.update();
        for (const auto& known : network.known()) found.push_back(network.rate(*known));
      }
      if (time == 0) first = found;
      CHECK(found == first);
    }
  }
}

}  // namespace
}  // namespace stageline::max_min_tests
