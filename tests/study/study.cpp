// What the command computes from names: fit, ranking, defaults, refusals.
#include "tools/study/study.hpp"
#include "tests/study/ranked.hpp"
#include "tests/study/uniform.hpp"

#include <doctest/doctest.h>

#include <fmt/core.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "sim/analysis/cycle_words.hpp"
#include "sim/base/errors.hpp"
#include "tests/make.hpp"
#include "tests/specs.hpp"
#include "tests/thorough.hpp"
#include "tools/inputs/inputs.hpp"
#include "tools/inputs/setting.hpp"
#include "tools/report/text/staleness.hpp"
#include "tools/study/pace/bound.hpp"
#include "traces/programs.hpp"
#include "traces/traces.hpp"

namespace stageline::study_tests {
namespace {

using test::uniform_case;

TEST_CASE("a stage that takes no time holds a micro-batch while it has one") {
  Case asked = uniform_case("pipedream", 2, 4);
  asked.model = uniform_model("layers=2,forward=1ms,input_grad=1ms,weight_grad=1ms");
  Layer& last = asked.model.layers[1];
  last.forward = last.input_grad = last.weight_grad = last.backward = Time{};
  const Outcome outcome = study(asked);
  REQUIRE(outcome.figures.stream);
  CHECK(outcome.figures.stream->live == std::vector<int>{2, 1});
}

TEST_CASE("a delay or a window that a stage has not is a dash") {
  Case asked = uniform_case("pipedream", 2, 4);
  asked.program = parse_program(
      "stageline-program 1\nmicrobatches: 2\nsteps: 1\nweights: latest\nstage 0: gpu0\nstage 1: "
      "gpu1\ndelays: - 0\nwindows: 2 -\ngpu0: 0F0 0F1 0B0 0B1\ngpu1: 1F0 1B0 1F1 1B1\n");
  const Outcome outcome = study(asked);
  const std::string report = report::stream_report(outcome);
  CHECK(report.find("updates old): - 0\n") != std::string::npos);
  CHECK(report.find("at most): 2 -\n") != std::string::npos);
  CHECK(parse_program(print(outcome.program)) == outcome.program);
}

TEST_CASE("the fit compares each device's peak with its memory") {
  // Stage 0 of 1F1B: two layers of 4 MB weights and 4 MB gradients, four stashes of 2 MB, and 1 MB
  // of output while F runs, or of its gradient while B does.
  CHECK(study(uniform_case("1f1b", 4, 8, parse_bytes("25MB"))).fit == Fit::yes);
  CHECK(study(uniform_case("1f1b", 4, 8, parse_bytes("24999999B"))).fit == Fit::no);
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
  const Ranked ranked = test::ranked(outcomes);
  CHECK(ranked.order == std::vector<std::size_t>{1, 0, 2});
  CHECK(ranked.sentence == "1f1b: 114.0 ms, 25.00 MB; same time as gpipe, 2.0× less memory");
}

TEST_CASE("what does not fit ranks last and is named when it would be faster") {
  std::vector<Outcome> outcomes{study(uniform_case("gpipe", 4, 16, parse_bytes("20MB"))),
                                study(uniform_case("naive", 4, 16, parse_bytes("20MB")))};
  REQUIRE(outcomes[0].fit == Fit::no);
  REQUIRE(outcomes[1].fit == Fit::yes);
  const Ranked ranked = test::ranked(outcomes);
  CHECK(ranked.order == std::vector<std::size_t>{1, 0});
  CHECK(ranked.sentence.find("naive: ") == 0);
  CHECK(
      ranked.sentence.find("gpipe would be 3.4× as fast but needs 49.00 MB of 20.00 MB on gpu0") !=
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

TEST_CASE("the device that does not fit is named, not the fullest") {
  Case asked = uniform_case("1f1b", 2, 8);
  asked.cluster.devices[0].memory = parse_bytes("100MB");
  asked.cluster.devices[1].memory = parse_bytes("5MB");
  std::vector<Outcome> outcomes{study(asked)};
  CHECK(outcomes[0].fit == Fit::no);
  CHECK(outcomes[0].peak_device() == 1);
  CHECK(test::ranked(outcomes).sentence.find("of 5.000 MB on gpu1") != std::string::npos);
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
  // The plan promises 6.477; the simulation finds what its links' queues take of that.
  CHECK(outcome.speedup == doctest::Approx(6.45).epsilon(0.001));
  CHECK(outcome.settled);
  // The name that is printed gives the same again, and the size of a step makes no difference.
  for (const int microbatches : {1, 2, 3, 5, 8, 20, 56}) {
    CAPTURE(microbatches);
    Case named = asked;
    named.spec = test::spec(outcome.schedule);
    named.microbatches = microbatches;
    const Outcome again = study(named);
    CHECK(again.plan.partition == outcome.plan.partition);
    CHECK(again.throughput == doctest::Approx(outcome.throughput));
    CHECK(again.bubble_fraction == doctest::Approx(outcome.bubble_fraction));
  }
}

TEST_CASE("what 64 bits cannot hold is refused in one sentence, with the numbers") {
  Case asked = uniform_case("1f1b", 4, 16);
  asked.model = uniform_model("layers=200,forward=100000s");
  CHECK_THROWS_WITH_AS(study(asked), doctest::Contains("check the unit of its times"), UsageError);
  CHECK_THROWS_WITH_AS(bound_of(asked), doctest::Contains("2e+07 s together"), UsageError);
  asked.model = uniform_model("layers=8,weights=4000000TB");
  CHECK_THROWS_WITH_AS(study(asked), doctest::Contains("check the unit of its sizes"), UsageError);
}

TEST_CASE("a rule that changes when updates happen changes the block") {
  Case asked = uniform_case("1f1b", 4, 8);
  asked.weights = WeightRule::stash;
  CHECK(study(asked).synchrony == Synchrony::asynchronous);
  Case flushed = uniform_case("pipedream", 4, 8);
  flushed.weights = WeightRule::flush;
  CHECK_THROWS_AS(study(flushed), UsageError);
  // PipeDream's order with two buffers is PipeDream-2BW, where a step is as long as the pipe.
  flushed.weights = WeightRule::double_buffer;
  const Outcome buffered = study(flushed);
  CHECK(buffered.versions_peak() == 2);
  CHECK(buffered.staleness_max() == 1);
  flushed.microbatches = 2;
  CHECK_THROWS_WITH_AS(study(flushed), doctest::Contains("the update of the step but one before"),
                       UsageError);
}

TEST_CASE("chunks of sequences make no more micro-batches of what is asked") {
  const Outcome whole = study(uniform_case("1f1b", 4, 8));
  const Outcome chunks = study(uniform_case("seq1f1b:sequence_chunks=4", 4, 8));
  CHECK(chunks.microbatches == 8);
  CHECK(chunks.program.microbatches == 32);
  const Time bubble = whole.step_time - 8 * study(uniform_case("1f1b", 1, 1)).step_time / 4;
  CHECK(chunks.step_time == whole.step_time - bubble + bubble / 4);
  Case images = uniform_case("seq1f1b", 4, 8);
  images.model.sample = "image";
  CHECK_THROWS_WITH_AS(study(images), doctest::Contains("cuts sequences"), UsageError);
}

// Stages 0 and 3 of a wave down and up two devices are on the first, 1 and 2 on the second.
TEST_CASE("the cut goes by the speed of the device that each stage is placed on") {
  Case asked = uniform_case("hanayo", 2, 4);
  asked.model = uniform_model("layers=12,forward=1ms");
  asked.cluster.devices[1].rate = 2;
  const Outcome outcome = study(asked);
  CHECK(outcome.plan.partition.stage_of == std::vector<int>{0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3});
  Case again = asked;  // a given program says where its stages are, too
  again.program = outcome.program;
  CHECK(study(again).plan.partition == outcome.plan.partition);
}

TEST_CASE("DAPPLE keeps within the memory of the devices, for time") {
  const Outcome free = study(uniform_case("dapple", 4, 8));
  CHECK(free.step_time == parse_time("66ms"));
  // Two layers of 4 MB weights and 4 MB gradients, 1 MB while an op runs, stashes of 2 MB, and from
  // either side a tensor of 1 MB that waits.
  const Outcome tight = study(uniform_case("dapple", 4, 8, parse_bytes("23MB")));
  CHECK(tight.fit == Fit::yes);
  CHECK(tight.memory.device_stash_peak == std::vector<int>{2, 2, 2, 1});
  CHECK(study(uniform_case("1f1b", 4, 8, parse_bytes("23MB"))).fit == Fit::no);
  CHECK(study(uniform_case("dapple", 4, 8, parse_bytes("18MB"))).fit == Fit::no);
}

// Four stages with stashes and messages of 5 MB. A message takes longer than a forward or a
// backward, so that several wait.
Case waiting_case(const std::string& schedule, const std::string& model, int microbatches,
                  int memory) {
  Case asked = uniform_case(schedule, 4, microbatches);
  asked.model = uniform_model("layers=4,output=5MB," + model);
  asked.cluster = uniform_cluster(4, parse_link("2GB/s,5us"), Bytes{memory * 1'000'000});
  return asked;
}

TEST_CASE("limit=memory: what fits into less memory is found with more") {
  // List scheduling has anomalies (Graham 1966), which are small.
  for (const std::string schedule : {"list", "zb_auto:limit=memory"}) {
    const double anomaly = schedule == "list" ? 1.02 : 1;
    double best = 1;
    for (int memory = 18; memory <= 60; memory += test::thorough ? 1 : 3) {
      CAPTURE(schedule);
      CAPTURE(memory);
      const Outcome outcome =
          study(waiting_case(schedule, "forward=2ms,input_grad=1ms,weight_grad=0.3ms", 8, memory));
      CHECK(outcome.fit == Fit::yes);
      const double step = to_seconds(outcome.step_time);
      CHECK(step <= best * anomaly);
      best = std::min(best, step);
    }
    CHECK(best < 0.065);
  }
}

// What messages leave of the memory is another limit for every order (four unequal layers).
TEST_CASE("limit=memory: zb_auto is never slower than cyclic") {
  std::mt19937 random(38);
  int compared = 0;
  for (int i = 0; i < (test::thorough ? 60 : 12); ++i) {
    Case asked = test::uniform_case("zb_auto:limit=memory", 4, 9);
    asked.model = uniform_model("layers=4,output=400kB,stash=600kB,weights=1MB");
    for (Layer& layer : asked.model.layers) {
      for (Time* const time : {&layer.forward, &layer.input_grad, &layer.weight_grad}) {
        *time = Time{static_cast<std::int64_t>(1 + random() % 40) * 1'000'000};
      }
      layer.backward = layer.input_grad + layer.weight_grad;
    }
    const Bytes memory{4'000'000 + static_cast<std::int64_t>(random() % 6) * 500'000};
    asked.cluster = uniform_cluster(4, parse_link("4GB/s,2us"), memory);
    Case as_round = asked;
    as_round.spec = test::spec("cyclic:limit=memory");
    CAPTURE(i);
    std::optional<Outcome> round;
    try {
      round = study(as_round);
    } catch (const UsageError&) {
      continue;  // a round has no room
    }
    CHECK(study(asked).step_time <= round->step_time);
    ++compared;
  }
  CHECK(compared > (test::thorough ? 20 : 3));
}

TEST_CASE("DAPPLE fits with more memory where it fits with less, and is no slower") {
  for (const std::string schedule : {"dapple", "dapple:policy=B"}) {
    Time before = Time::max();
    for (int memory = 18; memory <= 60; ++memory) {
      CAPTURE(schedule);
      CAPTURE(memory);
      const Outcome outcome = study(
          waiting_case(schedule, "forward=1ms,input_grad=0.5ms,weight_grad=0.3ms", 4, memory));
      CHECK(outcome.fit == Fit::yes);
      CHECK(outcome.step_time <= before);
      before = outcome.step_time;
    }
  }
}

TEST_CASE("a given program is validated before anything relies on it") {
  Case asked = uniform_case("1f1b", 1, 1);
  asked.model = uniform_model("layers=1");
  asked.program = parse_program("stageline-program 1\nmicrobatches: 1\nstage 0: a\na: 0F0 0B9\n");
  CHECK_THROWS_AS(study(asked), ProgramError);
}

TEST_CASE("a ring of replicas is as fast as its slowest hop") {
  const auto step_with = [](const char* first, const char* second, Sharing sharing) {
    SettingRequest request;
    request.trace = "uniform:layers=2,forward=1ms,weights=30MB,output=1kB";
    request.devices = {4};
    request.partition = "uniform";
    request.microbatches = 3;
    Case asked = make_case(request, read_setting(request), test::spec("pipedream:replicas=3-1"), 4);
    const std::string links = fmt::format(
        R"({{"format": "stageline-cluster 1", "name": "c",
            "devices": [{{"name": "g", "count": 4}}], "switches": ["s"],
            "links": [
                {{"from": "g0", "to": "g1", "bandwidth": "{}", "latency": "1us"}},
                {{"from": "g1", "to": "g2", "bandwidth": "{}", "latency": "1us"}},
                {{"from": "g0", "to": "g2", "bandwidth": "100GB/s", "latency": "1us"}},
                {{"from": "g*", "to": "s", "bandwidth": "100GB/s", "latency": "5us"}}]}})",
        first, second);
    asked.cluster = read_cluster(links, "c.json");
    asked.sharing = sharing;
    return study(asked).step_time;
  };
  for (const Sharing sharing : all_sharings) {
    const Time slow = step_with("1GB/s", "1GB/s", sharing);
    CHECK(slow > step_with("100GB/s", "100GB/s", sharing) * 2);
    CHECK(step_with("100GB/s", "1GB/s", sharing) == slow);
  }
}

}  // namespace
}  // namespace stageline::study_tests
