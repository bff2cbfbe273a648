// Are perturbations drawn as they say, the same for a scenario whatever else is drawn?
#include "cost_models/perturbation/perturbation.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "cost_models/perturbation/elementary.hpp"
#include "cost_models/perturbation/normal.hpp"
#include "sim/base/errors.hpp"

namespace stageline::perturbation_tests {
namespace {

// One device per lane; tasks of 10^9 ps in turn on `devices` devices, `steps` of each.
TaskGraph graph_of(std::uint32_t devices, std::uint32_t ops) {
  TaskGraph graph;
  graph.paths.emplace_back();
  graph.need_begin.push_back(0);
  for (std::uint32_t d = 0; d < devices; ++d) {
    graph.devices.push_back("gpu" + std::to_string(d));
    graph.lanes.push_back({static_cast<int>(d), LaneKind::compute});
  }
  for (std::uint32_t i = 0; i < ops; ++i) {
    for (std::uint32_t d = 0; d < devices; ++d) {
      graph.op.push_back(op_of(OpKind::forward, static_cast<int>(d), i));
      graph.lane.push_back(static_cast<std::uint16_t>(d));
      graph.path_of.push_back(0);
      graph.duration.emplace_back(1'000'000'000);
      graph.need_begin.push_back(0);
    }
  }
  return graph;
}

std::vector<std::int64_t> drawn(const Scenarios& scenarios, const TaskGraph& graph,
                                std::uint64_t first, std::size_t count) {
  std::vector<std::int64_t> duration(graph.tasks() * count);
  scenarios.draw(first, count, duration);
  return duration;
}

// The mean of the largest of n log-normal numbers of mean 1: ∫ n φ Φⁿ⁻¹ exp(σx − σ²/2) dx.
double mean_of_slowest(int n, double variation) {
  const double deviation = std::sqrt(std::log1p(variation * variation));
  constexpr double width = 1e-3;
  double sum = 0;
  for (double x = -9; x < 9; x += width) {
    const double density = std::exp(-x * x / 2) / std::sqrt(2 * 3.14159265358979323846);
    const double below = std::erfc(-x / std::sqrt(2.0)) / 2;
    sum += n * density * std::pow(below, n - 1) *
           std::exp(deviation * x - deviation * deviation / 2) * width;
  }
  return sum;
}

double mean_factor(const std::vector<std::int64_t>& duration) {
  double sum = 0;
  for (const std::int64_t time : duration) sum += static_cast<double>(time) / 1e9;
  return sum / static_cast<double>(duration.size());
}

}  // namespace

TEST_CASE("the normal quantile: tabled values, and back through erfc") {
  CHECK(normal_quantile(0.5) == 0);
  CHECK(normal_quantile(0.25) == doctest::Approx(-0.6744897501960817).epsilon(1e-15));
  CHECK(normal_quantile(0.001) == doctest::Approx(-3.090232306167814).epsilon(1e-15));
  CHECK(normal_quantile(1e-20) == doctest::Approx(-9.262340089798408).epsilon(1e-14));
  for (double x = -5; x < 5; x += 0.01) {
    CHECK(normal_quantile(0.5 * std::erfc(-x / std::sqrt(2.0))) ==
          doctest::Approx(x).epsilon(1e-9));
  }
}

TEST_CASE("exp and log of the draws are those of the library within four units") {
  const auto near = [](double mine, double library) {
    const double unit = std::nextafter(std::abs(library), 1e300) - std::abs(library);
    return std::abs(mine - library) <= 4 * unit;
  };
  for (int i = -4000; i <= 4000; ++i) {
    const double x = i * 0.00517;
    CAPTURE(x);
    CHECK(near(portable_exp(x), std::exp(x)));
    CHECK(near(portable_log(std::exp(x)), std::log(std::exp(x))));
    if (x >= 0) CHECK(near(portable_log1p(x / 4), std::log1p(x / 4)));
  }
  CHECK(portable_exp(0) == 1);
  CHECK(portable_log(1) == 0);
  CHECK(portable_log1p(0) == 0);
}

TEST_CASE("log-normal jitter has mean 1 and the coefficient that was asked for") {
  const TaskGraph graph = graph_of(2, 8);
  Perturbation asked;
  asked.jitter = parse_jitter("20%", "--jitter");
  const Scenarios scenarios(graph, asked, 4);
  constexpr std::size_t count = 8192;
  const std::vector<std::int64_t> duration = drawn(scenarios, graph, 0, count);
  double sum = 0;
  double squares = 0;
  for (const std::int64_t time : duration) {
    const double factor = static_cast<double>(time) / 1e9;
    sum += factor;
    squares += factor * factor;
  }
  const auto n = static_cast<double>(duration.size());
  const double mean = sum / n;
  CHECK(mean == doctest::Approx(1).epsilon(5 * 0.2 / std::sqrt(n)));
  CHECK(std::sqrt(squares / n - mean * mean) == doctest::Approx(0.2).epsilon(0.02));
}

TEST_CASE("scenario k is the same whatever block it is drawn in") {
  const TaskGraph graph = graph_of(3, 5);
  Perturbation asked;
  asked.jitter = parse_jitter("5%", "--jitter");
  asked.slow = parse_slow_items("gpu1:1.5@0.3,gpu2:2", "--sometimes-slow");
  asked.pauses = parse_pauses("3:1ms", "--pause");
  asked.seed = 0x123456789abcdefULL;
  const Scenarios scenarios(graph, asked, 5);
  const std::vector<std::int64_t> all = drawn(scenarios, graph, 0, 64);
  for (const std::size_t size : {std::size_t{4}, std::size_t{16}}) {
    for (std::uint64_t first = 0; first < 64; first += size) {
      const std::vector<std::int64_t> part = drawn(scenarios, graph, first, size);
      for (std::size_t task = 0; task < graph.tasks(); ++task) {
        for (std::size_t k = 0; k < size; ++k) {
          REQUIRE(part[task * size + k] == all[task * 64 + first + k]);
        }
      }
    }
  }
}

// The same constant with every compiler, so that a seed says the same everywhere. FNV-1a of 64
// bits.
TEST_CASE("the scenarios of a seed are these") {
  const TaskGraph graph = graph_of(3, 5);
  Perturbation asked;
  asked.jitter = parse_jitter("5%", "--jitter");
  asked.slow = parse_slow_items("gpu1:1.5@0.3,gpu2:2", "--sometimes-slow");
  asked.pauses = parse_pauses("3:1ms", "--pause");
  asked.seed = 42;
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::int64_t time : drawn(Scenarios(graph, asked, 5), graph, 0, 256)) {
    for (int byte = 0; byte < 8; ++byte) {
      hash = (hash ^ (static_cast<std::uint64_t>(time) >> (8 * byte) & 0xffU)) * 0x100000001b3;
    }
  }
  CHECK(hash == 0xc1da9c51e4744241);
}

TEST_CASE("a device is slow in its share of the scenarios, with all its ops") {
  const TaskGraph graph = graph_of(2, 4);
  Perturbation asked;
  asked.slow = parse_slow_items("gpu1:1.25@0.25", "--sometimes-slow");
  const Scenarios scenarios(graph, asked, 4);
  constexpr std::size_t count = 4096;
  const std::vector<std::int64_t> duration = drawn(scenarios, graph, 0, count);
  std::size_t slow = 0;
  for (std::size_t k = 0; k < count; ++k) {
    const std::int64_t first = duration[1 * count + k];  // task 1 is the first op on gpu1
    slow += first == 1'250'000'000 ? 1U : 0U;
    for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
      REQUIRE(duration[task * count + k] == (task % 2 == 1 ? first : 1'000'000'000));
    }
  }
  CHECK(static_cast<double>(slow) / count == doctest::Approx(0.25).epsilon(0.1));
}

TEST_CASE("a pause lengthens the first op of a step, in one of so many") {
  const TaskGraph graph = graph_of(1, 4);
  Perturbation asked;
  asked.pauses = parse_pauses("4:1ms", "--pause");
  const Scenarios scenarios(graph, asked, 2);
  constexpr std::size_t count = 4096;
  const std::vector<std::int64_t> duration = drawn(scenarios, graph, 0, count);
  std::size_t paused = 0;
  for (std::size_t k = 0; k < count; ++k) {
    paused += duration[k] == 2'000'000'000 ? 1U : 0U;
    REQUIRE(duration[count + k] == 1'000'000'000);  // the second op of the first step
  }
  CHECK(static_cast<double>(paused) / count == doctest::Approx(0.25).epsilon(0.1));
}

TEST_CASE("an op of several devices is as slow as the slowest of their draws") {
  const TaskGraph graph = graph_of(2, 8);
  Perturbation asked;
  asked.jitter = parse_jitter("5%", "--jitter");
  constexpr std::size_t count = 4096;
  // Five standard errors, of at most 5 % over √(16 · 4096).
  constexpr double error = 5 * 0.05 / 256;
  for (const int members : {1, 2, 8, 64}) {
    CAPTURE(members);
    Scenarios::Facts facts;
    facts.members.count.assign(graph.tasks(), static_cast<std::uint32_t>(members));
    const double mean = mean_factor(drawn(Scenarios(graph, asked, 4, facts), graph, 0, count));
    CHECK(mean == doctest::Approx(mean_of_slowest(members, 0.05)).epsilon(error));
  }
  CHECK(mean_of_slowest(8, 0.05) == doctest::Approx(1.073).epsilon(1e-3));
}

TEST_CASE("more members begin with the draws of fewer, and are never faster") {
  const TaskGraph graph = graph_of(1, 4);
  for (const bool sampled : {false, true}) {
    Perturbation asked;
    asked.jitter = parse_jitter("10%", "--jitter");
    if (sampled) asked.jitter = {Jitter::Law::samples, 0, {1.5, 1, 2, 1}, false};
    std::vector<std::int64_t> before = drawn(Scenarios(graph, asked, 4), graph, 0, 256);
    for (const std::uint32_t members : {1U, 2U, 5U}) {
      Scenarios::Facts facts;
      facts.members.count.assign(graph.tasks(), members);
      const std::vector<std::int64_t> now = drawn(Scenarios(graph, asked, 4, facts), graph, 0, 256);
      if (members == 1) CHECK(now == before);
      for (std::size_t i = 0; i < now.size(); ++i) REQUIRE(now[i] >= before[i]);
      before = now;
    }
  }
  // Of 3 members the slowest is the longest sample unless all miss it.
  Perturbation asked;
  asked.jitter = {Jitter::Law::samples, 0, {1, 2}, false};
  Scenarios::Facts facts;
  facts.members.count.assign(graph.tasks(), 3);
  const double mean = mean_factor(drawn(Scenarios(graph, asked, 4, facts), graph, 0, 8192));
  CHECK(mean == doctest::Approx(2 - 1.0 / 8).epsilon(0.01));
}

TEST_CASE("tasks that wait for one another take the slowest draw of all") {
  const TaskGraph graph = graph_of(2, 8);  // ops 2i and 2i + 1 are those of two replicas
  Perturbation asked;
  asked.jitter = parse_jitter("5%", "--jitter");
  Scenarios::Facts facts;
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    facts.members.leader.push_back(task / 2 * 2);
    facts.members.count.push_back(4);
  }
  constexpr std::size_t count = 4096;
  const std::vector<std::int64_t> all = drawn(Scenarios(graph, asked, 4, facts), graph, 0, count);
  for (std::size_t task = 0; task < graph.tasks(); task += 2) {
    for (std::size_t k = 0; k < count; ++k) {
      REQUIRE(all[task * count + k] == all[(task + 1) * count + k]);
    }
  }
  CHECK(mean_factor(all) == doctest::Approx(mean_of_slowest(8, 0.05)).epsilon(5 * 0.05 / 181));
}

TEST_CASE("what is priced for a set of slow items is what its scenarios take") {
  const TaskGraph graph = graph_of(2, 4);
  Perturbation asked;
  asked.slow = parse_slow_items("gpu1:2@0.5,nvlink:3@0.25", "--sometimes-slow");
  CHECK_THROWS_WITH_AS(Scenarios(graph, asked, 4), doctest::Contains("nvlink"), UsageError);
  Scenarios::Facts facts;
  const Time usual = graph.duration[0];
  facts.slow.choices = {{{0, 1}, {usual, usual * 9 / 5, usual * 7 / 5, usual * 11 / 5}}};
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    facts.slow.of_task.push_back(task % 2 == 1 ? 0 : SlowTimes::none);
  }
  constexpr std::size_t count = 8192;
  const std::vector<std::int64_t> all = drawn(Scenarios(graph, asked, 4, facts), graph, 0, count);
  double sum = 0;
  for (std::size_t k = 0; k < count; ++k) {
    REQUIRE(all[k] == usual.count());
    REQUIRE(all[count + k] == all[3 * count + k]);
    sum += static_cast<double>(all[count + k]) / static_cast<double>(usual.count()) / count;
  }
  CHECK(sum == doctest::Approx(1 + 0.5 * 0.8 + 0.25 * 0.4).epsilon(0.02));
}

TEST_CASE("bad perturbations are refused in one sentence") {
  for (const char* text : {"", "-1%", "x", "300%", "5%,messages", "transfers"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_jitter(text, "--jitter"), UsageError);
  }
  for (const char* text : {"gpu1", "gpu1:", "gpu1:0", "gpu1:2@1.5", "gpu1:2@-1", ":2", "gpu1:x"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_slow_items(text, "--sometimes-slow"), UsageError);
  }
  for (const char* text : {"", "0:1ms", "10", "10:x", "10:"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_pauses(text, "--pause"), UsageError);
  }
  const TaskGraph graph = graph_of(2, 1);
  Perturbation asked;
  asked.slow = {{"gpu9", 2, 1}};
  CHECK_THROWS_WITH_AS(Scenarios(graph, asked, 1), doctest::Contains("gpu9"), UsageError);
  asked.slow.clear();
  asked.jitter = parse_jitter("measured", "--jitter");
  CHECK_THROWS_WITH_AS(Scenarios(graph, asked, 1), doctest::Contains("states no spread"),
                       UsageError);
}

}  // namespace stageline::perturbation_tests
