// What the command computes from names: speed-up, fit, ranking, defaults.
#include "tools/study.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "tests/make.hpp"
#include "traces/traces.hpp"

namespace stageline {
namespace {

Case uniform_case(const std::string& schedule, int devices, int microbatches,
                  std::optional<Bytes> memory = std::nullopt) {
  Case asked;
  asked.model = uniform_model("layers=8,forward=1ms,input_grad=1ms,weight_grad=1ms");
  asked.cluster = uniform_cluster(devices, std::nullopt, memory);
  asked.spec = test::spec(schedule);
  asked.microbatches = microbatches;
  return asked;
}

TEST_CASE("a step of 1F1B on 4 devices with 8 micro-batches is (m+p-1)(F+B)") {
  const Outcome outcome = study(uniform_case("1f1b", 4, 8));
  CHECK(outcome.step_time == parse_time("66ms"));
  CHECK(outcome.metrics.makespan == parse_time("66ms"));
  CHECK(outcome.speedup == doctest::Approx(8.0 * 24 / 66));
  CHECK(outcome.bubble_fraction == doctest::Approx(3.0 / 11));
  CHECK(outcome.throughput == doctest::Approx(8 / 0.066));
  CHECK(outcome.fit == Fit::unknown);
}

TEST_CASE("PipeDream's step is m periods of its slowest stage, fill and drain left out") {
  for (const int microbatches : {1, 2, 5, 16}) {
    CAPTURE(microbatches);
    const Outcome outcome = study(uniform_case("pipedream", 4, microbatches));
    CHECK(outcome.step_time == microbatches * parse_time("6ms"));
    CHECK(outcome.speedup == doctest::Approx(4));
    CHECK(outcome.versions_peak() == 4);
    CHECK(outcome.staleness_max() == 3);
  }
}

TEST_CASE("the fit compares each device's peak with its memory") {
  // Stage 0 of 1F1B: two layers of 4 MB weights and 4 MB gradients, four stashes of 2 MB.
  CHECK(study(uniform_case("1f1b", 4, 8, parse_bytes("24MB"))).fit == Fit::yes);
  CHECK(study(uniform_case("1f1b", 4, 8, parse_bytes("23999999B"))).fit == Fit::no);
}

TEST_CASE("the pipedream partitioner fills in the replicas of the pipedream schedule") {
  Case asked = uniform_case("pipedream", 4, 16);
  // One heavy layer before seven light ones: replicate it.
  asked.model.layers[0].backward = asked.model.layers[0].input_grad = parse_time("20ms");
  asked.partition = "pipedream:transfers=no";
  const Outcome outcome = study(asked);
  CHECK(outcome.program.placement.stage[0].replicas.size() > 1);
  CHECK(outcome.schedule.find("replicas=") != std::string::npos);
  int devices = 0;
  for (const StagePlace& place : outcome.program.placement.stage) {
    devices += static_cast<int>(place.replicas.size());
  }
  CHECK(devices == 4);
}

TEST_CASE("equal times rank by memory, and the sentence says so") {
  std::vector<Outcome> outcomes{study(uniform_case("gpipe", 4, 16)),
                                study(uniform_case("1f1b", 4, 16)),
                                study(uniform_case("naive", 4, 16))};
  const Ranked ranked = rank(outcomes, {0, 1, 2});
  CHECK(ranked.order == std::vector<std::size_t>{1, 0, 2});
  CHECK(ranked.sentence == "1f1b: same time as gpipe, 2.0× less memory");
}

TEST_CASE("what does not fit ranks last and is named when it would be faster") {
  std::vector<Outcome> outcomes{study(uniform_case("gpipe", 4, 16, parse_bytes("20MB"))),
                                study(uniform_case("naive", 4, 16, parse_bytes("20MB")))};
  REQUIRE(outcomes[0].fit == Fit::no);
  REQUIRE(outcomes[1].fit == Fit::yes);
  const Ranked ranked = rank(outcomes, {0, 1});
  CHECK(ranked.order == std::vector<std::size_t>{1, 0});
  CHECK(ranked.sentence.find("naive: ") == 0);
  CHECK(ranked.sentence.find("gpipe would be 236.8 % faster but needs 48.00 MB") !=
        std::string::npos);
}

TEST_CASE("a given program gives the same outcome as the schedule that wrote it") {
  const Case asked = uniform_case("gpipe:recompute=always", 4, 8);
  const Outcome by_name = study(asked);
  Case given = asked;
  given.program = parse_program(print(by_name.program));
  const Outcome by_text = study(given);
  CHECK(by_text.timeline == by_name.timeline);
  CHECK(by_text.step_time == by_name.step_time);
}

TEST_CASE("--weights overrides the rule of a schedule") {
  Case asked = uniform_case("pipedream", 4, 16);
  asked.weights = WeightRule::latest;
  const Outcome outcome = study(asked);
  CHECK(outcome.versions_peak() == 1);
  CHECK_FALSE(outcome.versions[0].consistent);
}

TEST_CASE("PipeDream's own profiles: totals, plans and speed-ups of the published runs") {
  const char* const data = std::getenv("STAGELINE_DATA");
  const std::string file = std::string(data == nullptr ? "" : data) + "/pipedream/vgg16.graph.txt";
  std::ifstream in(file);
  if (!in) {
    MESSAGE("skipped: no file " << file);
    return;
  }
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  Case asked = uniform_case("pipedream", 8, 32);
  asked.model = read_pipedream_profile(text, file, 128);
  CHECK(to_seconds(forward_backward(asked.model)) == doctest::Approx(0.672535));
  asked.cluster = uniform_cluster(8, LinkSpec{parse_bandwidth("1GB/s"), Time{}}, std::nullopt);
  asked.partition = "pipedream";
  const Outcome outcome = study(asked);
  CHECK(outcome.schedule == "pipedream:replicas=7-1");
  // The plan promises 6.477: the simulation has to send and reduce besides.
  CHECK(outcome.speedup > 1);
  CHECK(outcome.speedup < 6.477 * 1.0001);
}

}  // namespace
}  // namespace stageline
