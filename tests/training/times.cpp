// When do the steps of a training end?
#include "tools/lab/training/times.hpp"
#include "sim/base/index.hpp"

#include <doctest/doctest.h>

#include <map>
#include <string>

#include "sim/base/errors.hpp"
#include "tests/specs.hpp"
#include "tools/study/hybrid.hpp"
#include "traces/traces.hpp"

namespace stageline::times_tests {
namespace {

constexpr Time operator""_ms(unsigned long long milliseconds) {
  return Time{static_cast<std::int64_t>(milliseconds) * 1'000'000'000};
}

Case uniform_case(const std::string& schedule, int devices, const std::string& layers = "4") {
  Case asked;
  asked.model =
      uniform_model("layers=" + layers + ",forward=10ms,input_grad=10ms,weight_grad=10ms");
  asked.cluster = uniform_cluster(devices, std::nullopt, std::nullopt);
  asked.spec = parse_schedules(schedule).front();
  asked.microbatches = 2 * devices;
  return asked;
}

// No two layers alike, updates that cost, and links that do.
Case uneven_case(const ScheduleSpec& spec, int devices) {
  Case asked;
  asked.model = uniform_model("layers=8,forward=10ms,input_grad=10ms,weight_grad=10ms");
  std::int64_t number = 1;
  for (Layer& layer : asked.model.layers) {
    layer.forward += Time{7 * number};
    layer.backward += Time{11 * number};
    layer.update = 1_ms + Time{number};
    layer.weights = Bytes{1000 * number};
    layer.output = Bytes{100 * number};
    ++number;
  }
  asked.cluster =
      uniform_cluster(devices, LinkSpec{Bandwidth{1'000'000}, Time{3'000'000}}, std::nullopt);
  asked.spec = spec;
  asked.microbatches = 2 * devices;
  return asked;
}

// The same read from the spans of the updates, by stage and device.
std::vector<Time> ends_in_timeline(const lab::TrainingProgram& training, std::int64_t steps) {
  const Program& program = training.program;
  std::map<std::pair<int, int>, std::vector<Time>> updates;  // of a stage on a device, in order
  for (std::size_t d = 0; d < program.devices.size(); ++d) {
    const int device = static_cast<int>(d);
    for (const Span& span : training.timeline.lane(device, LaneKind::compute)) {
      if (span.op.kind == OpKind::update) updates[{span.op.stage, device}].push_back(span.end);
    }
  }
  std::vector<Time> ends(as_size(steps));
  for (const auto& [where, times] : updates) {
    const std::size_t stride = (ends.size() + times.size() - 1) / times.size();
    for (std::size_t k = 0; k < ends.size(); ++k) {
      ends[k] = std::max(ends[k], times[k / stride]);
    }
  }
  for (std::size_t k = 1; k < ends.size(); ++k) ends[k] = std::max(ends[k], ends[k - 1]);
  return ends;
}

std::string refusal(const Case& asked, std::int64_t steps, std::int64_t pipelined) {
  try {
    lab::hybrid_step_ends(asked, steps, pipelined);
    return "";
  } catch (const UsageError& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("PipeDream on two equal devices: 120 ms for the first mini-batch, 60 for the next") {
  const Case asked = uniform_case("pipedream", 2);
  const lab::TrainingProgram training = lab::training_program(asked, 5);
  CHECK_FALSE(lab::steps_gather(training));
  CHECK(training.asked.microbatches == 5);
  CHECK(training.asked.steps == 1);
  CHECK(lab::step_ends_of(training) == std::vector<Time>{120_ms, 180_ms, 240_ms, 300_ms, 360_ms});
  // After three the pipeline is empty at 240 ms; then a whole mini-batch on one device each.
  CHECK(lab::hybrid_step_ends(asked, 5, 3) ==
        std::vector<Time>{120_ms, 180_ms, 240_ms, 360_ms, 480_ms});
  CHECK(lab::hybrid_step_ends(asked, 2, 0) == std::vector<Time>{120_ms, 240_ms});
}

TEST_CASE("a flushed step ends when its last update does, and one device does all of its work") {
  // GPipe on two equal devices, four micro-batches: (4 + 1) · (20 + 40) ms.
  const Case asked = uniform_case("gpipe", 2);
  const lab::TrainingProgram training = lab::training_program(asked, 3);
  CHECK(lab::steps_gather(training));
  CHECK(training.asked.microbatches == 4);
  CHECK(training.asked.steps == 3);
  CHECK(lab::step_ends_of(training) == std::vector<Time>{300_ms, 600_ms, 900_ms});
  CHECK(lab::hybrid_step_ends(asked, 3, 1) == std::vector<Time>{300_ms, 780_ms, 1260_ms});
}

TEST_CASE("the steps of a round of replicas end together, with its one update") {
  const Case asked = uniform_case("pipedream:replicas=2-1", 3, "6");
  const std::vector<Time> ends = lab::step_ends_of(lab::training_program(asked, 7));
  REQUIRE(ends.size() == 7);
  CHECK(ends[0] == ends[1]);
  CHECK(ends[2] == ends[3]);
  CHECK(ends[1] < ends[2]);
}

TEST_CASE("steps end with the updates of the timeline, of every schedule with all its knobs") {
  int tried = 0;
  for (const ScheduleSpec& spec : test::all_specs(4)) {
    CAPTURE(spelled(spec));
    const Case asked = uneven_case(spec, 4);
    constexpr std::int64_t steps = 8;
    try {
      const lab::TrainingProgram training = lab::training_program(asked, steps);
      const std::vector<Time> ends = lab::step_ends_of(training);
      REQUIRE(ends.size() == steps);
      CHECK(ends == ends_in_timeline(training, steps));
      ++tried;
    } catch (const UsageError&) {
      continue;  // knobs that do not suit each other, or four devices
    }
  }
  CHECK(tried > 100);
}

TEST_CASE("a training that is pipelined at first lasts as long as `stageline hybrid` says") {
  int tried = 0;
  for (const char* schedule : {"pipedream", "pipedream:replicas=2-1-1", "stale_weights",
                               "stale_weights:mapping=paired", "pipefb", "layerpipe"}) {
    CAPTURE(schedule);
    for (const double rate : {1.0, 1.7}) {
      CAPTURE(rate);
      Case asked = uneven_case(parse_schedules(schedule).front(), 4);
      for (Device& device : asked.cluster.devices) device.rate = rate;
      for (const std::int64_t pipelined : {0, 1, 9, 150}) {
        CAPTURE(pipelined);
        const auto study = hybrid_study(asked, {pipelined, 160}, 1);
        if (!study) continue;  // no rounds that repeat
        const std::vector<Time> ends = lab::hybrid_step_ends(asked, 160, pipelined);
        REQUIRE(ends.size() == 160);
        CHECK(ends.back() == study->asked.hybrid.total);
        ++tried;
      }
    }
  }
  CHECK(tried >= 40);
}

TEST_CASE("one device: every layer's F and B by micro-batch, its U once, on the fastest") {
  Case asked = uneven_case(parse_schedules("1f1b").front(), 2);
  asked.model.layers.resize(2);
  asked.model.layers[1] = Layer{};  // a stage for the second device that takes no time
  asked.model.layers[1].name = "nothing";
  asked.model.layers[0].forward = Time{10};
  asked.model.layers[0].backward = Time{20};
  asked.model.layers[0].input_grad = Time{10};
  asked.model.layers[0].weight_grad = Time{10};
  asked.model.layers[0].update = Time{1};
  CHECK(lab::one_device_step(asked, 1) == Time{31});
  CHECK(lab::one_device_step(asked, 3) == Time{91});
  asked.cluster.devices[1].rate = 2;
  CHECK(lab::one_device_step(asked, 1) == Time{16});  // 15.5
  CHECK(lab::one_device_step(asked, 3) == Time{46});  // 45.5: rounded once
}

TEST_CASE("an order that was written for a flush goes on by its own steps under other weights") {
  Case asked = uniform_case("gpipe", 2);
  asked.weights = WeightRule::stash;
  const lab::TrainingProgram training = lab::training_program(asked, 8);
  CHECK_FALSE(lab::steps_gather(training));
  CHECK(training.asked.microbatches == 4);
  CHECK(training.asked.steps == 2);
  CHECK(lab::step_ends_of(training).size() == 8);
  CHECK(refusal(asked, 9, 6).find("must be a multiple of 4, not 6") != std::string::npos);
  CHECK(lab::hybrid_step_ends(asked, 9, 4).back() ==
        lab::step_ends_of(lab::training_program(asked, 4)).back() + 5 * 120_ms);
}

TEST_CASE("what cannot be trained is refused in a sentence") {
  Case asked = uniform_case("pipedream", 2);
  CHECK(refusal(asked, 0, 0) == "a training has at least 1 step (this one has 0)");
  CHECK(refusal(asked, 5, 6) == "6 of 5 steps cannot be pipelined; give 0 to 5");
  CHECK(refusal(asked, 5, -1) == "-1 of 5 steps cannot be pipelined; give 0 to 5");
  CHECK(refusal(asked, 600'000, 600'000).find("at most 1000000 a device are simulated") !=
        std::string::npos);
  CHECK(
      refusal(asked, 400'000, 400'000) ==
      "400000 steps of 1 micro-batch through the pipeline make 1200000 ops on device gpu0, and at "
      "most 1000000 a device are simulated as one program (messages not counted); pipeline fewer "
      "steps");
  CHECK(refusal(asked, INT64_MAX, INT64_MAX)
            .find("make 9223372036854775807 ops a device on average") != std::string::npos);
  CHECK(refusal(asked, INT64_MAX, 0).find("longer than 106 days") != std::string::npos);
  for (Layer& layer : asked.model.layers) layer.forward = longest_input;
  CHECK(refusal(asked, 50, 50).find("longer than the clock's") != std::string::npos);
  asked = uniform_case("pipedream", 2);
  asked.program = lab::training_program(asked, 2).program;
  CHECK(refusal(asked, 2, 2) ==
        "a given program has the length it has and cannot be made as long as a training; name its "
        "--schedule instead");
  asked = uniform_case("gpipe", 2);
  asked.microbatches = 0;
  CHECK(refusal(asked, 2, 2) == "--microbatches must be at least 1 (it is 0)");
}

}  // namespace stageline::times_tests
