// Does PipeDream's dynamic program give PipeDream's numbers?
#include "schedulers/partition/pipedream.hpp"
#include "schedulers/partition/pipedream_level.hpp"
#include "sim/base/index.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "schedulers/partition/partitioner.hpp"
#include "sim/base/errors.hpp"
#include "tests/partition/models.hpp"

namespace stageline::pipedream_tests {

using namespace stageline::testing;

namespace {

std::string seconds(Time time) { return fmt::format("{:.6f}", to_seconds(time)); }

std::string speedup(const PipedreamPlan& plan) {
  return fmt::format("{:.3f}", to_seconds(plan.single) / to_seconds(plan.bottleneck));
}

// The recurrence written down once more, in seconds, without tables or bounds.
double reference(const PipedreamQuestion& question, std::size_t level, std::size_t i, std::size_t j,
                 int k) {
  constexpr double never = std::numeric_limits<double>::infinity();
  const auto bandwidth = static_cast<double>(question.levels[level].bandwidth.bytes_per_second);
  const auto stage = [&](std::size_t first, std::size_t last, int machines) {
    if (machines > 1 && !question.replicate) return never;
    double compute = 0;
    double weights = 0;
    for (std::size_t l = first; l <= last; ++l) {
      compute += to_seconds(question.time[l]);
      weights += static_cast<double>(question.weights[l].count);
    }
    if (level > 0) {
      compute = reference(question, level - 1, first, last, question.levels[level - 1].machines);
    }
    const double reduce = 4 * (machines - 1) * weights / (machines * bandwidth);
    const bool code = question.cost == PipedreamCost::code;
    return (code ? compute + reduce : std::max(compute, reduce)) / machines;
  };
  double best = stage(i, j, k);
  for (std::size_t s = i; s < j; ++s) {
    for (int last = 1; last < k; ++last) {
      const auto crossing = static_cast<double>(question.crossing[s].count);
      const double move = question.transfers ? 2 * crossing / (bandwidth * last) : 0;
      best = std::min(best, std::max({reference(question, level, i, s, k - last), move,
                                      stage(s + 1, j, last)}));
    }
  }
  return best;
}

std::vector<int> replicas_of(const std::vector<PipedreamStage>& stages) {
  std::vector<int> replicas;
  for (const PipedreamStage& stage : stages) {
    replicas.push_back(static_cast<int>(stage.devices.size()));
  }
  return replicas;
}

// The bottleneck of these stages at one level, by the definition.
Time slowest_of(const PipedreamQuestion& question, const std::vector<PipedreamStage>& stages) {
  Time slowest{};
  for (const PipedreamStage& stage : stages) {
    const auto replicas = static_cast<int>(stage.devices.size());
    slowest = std::max(slowest, pipedream_stage_time(question, stage.first, stage.last, replicas));
    if (stage.first == 0 || !question.transfers) continue;
    const Bytes moved = question.crossing[as_size(stage.first) - 1] * 2;
    slowest = std::max(slowest, transfer_time(moved, question.levels[0].bandwidth) / replicas);
  }
  return slowest;
}

}  // namespace

TEST_CASE("PipeDream's VGG-16 at 1 GB/s gives PipeDream's times") {
  const std::optional<Model> model = profile("vgg16.graph.txt");
  if (!model) return;
  PipedreamQuestion question = question_of(*model, 4, "1GB/s");
  question.transfers = false;
  question.replicate = false;
  PipedreamPlan plan = pipedream_plan(question);
  CHECK(seconds(plan.single) == "0.672535");
  CHECK(seconds(plan.bottleneck) == "0.216450");
  CHECK(speedup(plan) == "3.107");
  CHECK(print(plan) == "straight, 4 stages");

  question.replicate = true;
  plan = pipedream_plan(question);
  CHECK(seconds(plan.bottleneck) == "0.175733");
  CHECK(speedup(plan) == "3.827");

  question.levels[0].machines = 8;
  question.replicate = false;
  plan = pipedream_plan(question);
  CHECK(seconds(plan.bottleneck) == "0.159531");
  CHECK(speedup(plan) == "4.216");
}

TEST_CASE("with transfers PipeDream's VGG-16 is replicated 3-1 and 7-1") {
  const std::optional<Model> model = profile("vgg16.graph.txt");
  if (!model) return;
  PipedreamPlan plan = pipedream_plan(question_of(*model, 4, "1GB/s"));
  CHECK(print(plan) == "3-1");
  CHECK(speedup(plan) == "3.272");
  plan = pipedream_plan(question_of(*model, 8, "1GB/s"));
  CHECK(print(plan) == "7-1");
  CHECK(speedup(plan) == "6.477");
}

TEST_CASE("PipeDream's ResNet-50 at 1 GB/s gives PipeDream's times, branches and all") {
  const std::optional<Model> model = profile("resnet50.graph.txt");
  if (!model) return;
  PipedreamQuestion question = question_of(*model, 4, "1GB/s");
  PipedreamPlan plan = pipedream_plan(question);
  CHECK(seconds(plan.single) == "0.443419");
  CHECK(print(plan) == "2-2");
  CHECK(speedup(plan) == "2.722");
  question.transfers = false;
  question.replicate = false;
  plan = pipedream_plan(question);
  CHECK(seconds(plan.bottleneck) == "0.111497");
  CHECK(speedup(plan) == "3.977");
}

TEST_CASE("the partitioner says what the program found") {
  const std::optional<Model> model = profile("vgg16.graph.txt");
  if (!model) return;
  const Cluster cluster = uniform_cluster(4, LinkSpec{parse_bandwidth("1GB/s"), {}}, std::nullopt);
  PartitionPlan plan = partition("pipedream", {*model, cluster, 4, true, ""});
  CHECK(plan.reason == "plan 3-1, slowest transfer 205.5 ms a minibatch, 3.27× one device");
  CHECK(plan.replicas == std::vector<int>{3, 1});
  CHECK(plan.partition.stages == 2);
  CHECK_NOTHROW(check(plan.partition, *model));
  plan = partition("pipedream:transfers=no", {*model, cluster, 4, false, ""});
  CHECK(plan.reason ==
        "plan straight, 4 stages, slowest stage 216.4 ms a minibatch, 3.11× one device");
  CHECK(plan.replicas == std::vector<int>{1, 1, 1, 1});
  plan = partition("pipedream:replicate=no", {*model, cluster, 4, true, ""});
  CHECK(plan.reason.find("slowest transfer 411.0 ms a minibatch, 1.64× one device") !=
        std::string::npos);
  const Cluster free_cluster = devices(4);
  CHECK(partition("pipedream:bandwidth=1GB/s", {*model, free_cluster, 4, true, ""}).reason ==
        "plan 3-1, slowest transfer 205.5 ms a minibatch, 3.27× one device");
  CHECK(partition("pipedream", {*model, free_cluster, 4, true, ""}).replicas ==
        std::vector<int>{4});
}

TEST_CASE("the program finds what all plans tried one by one give") {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    const int layers = 1 + draw(random, 6);
    const Model model = random_model(random, layers, round % 2 == 0);
    PipedreamQuestion question = question_of(model, 1 + draw(random, 5), "1GB/s");
    for (Time& time : question.time) time *= 1'000'000;  // microseconds, against hundreds of bytes:
    question.levels[0].bandwidth = Bandwidth{(1 + draw(random, 20)) * std::int64_t{20'000'000}};
    question.cost = draw(random, 2) == 0 ? PipedreamCost::code : PipedreamCost::paper;
    question.transfers = draw(random, 2) == 0;
    question.replicate = question.levels[0].machines > layers || draw(random, 3) != 0;
    if (draw(random, 2) == 0) {  // a second level
      const int machines = 1 + draw(random, 3);
      if (question.replicate || machines * question.levels[0].machines <= layers) {
        question.levels.push_back(
            {machines, Bandwidth{(1 + draw(random, 20)) * std::int64_t{5'000'000}}});
      }
    }
    CAPTURE(round);
    CAPTURE(layers);
    CAPTURE(question.levels.size());
    const PipedreamPlan plan = pipedream_plan(question);
    const std::size_t level = question.levels.size() - 1;
    const double best =
        reference(question, level, 0, question.time.size() - 1, question.levels[level].machines);
    CHECK(std::abs(to_seconds(plan.bottleneck) - best) < 1e-11);  // of some 10 µs
    int devices = 1;
    for (const PipedreamLevel& asked : question.levels) devices *= asked.machines;
    const std::vector<int> replicas = replicas_of(plan.stages);
    CHECK(std::accumulate(replicas.begin(), replicas.end(), 0) == devices);
    if (!question.replicate) CHECK(static_cast<int>(plan.stages.size()) == devices);
    int next = 0;
    for (const PipedreamStage& stage : plan.stages) {
      CHECK(stage.first == next);
      next = stage.last + 1;
    }
    CHECK(next == layers);
    if (level > 0) continue;
    CHECK(slowest_of(question, plan.stages) == plan.bottleneck);
    // its replicas, given, get its cuts
    question.replicas = replicas;
    const PipedreamPlan again = pipedream_plan(question);
    CHECK(again.stages == plan.stages);
    CHECK(again.bottleneck == plan.bottleneck);
    CHECK(again.single == plan.single);
  }
}

TEST_CASE("with given replicas the program finds the best of all cuts") {
  std::mt19937 random(13);
  for (int round = 0; round < 300; ++round) {
    const int layers = 1 + draw(random, 8);
    const Model model = random_model(random, layers, round % 2 == 0);
    const int stages = 1 + draw(random, std::min(layers, 4));
    std::vector<int> replicas;
    while (static_cast<int>(replicas.size()) < stages) replicas.push_back(1 + draw(random, 4));
    PipedreamQuestion question =
        question_of(model, std::accumulate(replicas.begin(), replicas.end(), 0), "1GB/s");
    question.levels[0].bandwidth = Bandwidth{(1 + draw(random, 40)) * std::int64_t{10'000'000'000}};
    question.cost = draw(random, 2) == 0 ? PipedreamCost::code : PipedreamCost::paper;
    question.transfers = draw(random, 2) == 0;
    question.replicas = replicas;
    for (Time& time : question.time) time *= 100;
    Time best = Time::max();
    for (const std::vector<int>& cut : all_cuts(layers, stages)) {
      std::vector<PipedreamStage> tried;
      for (std::size_t s = 0; s < replicas.size(); ++s) {
        tried.push_back({s == 0 ? 0 : cut[s - 1] + 1, s < cut.size() ? cut[s] : layers - 1,
                         std::vector<int>(as_size(replicas[s]))});
      }
      best = std::min(best, slowest_of(question, tried));
    }
    CAPTURE(round);
    const PipedreamPlan plan = pipedream_plan(question);
    CHECK(plan.bottleneck == best);
    CHECK(slowest_of(question, plan.stages) == best);
    CHECK(replicas_of(plan.stages) == replicas);
    CHECK(plan.stages.front().first == 0);
    CHECK(plan.stages.back().last == layers - 1);
    CHECK(plan.stages.back().devices.back() == question.levels[0].machines - 1);
  }
}

TEST_CASE("the replicas of PipeDream's plans, given, get the cuts of those plans") {
  const auto check_given = [](const char* name, const std::vector<int>& replicas) {
    const std::optional<Model> model = profile(name);
    if (!model) return;
    CAPTURE(name);
    const int count = std::accumulate(replicas.begin(), replicas.end(), 0);
    const Cluster cluster =
        uniform_cluster(count, LinkSpec{parse_bandwidth("1GB/s"), {}}, std::nullopt);
    const PartitionPlan chosen = partition("pipedream", {*model, cluster, count, true, ""});
    REQUIRE(chosen.replicas == replicas);
    const int stages = static_cast<int>(replicas.size());
    for (const char* text : {"pipedream", "pipedream:replicate=yes", "pipedream:replicate=no"}) {
      const PartitionPlan given = partition(text, {*model, cluster, stages, false, "", replicas});
      CHECK(given.partition == chosen.partition);
      CHECK(given.replicas == replicas);
      CHECK(given.devices.empty());
      CHECK(given.reason == chosen.reason);
    }
  };
  check_given("vgg16.graph.txt", {7, 1});
  check_given("vgg16.graph.txt", {3, 1});
  check_given("resnet50.graph.txt", {2, 2});
}

TEST_CASE("given replicas need one level that holds them, and a layer a stage") {
  PipedreamQuestion question = question_of(chain({1, 1}), 4, "1GB/s");
  question.replicas = {2, 1, 1};
  CHECK_THROWS_WITH_AS(pipedream_plan(question),
                       "pipedream: replicas 2-1-1 are 3 stages, but there are 2 layers",
                       UsageError);
  question.replicas = {3, 2};
  CHECK_THROWS_WITH_AS(pipedream_plan(question),
                       "pipedream: given replicas need one level that holds as many devices, at "
                       "least 1 a stage; 3-2 are 5 devices, but there is 1 level with 4",
                       UsageError);
}

TEST_CASE("a plan that would take minutes is refused") {
  PipedreamQuestion question;
  question.time.assign(100'000, Time{1});
  question.levels = {{8, Bandwidth::unlimited()}};
  PlanSteps steps(question);
  steps.add(2'000'000'000);
  CHECK_THROWS_WITH_AS(steps.add(1),
                       "pipedream: a plan of 100000 layers for 8 devices weighs more than "
                       "2000000000 splits; merge layers, use fewer devices or give --partition "
                       "balanced",
                       UsageError);
}

TEST_CASE("one level of one machine changes nothing") {
  std::mt19937 random(12);
  for (int round = 0; round < 20; ++round) {
    const Model model = random_model(random, 6, true);
    PipedreamQuestion question = question_of(model, 3, "50GB/s");
    const PipedreamPlan plan = pipedream_plan(question);
    question.levels = {{3, parse_bandwidth("50GB/s")}, {1, parse_bandwidth("1kB/s")}};
    CHECK(pipedream_plan(question).bottleneck == plan.bottleneck);
    CHECK(pipedream_plan(question).stages == plan.stages);
    question.levels = {{1, parse_bandwidth("1kB/s")}, {3, parse_bandwidth("50GB/s")}};
    CHECK(pipedream_plan(question).bottleneck == plan.bottleneck);
  }
}

TEST_CASE("bytes that cross a cut count each tensor once, as long as a later layer reads it") {
  Model model = chain({1, 1, 1, 1}, {1, 10, 100, 1000});
  CHECK(crossing_bytes(model) == std::vector<Bytes>{{1}, {10}, {100}, {0}});
  model.edges = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {2, 3}};
  CHECK(crossing_bytes(model) == std::vector<Bytes>{{1}, {11}, {101}, {0}});
}

}  // namespace stageline::pipedream_tests
