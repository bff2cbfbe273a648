// Does PipeDream's dynamic program give PipeDream's numbers?
#include "schedulers/partition/pipedream.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <limits>
#include <optional>
#include <sstream>

#include "schedulers/partition/partitioner.hpp"
#include "sim/errors.hpp"
#include "tests/partition/models.hpp"
#include "traces/traces.hpp"

using namespace stageline;
using namespace stageline::testing;

namespace {

std::optional<Model> profile(const std::string& name) {
  const char* data = std::getenv("STAGELINE_DATA");
  const std::string path = std::string(data != nullptr ? data : "") + "/pipedream/" + name;
  std::ifstream file(path);
  if (!file) {
    MESSAGE("no profile " << name << " under STAGELINE_DATA; nothing checked");
    return std::nullopt;
  }
  std::ostringstream text;
  text << file.rdbuf();
  return read_pipedream_profile(text.str(), name, 0);
}

PipedreamQuestion question_of(const Model& model, int devices, const std::string& bandwidth) {
  PipedreamQuestion question;
  for (const Layer& layer : model.layers) {
    question.time.push_back(layer.forward + layer.backward);
    question.weights.push_back(layer.weights);
  }
  question.crossing = crossing_bytes(model);
  question.levels = {{devices, parse_bandwidth(bandwidth)}};
  return question;
}

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

int devices_of(const PipedreamPlan& plan) {
  int count = 0;
  for (const PipedreamStage& stage : plan.stages) count += static_cast<int>(stage.devices.size());
  return count;
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
    CHECK(devices_of(plan) == devices);
    if (!question.replicate) CHECK(static_cast<int>(plan.stages.size()) == devices);
    int next = 0;
    for (const PipedreamStage& stage : plan.stages) {
      CHECK(stage.first == next);
      next = stage.last + 1;
    }
    CHECK(next == layers);
    if (level > 0) continue;
    // and the plan it names has that bottleneck
    Time slowest{};
    for (const PipedreamStage& stage : plan.stages) {
      const auto replicas = static_cast<int>(stage.devices.size());
      slowest =
          std::max(slowest, pipedream_stage_time(question, stage.first, stage.last, replicas));
      if (stage.first == 0 || !question.transfers) continue;
      const Bytes moved = question.crossing[static_cast<std::size_t>(stage.first) - 1] * 2;
      slowest = std::max(slowest, transfer_time(moved, question.levels[0].bandwidth) / replicas);
    }
    CHECK(slowest == plan.bottleneck);
  }
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

TEST_CASE("a stage on several machines takes turns among them") {
  // inside a machine the large weights of the last layer forbid to replicate it
  Model model = chain({3, 1});
  model.layers[1].weights = parse_bytes("1GB");
  model.edges.clear();
  const Cluster cluster = devices(8);
  const PartitionPlan plan =
      partition("pipedream:levels=4@1GB/s,2@1000TB/s", {model, cluster, 8, true, ""});
  CHECK(plan.replicas == std::vector<int>{6, 2});
  CHECK(plan.devices == std::vector<std::vector<int>>{{0, 4, 1, 5, 2, 6}, {3, 7}});
  CHECK(plan.reason.find("plan 6-2, slowest stage or transfer 501.0 µs a minibatch, 7.98×") == 0);
}

TEST_CASE("bytes that cross a cut count each tensor once, as long as a later layer reads it") {
  Model model = chain({1, 1, 1, 1}, {1, 10, 100, 1000});
  CHECK(crossing_bytes(model) == std::vector<Bytes>{{1}, {10}, {100}, {0}});
  model.edges = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {2, 3}};
  CHECK(crossing_bytes(model) == std::vector<Bytes>{{1}, {11}, {101}, {0}});
}

TEST_CASE("a slower device kind scales the times, different ones are refused") {
  const Model model = chain({4, 4});
  Cluster cluster = devices(2);
  for (Device& device : cluster.devices) device.rate = 0.5;
  CHECK(partition("pipedream", {model, cluster, 2, false, ""}).reason ==
        "plan straight, 2 stages, slowest stage 8.000 ms a minibatch, 2.00× one device");
  cluster.devices[1].rate = 1;
  CHECK_THROWS_WITH_AS(partition("pipedream", {model, cluster, 2, false, ""}),
                       "pipedream: its plan takes all devices as equally fast, but gpu0 has rate "
                       "0.5 and gpu1 has 1; use balanced, which does not",
                       UsageError);
}

TEST_CASE("options that do not fit are refused") {
  const Model model = chain({1, 1, 1, 1, 1, 1, 1, 1});
  const Cluster cluster = devices(4);
  const auto refusal = [&](const std::string& options, bool replicate = true) -> std::string {
    try {
      return partition("pipedream:" + options, {model, cluster, 4, replicate, ""}).reason;
    } catch (const UsageError& error) {
      return error.what();
    }
  };
  CHECK(refusal("cost=max") == "pipedream: cost=\"max\" is neither \"code\" nor \"paper\"");
  CHECK(refusal("csot=code") ==
        "pipedream: option \"csot\" is not known (cost, transfers, replicate, bandwidth, levels)"
        " (did you mean \"cost\"?)");
  CHECK(refusal("cost") == "pipedream: \"cost\" in \"cost\" has no value; write key=value");
  CHECK(refusal("levels=4") ==
        "pipedream: level \"4\" is not \"<machines>@<bandwidth>\" with at least 1 machine, like "
        "levels=4@12GB/s,2@1GB/s");
  CHECK(refusal("levels=4@1GB/s,2@1GB/s") ==
        "pipedream: the levels hold 8 devices, but the plan is for 4; their product must be the "
        "same");
  CHECK(refusal("levels=4@1GB/s,bandwidth=1GB/s") ==
        "pipedream: give bandwidth= or levels=, not both; each level has its own");
  CHECK(refusal("replicate=yes", false) ==
        "pipedream: replicate=yes needs a schedule that can replicate stages, like pipedream; give "
        "replicate=no");
  CHECK(refusal("bandwidth=0GB/s").find("pipedream: bandwidth \"0GB/s\" is zero") == 0);
}

TEST_CASE("weights that take longer to reduce than the tables hold are refused") {
  Model model = chain({1, 1});
  model.layers[0].weights = parse_bytes("100TB");
  const Cluster cluster = devices(2);
  CHECK_THROWS_AS(partition("pipedream:bandwidth=1B/s", {model, cluster, 2, true, ""}), UsageError);
}
