// Does a profile hold what its rounds measured, and is an unfit one refused?
#include "tools/executor/profile/profile.hpp"
#include "sim/base/index.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "cost_models/breakdown.hpp"
#include "sim/analysis/statistics.hpp"
#include "sim/base/errors.hpp"
#include "tools/executor/devices/device.hpp"
#include "tools/executor/profile/handover_profile.hpp"
#include "tools/executor/profile/lane_profiles.hpp"
#include "tools/executor/profile/profile_text.hpp"
#include "traces/traces.hpp"

namespace stageline::executor {
namespace {

ProfileRequest small_request(const std::string& model) {
  ProfileRequest request;
  request.shape = parse_shape(model);
  request.batch = 4;
  request.least_rounds = 5;
  request.most_seconds = 0;
  return request;
}

const std::string small_gpt = "gpt,layers=1,hidden=64,seq=16,vocab=50";

Profile measured(const ProfileRequest& request) {
  return profile(request, [](const Progress&) {});
}

std::size_t count(const std::string& text, char wanted) {
  return as_size(std::count(text.begin(), text.end(), wanted));
}

}  // namespace

TEST_CASE("a profile has the layers of the shape, with times where they do something") {
  for (const std::string& name : {std::string("lenet5"), small_gpt}) {
    CAPTURE(name);
    const ProfileRequest request = small_request(name);
    const Profile profile = measured(request);
    const Model& model = profile.model;
    REQUIRE(model.layers.size() == request.shape.layers.size());
    CHECK(model.batch == 4);
    CHECK(model.edges.size() == request.shape.edges.size());
    std::int64_t parameters = 0;
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
      const Layer& layer = model.layers[i];
      const LayerShape& shape = request.shape.layers[i];
      CAPTURE(layer.name);
      CHECK(layer.name == shape.name);
      CHECK(layer.kind == shape.kind);
      CHECK(layer.forward > Time{});
      CHECK(layer.backward > Time{});
      CHECK((layer.input_grad > Time{}) == (i > 0));
      CHECK((layer.weight_grad > Time{}) == (total(shape, &Primitive::weight_grad) != Work{}));
      CHECK((layer.update > Time{}) == (shape.weights > 0));
      CHECK(layer.weights.count == 4 * shape.weights);
      CHECK(layer.gradients == layer.weights);
      CHECK(layer.optimizer_state.count == 4 * shape.weights);  // of momentum
      CHECK(layer.output.count == 16 * output_elements(shape));
      CHECK(layer.workspace.count >= 0);
      parameters += layer.parameters;
    }
    CHECK(parameters == request.shape.parameters);
  }
}

TEST_CASE("times and spreads in the model are those of the samples kept") {
  ProfileRequest request = small_request("lenet5");
  SUBCASE("on a device that has half of the model") {}
  SUBCASE("on one that has all of it") { request.share = Share::whole; }
  const Profile profile = measured(request);
  const WholeRun& whole = profile.model.whole;
  REQUIRE(whole.samples == 5);
  CHECK(whole.forward > Time{});
  CHECK(whole.backward > Time{});
  CHECK(whole.update > Time{});
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    const auto of = [&](Timed timed) { return nth(profile.samples[i], timed); };
    // Two micro-batches are in flight; fused and split rounds have an F each, and those of lone Ws.
    CHECK(of(Timed::forward).size() == 30);
    CHECK(of(Timed::forward_without_stash).size() == 10);
    CHECK(of(Timed::recompute).size() == 10);
    CHECK(of(Timed::backward_of_recomputed).size() == 10);
    CHECK(of(Timed::backward).size() == 10);
    CHECK(of(Timed::input_grad).size() == 10);
    CHECK(of(Timed::weight_grad).size() == 10);
    CHECK(of(Timed::lone_weight_grad).size() == 10);
    CHECK(of(Timed::update).size() == 20);
    CHECK((profile.model.layers[i].lone_weight_grad > Time{}) ==
          (profile.model.layers[i].weight_grad > Time{}));
    CHECK(profile.model.layers[i].forward == typical(of(Timed::forward)));
    const Time with_recomputation = typical(of(Timed::forward_without_stash)) +
                                    typical(of(Timed::recompute)) +
                                    typical(of(Timed::backward_of_recomputed));
    const Time without = typical(of(Timed::forward)) + typical(of(Timed::backward));
    CHECK(profile.model.layers[i].recompute == std::max(with_recomputation - without, Time{1}));
    CHECK(profile.model.layers[i].backward_spread == half_interquartile(of(Timed::backward)));
  }
  const std::string csv = samples_csv({profile});
  CHECK(count(csv, '\n') == 1 + 7 * (30 + 10 + 10 + 10 + 10 + 20 + 10 + 10 + 10));
  CHECK(csv.rfind("batch,layer,op,round,us\n4,conv1,F,0,", 0) == 0);
  CHECK(csv.find("\n4,fc3,U,4,") != std::string::npos);
}

TEST_CASE("workspace is what an op needs beyond what it finds and leaves") {
  // log_softmax and its gradient: the head makes class scores that nobody keeps.
  const Profile profile = measured(small_request(small_gpt));
  const Layer& head = profile.model.layers.back();
  CHECK(head.workspace.count >= 4 * 16 * 50 * 4);  // batch · places · classes · 4 bytes
}

TEST_CASE("a profile is written and read back as it is") {
  ProfileRequest request = small_request("lenet5");
  std::vector<Profile> profiles;
  for (const int batch : {2, 4}) {
    request.batch = batch;
    profiles.push_back(measured(request));
  }
  ProcessReport process;
  process.libtorch = "2.13.0";
  process.blas.name = "MKL 2024.2";
  process.cpu.model = "Test CPU";
  process.cores = {1};
  const std::vector<std::string> warned = {"the BLAS is slow"};
  const Provenance provenance =
      provenance_of({request, process, warned, profiles, "stageline-profile lenet5", "2024-05-01"});
  CHECK(provenance.origin == Origin::measured);
  CHECK(provenance.device == "Test CPU");
  CHECK(provenance.software == "LibTorch 2.13.0, MKL 2024.2");
  CHECK(provenance.settings == "fp32, momentum, 1 thread on core 1");
  CHECK(std::count(provenance.notes.begin(), provenance.notes.end(),
                   "Warning: the BLAS is slow.") == 1);
  std::vector<Model> models;
  for (Profile& profile : profiles) {
    profile.model.provenance = provenance;
    models.push_back(profile.model);
  }
  CHECK((read_trace(write_trace(models), "x.json") == models));  // c10 cannot print models
  CHECK(summary(models).find("batch 4") != std::string::npos);
}

TEST_CASE("a model with skips is written and read back as it is") {
  Profile profile = measured(small_request("resnet20"));
  CHECK((read_trace(write_trace({profile.model}), "x.json") == std::vector<Model>{profile.model}));
}

TEST_CASE("a profile that never settles says so") {
  ProfileRequest request = small_request("lenet5");
  request.steady = 0;  // no machine is
  const Profile profile = measured(request);
  CHECK_FALSE(profile.steady);
  const ProcessReport process;
  const Provenance provenance = provenance_of({request, process, {}, {profile}, "", ""});
  REQUIRE_FALSE(provenance.notes.empty());
  CHECK(provenance.notes[0].find("Batch 4 did not become steady") == 0);
}

TEST_CASE("layers that do not add up to the whole model make a trace unfit") {
  Model model;
  model.batch = 8;
  model.layers.resize(2);
  for (Layer& layer : model.layers) {
    layer.forward = Time{100};
    layer.backward = Time{300};
    layer.update = Time{100};
  }
  model.whole = {.samples = 10, .forward = Time{200}, .backward = Time{600}, .update = Time{200}};
  CHECK(why_unfit({model}, 0.05).empty());
  model.whole.backward = Time{550};  // 1000 against 950: +5.3 %
  CHECK(why_unfit({model}, 0.06).empty());
  const std::string why = why_unfit({model}, 0.05);
  CHECK(why.find("at batch 8") != std::string::npos);
  CHECK(why.find("+5.3 %") != std::string::npos);
  CHECK(why.find("--bound 6") != std::string::npos);
  model.whole.backward = Time{650};
  CHECK(why_unfit({model}, 0.05).empty());
  CHECK(why_unfit({model}, 0.04).find("-4.8 %") != std::string::npos);
  CHECK(why_unfit({model}, 0.04).find("a larger --batch") != std::string::npos);
}

TEST_CASE("what cannot be measured is refused in a sentence") {
  CHECK_THROWS_WITH_AS(device_called("gpu"), doctest::Contains("write cpu, cuda or cuda:1"),
                       UsageError);
  CHECK_THROWS_WITH_AS(device_called("cuda:99"), doctest::Contains("there is no cuda:99"),
                       UsageError);
  ProfileRequest request = small_request("lenet5");
  request.dtype = "tf32";
  CHECK_THROWS_WITH_AS(measured(request), doctest::Contains("fp32, fp64"), UsageError);
  CHECK(title_of(device_called("cpu")) == "cpu");
}

TEST_CASE("a CPU is a CPU, however it is spelled") {
  CHECK(device_spelled_out("cpu") == "cpu");
  CHECK(device_spelled_out("cpu:0") == "cpu");
  CHECK_THROWS_WITH_AS(device_spelled_out("meta"), doctest::Contains("only cpu, cuda"), UsageError);
}

TEST_CASE("what does not fit into memory is refused with a hint") {
  ProfileRequest request = small_request("lenet5");
  request.batch = 1 << 30;  // 4 TB of images
  CHECK_THROWS_WITH_AS(measured(request), doctest::Contains("try a smaller --batch"), UsageError);
}

TEST_CASE("an accelerator is timed, metered and profiled as a CPU is") {
  try {
    device_called("cuda");
  } catch (const UsageError& error) {
    MESSAGE("skipped: " << std::string(error.what()));
    return;
  }
  const at::Device device = device_called("cuda");
  CHECK(title_of(device).find("cuda") == std::string::npos);
  CHECK(libraries_of(device).find("CUDA ") == 0);
  const at::Tensor matrix = at::ones({4096, 4096}, at::TensorOptions(device));
  at::mm(matrix, matrix);
  synchronize(device);
  Stopwatch watch(device);
  watch.mark();
  for (int i = 0; i < 10; ++i) at::mm(matrix, matrix);
  watch.mark();
  at::mm(matrix, matrix);
  watch.mark();
  const std::vector<Time> laps = watch.laps();
  REQUIRE(laps.size() == 2);
  CHECK(laps[1] > Time{1'000'000});  // a microsecond: the product, not its launch
  CHECK(laps[0] > 5 * laps[1]);
  {
    MemoryMeter meter(device);
    const at::Tensor held = at::zeros({1 << 20}, at::TensorOptions(device));
    CHECK(meter.held() == 4 << 20);
    CHECK(meter.take_peak() == 4 << 20);
  }
  for (const std::string& name : {std::string("lenet5"), std::string("resnet20"), small_gpt}) {
    CAPTURE(name);
    ProfileRequest request = small_request(name);
    request.device = "cuda";
    request.dtype = "tf32";
    const Profile profile = measured(request);
    for (const Layer& layer : profile.model.layers) {
      CAPTURE(layer.name);
      CHECK(layer.forward > Time{});
      CHECK(layer.backward > Time{});
    }
    CHECK(profile.model.whole.backward > Time{});
  }
}

TEST_CASE("the stopwatch counts what lies between marks, and starts anew") {
  Stopwatch watch(device_called("cpu"));
  CHECK(watch.laps().empty());
  watch.mark();
  watch.mark();
  watch.mark();
  const std::vector<Time> laps = watch.laps();
  REQUIRE(laps.size() == 2);
  CHECK(laps[0] >= Time{});
  CHECK(watch.laps().empty());
}

TEST_CASE("the memory meter sees what tensors hold, and their peak") {
  const MemoryMeter meter_of_nothing(device_called("cpu"));
  MemoryMeter meter(device_called("cpu"));
  const at::Tensor held = at::zeros({1000}, at::kFloat);
  CHECK(meter.held() == 4000);
  {
    const at::Tensor passing = at::zeros({500}, at::kDouble);
    CHECK(meter.held() == 8000);
  }
  CHECK(meter.held() == 4000);
  CHECK(meter.take_peak() == 8000);
  CHECK(meter.take_peak() == 4000);
}

TEST_CASE("lanes are profiled one by one and at once") {
  ProfileRequest request = small_request("lenet5");
  const std::vector<Accelerator> lanes = accelerators_called("cpu:2");
  LaneProfiles profiles(request, lanes);
  for (int i = 0; i < 3; ++i) {
    profiles.rounds_alone();
    profiles.round_together();
  }
  const std::vector<double> rates = profiles.rates();
  REQUIRE(rates.size() == 2);
  CHECK(rates[0] > 0);
  CHECK(rates[1] == 1);
  CHECK(profiles.slowdown() >= 1);  // how much, the machine says
  CHECK(std::isfinite(profiles.slowdown()));
  const Model model = profiles.result().model;
  REQUIRE(model.layers.size() == request.shape.layers.size());
  CHECK(model.whole.samples == 3);
  for (const Layer& layer : model.layers) CHECK(layer.forward > Time{});
}

TEST_CASE("memory that changes cores is measured between cores") {
  HandoverProfile alone(std::vector<Accelerator>(1));
  alone.round();
  CHECK(alone.result().is_free());
  // Wherever the threads are: a rate of less than a byte a microsecond would be a fault.
  HandoverProfile three(std::vector<Accelerator>(3));
  CHECK(three.result().is_free());
  for (int i = 0; i < 3; ++i) three.round();
  const Handover found = three.result();
  CHECK(found.write.bytes_per_second > 1'000'000);
  CHECK(found.read.bytes_per_second > 1'000'000);
}

}  // namespace stageline::executor
