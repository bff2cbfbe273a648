// Does an encoder on devices of its own cost what its own ranks take, and change nothing else?
#include "cost_models/encoder.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cost_models/recomputation.hpp"
#include "cost_models/state_bytes.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/placement.hpp"
#include "tests/specs.hpp"
#include "tests/text.hpp"
#include "tools/inputs/setting.hpp"
#include "tools/study/figures/training_rates.hpp"
#include "tools/study/run/layout.hpp"
#include "tools/study/study.hpp"
#include "traces/traces.hpp"

namespace stageline::encoder_tests {
namespace {

constexpr std::int64_t megabyte = 1'000'000;

// 1 GB/s each way, 10 µs from device to device.
Cluster ports(int devices) {
  return uniform_cluster(devices, LinkSpec{{1'000'000'000}, Time{10'000'000}},
                         Bytes{16'000'000'000});
}

Model layers(int count, const std::string& time, int tensor) {
  Model model =
      uniform_model("layers=" + std::to_string(count) + ",forward=" + time + ",input_grad=" + time +
                    ",weight_grad=" + time + ",weights=1MB,output=1MB");
  for (Layer& layer : model.layers) {
    layer.gradients = Bytes{megabyte};
    layer.optimizer_state = Bytes{4 * megabyte};
    layer.forward_flops = 1000;
    layer.backward_flops = 2000;
    layer.collectives = {
        {CollectiveKind::all_reduce, Dimension::tensor, Bytes{megabyte / 10}, 1, 1, 0}};
  }
  model.sharding.tensor = tensor;
  model.tokens = 100;
  model.batch = 1;
  model.peak_flops = 1e9;
  return model;
}

Degrees degrees_of(int tensor, int data, int pipeline, EncoderDegrees encoder = {}) {
  Degrees degrees;
  degrees.tensor = tensor;
  degrees.data = data;
  degrees.pipeline = pipeline;
  degrees.encoder = encoder;
  return degrees;
}

Case case_of(Model model, const Degrees& degrees, const std::string& schedule = "1f1b") {
  Case asked;
  asked.model = std::move(model);
  asked.ranked =
      std::make_shared<RankedCluster>(ports(degrees.devices_of(degrees.pipeline)), degrees);
  asked.cluster = asked.ranked->ranks();
  asked.sharing = Sharing::fair;
  asked.spec = parse_schedules(schedule).at(0);
  asked.microbatches = 8;
  asked.encoder_stages = degrees.encoder.pipeline;
  return asked;
}

// An encoder of three layers before a model of five.
Case with_parts(const std::string& time, int of_encoder, int tensor, int data, int pipeline,
                int ranks, const std::string& schedule = "1f1b") {
  const Degrees degrees = degrees_of(tensor, data, pipeline, {ranks, of_encoder});
  return case_of(with_encoder(layers(3, time, of_encoder), layers(5, "1ms", tensor), degrees),
                 degrees, schedule);
}

Costs priced(const Case& asked) { return costs_of(asked, lay_out(asked)); }

}  // namespace

TEST_CASE("an encoder of the model's own degrees is the same model") {
  for (const int tensor : {1, 2}) {
    for (const char* schedule : {"1f1b", "gpipe", "zb_h1", "dapple"}) {
      CAPTURE(tensor);
      CAPTURE(schedule);
      Case parts = with_parts("1ms", tensor, tensor, 2, 4, 2, schedule);
      Case plain = parts;
      plain.model.encoder = {};
      plain.encoder_stages = 0;
      plain.partition = print(lay_out(parts).plan.partition);
      plain.ranked = std::make_shared<RankedCluster>(ports(8 * tensor), degrees_of(tensor, 2, 4));
      const Costs one = priced(parts);
      const Costs other = priced(plain);
      // Links that replicas load alike are one, but for those of a run with an encoder.
      REQUIRE(one.stage.size() == other.stage.size());
      for (std::size_t s = 0; s < one.stage.size(); ++s) {
        CHECK(one.stage[s].forward == other.stage[s].forward);
        CHECK(one.stage[s].backward == other.stage[s].backward);
        CHECK(one.stage[s].update == other.stage[s].update);
        CHECK(one.stage[s].gradients == other.stage[s].gradients);
        CHECK(one.stage[s].stash() == other.stage[s].stash());
      }
      CHECK(one.edges == other.edges);
      const Outcome ran = study(parts);
      const Outcome expected = study(plain);
      CHECK(ran.step_time == expected.step_time);
      CHECK(ran.plan.partition == expected.plan.partition);
      for (std::size_t d = 0; d < 4; ++d) {
        CHECK(ran.memory.device[d].peak == expected.memory.device[d].peak);
      }
    }
  }
}

TEST_CASE("an encoder that takes no time delays the model by its message alone") {
  // Of one micro-batch: those of several share the ports of the model's first rank.
  Case parts = with_parts("0ms", 1, 1, 1, 3, 1);
  Case alone = case_of(layers(5, "1ms", 1), degrees_of(1, 1, 2));
  parts.microbatches = alone.microbatches = 1;
  const Time message = from_seconds(0.001 + 10e-6);
  const Time longer = study(parts).step_time - study(alone).step_time;
  // There before the first forward, and back behind the last backward, which only the encoder
  // reads.
  CHECK(longer == 2 * message);
}

TEST_CASE("what an encoder's ranks send is cut for the model's, and travels once") {
  // Of 1 MB: a port of the side with fewer ranks carries its part of it.
  const struct {
    int of_encoder;
    int tensor;
    bool sequence;
    double milliseconds;
  } each[] = {{1, 4, false, 1},   {1, 4, true, 1},    {2, 4, false, 0.5}, {4, 1, false, 1},
              {4, 2, false, 0.5}, {2, 2, false, 0.5}, {2, 4, true, 0.5},  {3, 2, false, 0.5}};
  for (const auto& one : each) {
    const int of_encoder = one.of_encoder;
    const int tensor = one.tensor;
    const bool sequence = one.sequence;
    CAPTURE(of_encoder);
    CAPTURE(tensor);
    CAPTURE(sequence);
    const Degrees degrees = degrees_of(tensor, 2, 2, {1, of_encoder});
    Model encoder = layers(3, "1ms", of_encoder);
    Model model = layers(5, "1ms", tensor);
    if (sequence) {
      model.sharding.sequence = true;
      encoder.sharding.sequence = of_encoder > 1;
      encoder.layers.back().output = Bytes{megabyte / of_encoder};
    }
    const Case asked =
        case_of(with_encoder(std::move(encoder), std::move(model), degrees), degrees);
    const Costs costs = priced(asked);
    const EdgeCosts& edge = costs.edges.at(0);
    for (const auto& [from, to] : {std::pair(0, 1), std::pair(1, 0)}) {
      const Route& route = costs.network.between(from, to);
      CHECK(to_seconds(transfer_time(edge.activation, route.bandwidth)) * 1e3 ==
            doctest::Approx(one.milliseconds));
      double carried = 0;  // out of ports and into ports, of both replicas
      for (const double load : route.load) {
        carried += load * static_cast<double>(edge.activation.count);
      }
      CHECK(carried == doctest::Approx(4.0 * megabyte));
    }
  }
}

TEST_CASE("an encoder's stages hold and reduce what its own ranks have") {
  const Case parts = with_parts("1ms", 1, 4, 2, 3, 1);
  const Costs costs = priced(parts);
  const Degrees own = degrees_of(1, 2, 1);
  const Costs of_encoder = priced(case_of(layers(3, "1ms", 1), own));
  CHECK(costs.stage[0].optimizer_state == of_encoder.stage[0].optimizer_state);
  CHECK(costs.stage[0].weights == of_encoder.stage[0].weights);
  CHECK(costs.stage[0].forward == of_encoder.stage[0].forward);
  CHECK(costs.stage[0].stash() == of_encoder.stage[0].stash());
  REQUIRE(costs.stage[0].reduction);
  REQUIRE(of_encoder.stage[0].reduction);
  CHECK(costs.stage[0].reduction->bytes == of_encoder.stage[0].reduction->bytes);
  CHECK(alone(*costs.stage[0].reduction) == alone(*of_encoder.stage[0].reduction));
  // Only the model's ranks exchange.
  CHECK(costs.stage[0].blocking.forward == Time{});
  CHECK(costs.stage[1].blocking.forward > Time{});
  CHECK(parts.device_count() == 2 * (1 + 2 * 4));
}

TEST_CASE("FLOPs of an encoder count on its own ranks, and are unknown where a layer has none") {
  const Case asked = with_parts("1ms", 2, 4, 2, 3, 1);
  const Outcome outcome = study(asked);
  const TrainingRates rates = training_rates(asked, outcome, {});
  REQUIRE(rates.model_flops);
  CHECK(*rates.model_flops == 3000.0 * (3 * 2 + 5 * 4) * 8 * 2);
  REQUIRE(rates.mfu);
  CHECK(*rates.mfu ==
        doctest::Approx(*rates.model_flops / to_seconds(outcome.step_time) / (20 * 1e9)));
  Case unknown = asked;
  for (std::size_t l = 0; l < 3; ++l) {
    unknown.model.layers[l].forward_flops = unknown.model.layers[l].backward_flops = 0;
  }
  CHECK_FALSE(training_rates(unknown, study(unknown), {}).model_flops);
}

TEST_CASE("a frozen encoder has its forward alone, and the model behind it changes nothing") {
  for (const int data : {1, 2}) {
    CAPTURE(data);
    const Degrees degrees = degrees_of(1, data, 4, {2, 1});
    const auto asked = [&](bool frozen) {
      return case_of(with_encoder(layers(3, "1ms", 1), layers(5, "1ms", 1), degrees, frozen),
                     degrees);
    };
    const Case trained = asked(false);
    Case frozen = asked(true);
    frozen.partition = print(lay_out(trained).plan.partition);
    const Costs before = priced(trained);
    const Costs after = priced(frozen);
    for (std::size_t s = 0; s < 4; ++s) {
      CAPTURE(s);
      const StageCosts& stage = after.stage[s];
      CHECK(stage.forward == before.stage[s].forward);
      CHECK(stage.weights == before.stage[s].weights);
      if (s >= 2) {
        CHECK(stage == before.stage[s]);
        continue;
      }
      CHECK(stage.backward == Time{});
      CHECK(stage.input_grad + stage.weight_grad + stage.update == Time{});
      CHECK(stage.gradients + stage.optimizer_state == Bytes{});
      CHECK(stage.stash_input_grad + stage.stash_weight_grad + stage.stash_gradient == Bytes{});
      CHECK((!stage.reduction || *stage.reduction == CollectiveCosts{}));
    }
    CHECK(after.edges[1].activation == before.edges[1].activation);
    CHECK(after.edges[1].gradient == Bytes{});
    CHECK(after.edges[2] == before.edges[2]);
    const Outcome of_trained = study(trained);
    const Outcome of_frozen = study(frozen);
    CHECK(of_frozen.step_time < of_trained.step_time);
    CHECK(of_frozen.memory.device[0].peak < of_trained.memory.device[0].peak);
    // Its weights, and what one forward holds.
    CHECK(nth(of_frozen.memory.device[0].at_peak, MemoryKind::stash) == Bytes{});
  }
  for (const Zero zero : {Zero::optimizer, Zero::weights}) {
    Degrees degrees = degrees_of(1, 2, 3, {1, 1});
    degrees.zero = zero;
    degrees.precision = find_precision("bf16");
    Model encoder = layers(3, "1ms", 1);
    Model model = layers(5, "1ms", 1);
    for (Model* const one : {&encoder, &model}) {
      for (Layer& layer : one->layers) layer.parameters = megabyte / 2;
    }
    const Costs costs = priced(case_of(with_encoder(encoder, model, degrees, true), degrees));
    CHECK(costs.stage[0].gradients + costs.stage[0].optimizer_state == Bytes{});
    // Weights that are divided are gathered, trained or not.
    if (zero == Zero::optimizer) CHECK(costs.stage[0].update == Time{});
    CHECK(costs.stage[0].weights > Bytes{});
    CHECK(costs.stage[1].optimizer_state > Bytes{});
  }
}

TEST_CASE("what a frozen encoder does not keep is not recomputed") {
  const Degrees degrees = degrees_of(1, 1, 3, {1, 1});
  Case asked =
      case_of(with_encoder(layers(3, "1ms", 1), layers(5, "1ms", 1), degrees, true), degrees);
  asked.recomputation = parse_recomputation("full", "recompute");
  CHECK(test::contains(test::complaint<UsageError>([&] { study(asked); }), "full@1-"));
  asked.recomputation = parse_recomputation("full@1-", "recompute");
  CHECK_NOTHROW(study(asked));
}

TEST_CASE("what is not modelled beside an encoder is refused in one sentence") {
  const auto refusal = [](auto&& change) {
    SettingRequest request;
    request.trace = "model:llama3.2-1b@h100,batch=1";
    request.encoder = "model:resnet50@h100,batch=4";
    request.cluster.cluster = "h100x8*2";
    request.degrees = degrees_of(2, 1, 3, {1, 1});
    change(request);
    try {
      const Setting setting = read_setting(request);
      study(make_case(request, setting, parse_schedules("1f1b").at(0),
                      setting.device_counts.front()));
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  using Asked = SettingRequest&;
  CHECK(refusal([](Asked) {}) == "none");
  CHECK(test::contains(refusal([](Asked asked) { asked.encoder.clear(); }), "--encoder names"));
  CHECK(refusal([](Asked asked) { asked.frozen_encoder = true; }) == "none");
  CHECK(test::contains(refusal([](Asked asked) {
                         asked.encoder.clear();
                         asked.degrees.encoder = {};
                         asked.frozen_encoder = true;
                       }),
                       "--frozen-encoder is of"));
  CHECK(test::contains(refusal([](Asked asked) {
                         asked.encoder = "uniform:layers=4";
                         asked.degrees.encoder.tensor = 2;
                       }),
                       "--encoder-tp is 2"));
  CHECK(test::contains(refusal([](Asked asked) { asked.degrees.encoder.pipeline = 3; }),
                       "leaves no pipeline rank"));
  CHECK(test::contains(refusal([](Asked asked) { asked.degrees.pipeline = 9; }), "devices"));
  CHECK(test::contains(refusal([](Asked asked) { asked.lengths = "100,200"; }), "--lengths"));
  CHECK(test::contains(refusal([](Asked asked) { asked.partition = "simulated"; }),
                       "--partition: behind an encoder"));
  CHECK(test::contains(refusal([](Asked asked) { asked.partition = "0-9,10-40,41-"; }),
                       "stage of its own"));
  CHECK(test::contains(refusal([](Asked asked) { asked.degrees_are_searched = true; }),
                       "not searched"));
  CHECK(test::contains(refusal([](Asked asked) {
                         asked.encoder = "uniform:layers=4,weights=1MB";
                         asked.degrees.zero = Zero::optimizer;
                       }),
                       "bytes a parameter"));
}

TEST_CASE("schedules of several stages a device are refused beside an encoder") {
  SettingRequest request;
  request.trace = "model:llama3.2-1b@h100,batch=1";
  request.encoder = "model:resnet50@h100,batch=4";
  request.cluster.cluster = "h100x8";
  request.degrees = degrees_of(1, 1, 4, {1, 1});
  const Setting setting = read_setting(request);
  for (const std::string schedule : {"interleaved_1f1b", "zb_v", "chimera", "layerpipe", "seq1f1b",
                                     "svpp", "1f1b:vocabulary=one_barrier"}) {
    CAPTURE(schedule);
    const ScheduleSpec spec = parse_schedules(schedule).at(0);
    CHECK_THROWS_AS(study(make_case(request, setting, spec, 4)), UsageError);
  }
}

}  // namespace stageline::encoder_tests
