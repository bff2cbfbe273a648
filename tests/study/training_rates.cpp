// Are tokens/s, MFU and the price of a training those that one computes by hand?
#include "tools/study/figures/training_rates.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <numeric>

#include "cost_models/transformers/config.hpp"
#include "tests/study/uniform.hpp"
#include "tools/inputs/setting.hpp"
#include "tools/study/study.hpp"

namespace stageline::training_rates_tests {
namespace {

using doctest::Approx;

constexpr std::int64_t billion = 1'000'000'000;

double at(const TrainingRates& rates, Dimension group) {
  return rates.blocking[as_size(static_cast<int>(group))];
}

// Eight layers of 1 ms a pass at 1 TFLOP/s, half of what the device can do: F 1e9, I and W 2e9.
Model language_model() {
  Model model = uniform_model("layers=8,forward=1ms,input_grad=1ms,weight_grad=1ms");
  model.batch = 2;
  model.sample = "sequence";
  model.tokens = 1024;
  model.peak_flops = 2e12;
  for (Layer& layer : model.layers) {
    layer.forward_flops = billion;
    layer.backward_flops = 2 * billion;
    layer.selective_flops = billion / 4;
    layer.selective_forward = layer.forward / 4;
    layer.stash_input_grad = Bytes{1'000'000};
    layer.selective_stash = Bytes{500'000};
  }
  return model;
}

Case pipeline_case(const std::string& schedule = "1f1b") {
  Case asked = test::uniform_case(schedule, 4, 8);
  asked.model = language_model();
  return asked;
}

TrainingRates rates_of_case(const Case& asked, const TrainingBudget& budget = {}) {
  return training_rates(asked, study(asked), budget);
}

Degrees degrees_of(int tensor, int data, int pipeline) {
  Degrees degrees;
  degrees.tensor = tensor;
  degrees.data = data;
  degrees.pipeline = pipeline;
  return degrees;
}

// On ports of 1 GB/s without latency.
Case ranked_case(const std::string& schedule, const Degrees& degrees) {
  Case asked = pipeline_case(schedule);
  const Cluster cluster = uniform_cluster(degrees.width() * degrees.pipeline,
                                          LinkSpec{{billion}, Time{}}, Bytes{16 * billion});
  asked.ranked = std::make_shared<RankedCluster>(cluster, degrees, "best", "none");
  asked.cluster = asked.ranked->ranks();
  asked.sharing = Sharing::fair;
  asked.model.sharding.tensor = degrees.tensor;
  return asked;
}

}  // namespace

TEST_CASE("a pipeline of equal stages reaches m/(m + p - 1) of what its devices do") {
  const Outcome outcome = study(pipeline_case());
  REQUIRE(outcome.step_time == Time{66'000'000'000});
  const TrainingRates rates = training_rates(pipeline_case(), outcome);
  CHECK(*rates.tokens_per_second == Approx(8 * 2 * 1024 / 0.066));
  CHECK(*rates.tokens_per_device_second == Approx(8 * 2 * 1024 / 0.066 / 4));
  CHECK(*rates.model_flops == Approx(8 * 8 * 3e9));
  CHECK(*rates.hardware_flops == *rates.model_flops);
  CHECK(*rates.flops_per_device_second == Approx(1e12 * 8 / 11));
  CHECK(*rates.mfu == Approx(0.5 * 8 / 11));
  CHECK(*rates.hfu == *rates.mfu);
  CHECK(rates.exposed == 0);
  CHECK(std::accumulate(rates.blocking.begin(), rates.blocking.end(), 0.0) == 0);
  CHECK_FALSE(rates.device_hours);
  CHECK_FALSE(rates.dollars);
}

TEST_CASE("full recomputation runs four passes where the model counts three") {
  for (const char* const how : {"full", "every:1"}) {
    CAPTURE(how);
    Case asked = pipeline_case();
    asked.recomputation = parse_recomputation(how, "--recompute");
    const TrainingRates rates = rates_of_case(asked);
    CHECK(*rates.hfu == Approx(*rates.mfu * 4 / 3));
    CHECK(*rates.model_flops == Approx(8 * 8 * 3e9));
  }
}

TEST_CASE("selective recomputation repeats its own FLOPs, and a stage that is not asked none") {
  Case asked = pipeline_case();
  asked.recomputation = parse_recomputation("selective", "--recompute");
  CHECK(*rates_of_case(asked).hardware_flops == Approx(8 * 8 * 3.25e9));
  asked.recomputation = parse_recomputation("full@0,selective@1", "--recompute");
  CHECK(*rates_of_case(asked).hardware_flops == Approx(8 * (8 * 3e9 + 2 * 1e9 + 2 * 0.25e9)));
}

TEST_CASE(
    "what a schedule recomputes by itself counts, too, and a layer that is skipped does not") {
  Case asked = pipeline_case("gpipe:recompute=always");
  CHECK(*rates_of_case(asked).hfu == Approx(*rates_of_case(asked).mfu * 4 / 3));
  asked.model.layers.back().recompute = Time{1};  // a head, whose logits are kept
  CHECK(*rates_of_case(asked).hardware_flops == Approx(8 * (8 * 3e9 + 7 * 1e9)));
}

TEST_CASE("several steps count as one") {
  Case asked = pipeline_case("gpipe:recompute=always");
  const TrainingRates one = rates_of_case(asked);
  asked.steps = 3;
  const TrainingRates three = rates_of_case(asked);
  CHECK(*three.hardware_flops == Approx(*one.hardware_flops));
  CHECK(*three.tokens_per_second == Approx(*one.tokens_per_second));
}

TEST_CASE("ranks that divide a layer and replicas multiply FLOPs and devices") {
  const TrainingRates alone = rates_of_case(pipeline_case());
  const Case asked = ranked_case("1f1b", degrees_of(2, 3, 4));
  const Outcome outcome = study(asked);
  REQUIRE(outcome.copies == 3);
  const TrainingRates rates = training_rates(asked, outcome);
  CHECK(*rates.model_flops == Approx(6 * *alone.model_flops));
  const double step = to_seconds(outcome.step_time);
  CHECK(*rates.tokens_per_second == Approx(3 * 8 * 2 * 1024 / step));
  CHECK(*rates.tokens_per_device_second == Approx(8 * 2 * 1024 / step / 8));
  CHECK(*rates.mfu == Approx(8 * 8 * 3e9 / (4 * 2e12 * step)));
}

TEST_CASE("replicas that are simulated side by side count once each") {
  Case asked = ranked_case("1f1b", degrees_of(1, 2, 4));
  const TrainingRates alike = rates_of_case(asked);
  asked.ranked = std::make_shared<RankedCluster>(asked.ranked->devices(), degrees_of(1, 2, 4),
                                                 "best", "none", /*all=*/true);
  asked.cluster = asked.ranked->ranks();
  const TrainingRates all = rates_of_case(asked);
  CHECK(*all.model_flops == Approx(*alike.model_flops));
  CHECK(*all.tokens_per_second == Approx(*alike.tokens_per_second).epsilon(1e-6));
}

TEST_CASE("blocking collectives are a share of the busiest device's step, by group") {
  Case asked = ranked_case("1f1b", degrees_of(2, 1, 4));
  for (Layer& layer : asked.model.layers) {
    layer.collectives = {
        {CollectiveKind::all_reduce, Dimension::tensor, Bytes{1'000'000}, 2, 2, 0}};
  }
  const Outcome outcome = study(asked);
  const TrainingRates rates = training_rates(asked, outcome);
  // An all-reduce of 1 MB between two ranks of 1 GB/s takes 1 ms: F and B have 4 a stage.
  CHECK(at(rates, Dimension::tensor) == Approx(8 * 8e-3 / to_seconds(outcome.step_time)));
  CHECK(at(rates, Dimension::data) == 0);
  asked.recomputation = parse_recomputation("full", "--recompute");
  const Outcome again = study(asked);
  CHECK(at(training_rates(asked, again), Dimension::tensor) ==
        Approx(8 * 12e-3 / to_seconds(again.step_time)));
}

TEST_CASE("collectives of sequence chunks add up to those of the sequence") {
  const auto blocked = [](const std::string& schedule) {
    Case asked = ranked_case(schedule, degrees_of(2, 1, 4));
    for (Layer& layer : asked.model.layers) {
      layer.collectives = {
          {CollectiveKind::all_reduce, Dimension::tensor, Bytes{1'000'000}, 2, 2, 0}};
    }
    const Outcome outcome = study(asked);
    return at(training_rates(asked, outcome), Dimension::tensor) * to_seconds(outcome.step_time);
  };
  CHECK(blocked("seq1f1b:sequence_chunks=2") == Approx(blocked("1f1b")));
}

TEST_CASE("gathers of divided weights belong to dp, tied weights to pp") {
  Degrees degrees = degrees_of(1, 2, 4);
  Case tied = ranked_case("1f1b", degrees_of(1, 1, 4));
  for (Layer& layer : tied.model.layers) {
    layer.weights = layer.gradients = Bytes{1'000'000};
    layer.parameters = 250'000;
  }
  Case divided = tied;
  tied.model.layers.back().parameters = 0;
  const Outcome outcome = study(tied);
  // An all-reduce of 1 MB between two ranks of 1 GB/s, once a step.
  CHECK(at(training_rates(tied, outcome), Dimension::pipeline) ==
        Approx(1e-3 / to_seconds(outcome.step_time)));
  for (const Zero zero : {Zero::optimizer, Zero::weights}) {
    degrees.zero = zero;
    divided.ranked = ranked_case("1f1b", degrees).ranked;
    divided.cluster = divided.ranked->ranks();
    const Outcome one = study(divided);
    CHECK(at(training_rates(divided, one), Dimension::data) > 0);
    for (const StageCosts& stage : one.costs.stage) {
      BlockingTimes sum;
      for (const BlockingTimes& times : stage.blocking_by) sum += times;
      CHECK(sum == stage.blocking);
    }
  }
}

TEST_CASE("waits for messages are idle time, and not blocking") {
  const Case asked = [] {
    Case linked = pipeline_case();
    linked.cluster = uniform_cluster(4, LinkSpec{{billion}, Time{}}, std::nullopt);
    for (Layer& layer : linked.model.layers) layer.output = Bytes{1'000'000};
    return linked;
  }();
  const Outcome outcome = study(asked);
  const TrainingRates rates = training_rates(asked, outcome);
  double idle = 0;
  for (const DeviceMetrics& device : outcome.metrics.device) {
    idle += to_seconds(device.idle_by[as_size(static_cast<int>(IdleKind::link))]);
  }
  CHECK(idle > 0);
  CHECK(rates.idle_for_messages == Approx(idle / 4 / to_seconds(outcome.metrics.makespan)));
  CHECK(rates.idle_for_reductions == 0);
  CHECK(rates.exposed == outcome.exposed_communication);
}

TEST_CASE("devices of another kind have another peak, and a slow one of the kind the same") {
  Case asked = pipeline_case();
  const double step = to_seconds(study(asked).step_time);
  asked.cluster.kinds.resize(2);
  asked.cluster.kinds[0].name = "priced for";
  asked.cluster.kinds[0].peak = {{"bf16", 2e12}};
  asked.cluster.kinds[1].name = "half as fast";
  for (Device& device : asked.cluster.devices) device.kind = 0;
  asked.cluster.devices[3].kind = 1;
  Outcome outcome = study(asked);
  const auto mfu = [&] { return *training_rates(asked, outcome).mfu; };
  CHECK(mfu() == Approx(8 * 8 * 3e9 / (step * 4 * 2e12)));
  asked.cluster.devices[3].rate = 0.5;
  CHECK(mfu() == Approx(8 * 8 * 3e9 / (step * 3.5 * 2e12)));
  asked.cluster.devices[0].rate = 0.9;
  CHECK(mfu() == Approx(8 * 8 * 3e9 / (step * 3.5 * 2e12)));
}

TEST_CASE("a number of tokens takes GPU-hours, days and dollars") {
  const Case asked = pipeline_case();
  const Outcome outcome = study(asked);
  const double day = *training_rates(asked, outcome).tokens_per_second * 86'400;
  TrainingBudget budget{10 * day, std::nullopt};
  const TrainingRates unpriced = training_rates(asked, outcome, budget);
  CHECK(*unpriced.days == Approx(10));
  CHECK(*unpriced.device_hours == Approx(10 * 24 * 4));
  CHECK_FALSE(unpriced.dollars);
  budget.price_per_hour = 2.5;
  CHECK(*training_rates(asked, outcome, budget).dollars == Approx(2400));

  budget.price_per_hour.reset();
  Case priced = asked;
  priced.cluster.kinds.resize(2);
  priced.cluster.kinds[0].price_per_hour = 2;
  for (Device& device : priced.cluster.devices) device.kind = 0;
  CHECK(*training_rates(priced, outcome, budget).dollars == Approx(10 * 24 * 4 * 2));
  priced.cluster.devices[1].kind = 1;
  CHECK_FALSE(training_rates(priced, outcome, budget).dollars);
  priced.cluster.kinds[1].price_per_hour = 4;
  CHECK(*training_rates(priced, outcome, budget).dollars == Approx(10 * 24 * (3 * 2 + 4)));
}

TEST_CASE("language models do the FLOPs of the literature, however they are divided") {
  struct Division {
    const char* name;
    std::int64_t seq;
    Degrees degrees;
  };
  Degrees all = degrees_of(2, 2, 2);
  all.context = 2;
  Degrees experts = degrees_of(2, 4, 2);
  experts.expert = 2;
  for (const Division& one :
       {Division{"llama3-8b", 8192, degrees_of(1, 1, 4)},
        Division{"llama3-8b", 4096, degrees_of(8, 1, 2)}, Division{"llama3-8b", 8192, all},
        Division{"mixtral-8x7b", 4096, experts}}) {
    CAPTURE(one.name);
    CAPTURE(one.degrees.tensor);
    SettingRequest request;
    request.trace = "model:" + std::string(one.name) + "@h100,seq=" + std::to_string(one.seq);
    request.cluster.cluster = "h100x8*2";
    request.degrees = one.degrees;
    request.microbatches = 8;
    const Setting setting = read_setting(request);
    const Case asked =
        make_case(request, setting, parse_schedules("1f1b").front(), setting.device_counts.front());
    const Outcome outcome = study(asked);
    const TrainingRates rates = training_rates(asked, outcome);
    const double flops = model_flops(find_family(one.name)->config, one.seq,
                                     std::int64_t{8} * setting.model.batch * one.degrees.data);
    CHECK(*rates.model_flops == Approx(flops).epsilon(1e-9));
    const double step = to_seconds(outcome.step_time);
    CHECK(*rates.mfu == Approx(flops / (step * asked.device_count() * setting.model.peak_flops)));
    CHECK(*rates.tokens_per_second == Approx(8.0 * setting.model.batch * one.degrees.data *
                                             static_cast<double>(one.seq) / step));
  }
}

TEST_CASE("what the trace does not say is not known") {
  Case asked = pipeline_case();
  asked.model.tokens = 0;
  TrainingRates rates = rates_of_case(asked, {1e9, 2});
  CHECK_FALSE(rates.tokens_per_second);
  CHECK_FALSE(rates.device_hours);
  CHECK(rates.mfu);
  asked = pipeline_case();
  asked.model.batch = 0;
  CHECK_FALSE(rates_of_case(asked).tokens_per_second);
  asked = pipeline_case();
  asked.model.peak_flops = 0;
  rates = rates_of_case(asked);
  CHECK_FALSE(rates.mfu);
  CHECK_FALSE(rates.hfu);
  CHECK(rates.flops_per_device_second);
  asked.model = uniform_model("layers=8");
  rates = rates_of_case(asked);
  CHECK_FALSE(rates.model_flops);
  CHECK_FALSE(rates.hardware_flops);
}

}  // namespace stageline::training_rates_tests
