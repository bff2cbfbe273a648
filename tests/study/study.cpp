// What the command computes from names: speed-up, fit, ranking, defaults.
#include "tools/study/study.hpp"
#include "tests/study/ranked.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "sim/analysis/cycle_words.hpp"
#include "sim/errors.hpp"
#include "tests/make.hpp"
#include "tests/specs.hpp"
#include "tools/inputs/inputs.hpp"
#include "tools/report/text/staleness.hpp"
#include "tools/study/bound.hpp"
#include "tools/study/staleness_facts.hpp"
#include "traces/programs.hpp"
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

TEST_CASE("a stage that takes no time holds a micro-batch while it has one") {
  Case asked = uniform_case("pipedream", 2, 4);
  asked.model = uniform_model("layers=2,forward=1ms,input_grad=1ms,weight_grad=1ms");
  Layer& last = asked.model.layers[1];
  last.forward = last.input_grad = last.weight_grad = last.backward = Time{};
  const StreamFacts facts = stream_facts(study(asked));
  CHECK(facts.live == std::vector<int>{2, 1});
}

TEST_CASE("a delay or a window that a stage has not is a dash") {
  Case asked = uniform_case("pipedream", 2, 4);
  asked.program = parse_program(
      "stageline-program 1\nmicrobatches: 2\nsteps: 1\nweights: latest\nstage 0: gpu0\nstage 1: "
      "gpu1\ndelays: - 0\nwindows: 2 -\ngpu0: 0F0 0F1 0B0 0B1\ngpu1: 1F0 1B0 1F1 1B1\n");
  const Outcome outcome = study(asked);
  const std::string report = stream_report(outcome);
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
  CHECK(ranked.sentence == "1f1b: same time as gpipe, 2.0× less memory");
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

TEST_CASE("the derived step is the one that a long run shows, and no bound is above it") {
  const LinkSpec link{parse_bandwidth("2GB/s"), parse_time("300us")};
  for (const std::string schedule :
       {"naive", "gpipe", "1f1b", "pipedream", "pipedream:replicas=3-1", "pipedream:replicas=2-1-1",
        "pipedream:replicas=1-2-1", "pipedream:vertical_sync=yes"}) {
    for (const bool linked : {false, true}) {
      CAPTURE(schedule);
      CAPTURE(linked);
      Case asked = uniform_case(schedule, 4, 12);
      asked.cluster = uniform_cluster(4, linked ? std::optional(link) : std::nullopt, std::nullopt);
      const std::optional<Bound> bound = bound_of(asked);
      REQUIRE(bound);
      const Outcome outcome = study(asked);
      REQUIRE(outcome.settled);
      CHECK(bound->step == outcome.step_time);
      CHECK(bound->bounds.front().name == "load");
      for (const LowerBound& one : bound->bounds) {
        CAPTURE(one.name);
        CHECK(one.step > Time{});
        CHECK(one.step <= bound->step);
      }
      CHECK(bound->distance() >= 0);
      CHECK_FALSE(bound->period.cycle.empty());
      CHECK((bound->bounds.back().name == "path") == (outcome.synchrony == Synchrony::synchronous));
      REQUIRE(outcome.period);
      CHECK(outcome.period->time == bound->period.time);
      CHECK(outcome.period->rounds == bound->period.rounds);
      // The long run, whose rhythm knows nothing of the cycle.
      Case longer = asked;
      longer.microbatches = 420;
      longer.steps = 1;
      if (outcome.synchrony == Synchrony::asynchronous) {
        const Time one = study(longer).metrics.makespan;
        longer.steps = 2;
        const Time two = study(longer).metrics.makespan;
        CHECK(to_seconds(two - one) / 420 == doctest::Approx(to_seconds(bound->step) / 12));
      } else {
        longer = asked;
        longer.steps = 3;
        const Time three = study(longer).metrics.makespan;
        longer.steps = 5;
        CHECK(study(longer).metrics.makespan - three == 2 * bound->step);
      }
    }
  }
  Case given = uniform_case("1f1b", 2, 4);
  given.program = study(given).program;
  CHECK_THROWS_WITH_AS(bound_of(given), doctest::Contains("--schedule"), UsageError);
}

TEST_CASE("a link that carries more than the devices compute is a bound of its own") {
  Case asked = uniform_case("pipedream", 4, 12);
  asked.model = uniform_model("layers=4,output=8MB");
  asked.cluster =
      uniform_cluster(4, LinkSpec{parse_bandwidth("1GB/s"), parse_time("1us")}, std::nullopt);
  const std::optional<Bound> bound = bound_of(asked);
  REQUIRE(bound);
  REQUIRE(bound->bounds.size() == 2);
  // 3 ms of work and two messages of 8 ms in each port, a mini-batch.
  CHECK(bound->bounds[0].step == 12 * parse_time("3ms"));
  CHECK(bound->bounds[1].step == 12 * parse_time("16ms"));
  CHECK(bound->largest().name == bound->bounds[1].name);
  CHECK(bound->distance() == doctest::Approx(to_seconds(bound->step) / (12 * 0.016) - 1));
}

TEST_CASE("the cycle in words names devices, messages, and what is waited for") {
  const auto turn = [](const char* op, int device, LaneKind lane, std::uint32_t rounds,
                       Wait wait = Wait::need) {
    return Turn{*parse_op(op), {device, lane}, wait, rounds, Time{1}};
  };
  const std::vector<std::string> devices{"gpu0", "gpu1", "gpu2"};
  const LaneKind compute = LaneKind::compute;
  const Period one{Time{3},
                   1,
                   {turn("2B7", 2, compute, 0), turn("2U7", 2, compute, 1, Wait::lane),
                    turn("2F8", 2, compute, 0, Wait::lane)}};
  CHECK(in_words(one, 1, devices) == "gpu2: 2F → 2B → 2U → (next) 2F");
  const Period window{Time{3}, 1, {turn("2F8", 2, compute, 0), turn("2U8", 2, compute, 1)}};
  CHECK(in_words(window, 1, devices) ==
        "gpu2: 2F → weights read → 2U → weight version → (next) 2F");
  const Period two{Time{9},
                   2,
                   {turn("0F4", 0, compute, 0), turn("0SEND_F4", 0, LaneKind::send, 0),
                    turn("1F4", 1, compute, 0), turn("1B4", 1, compute, 0),
                    turn("1SEND_B4", 1, LaneKind::send, 0), turn("0B4", 0, compute, 2)}};
  CHECK(in_words(two, 3, devices) ==
        "gpu0: 0F(1) → activation of 0(1) → gpu1: 1F(1) → 1B(1) → gradient of 1(1) → gpu0: 0B(1) → "
        "room for a stash → (2 rounds later) 0F(1)");
  const Period link{Time{4}, 1, {turn("0SEND_F4", 0, LaneKind::send, 1, Wait::resource)}};
  CHECK(in_words(link, 1, devices) ==
        "gpu0 send lane: activation of 0 → turn on the link → (next) activation of 0");
  Period lengthy{Time{40}, 1, {}};
  for (int i = 0; i < 40; ++i) lengthy.cycle.push_back(turn("1F3", 1, compute, i == 39 ? 1 : 0));
  CHECK(in_words(lengthy, 1, devices).find("… 16 more … → gpu1: 1F") != std::string::npos);
  CHECK(in_words({}, 1, devices).find("nothing") == 0);
}

TEST_CASE("an order that a flush repeats by steps has a derived period without one, too") {
  Case asked = uniform_case("1f1b", 4, 20);
  asked.weights = WeightRule::stash;
  const Outcome outcome = study(asked);
  CHECK(outcome.settled);
  REQUIRE(outcome.period);
  asked.steps = 4;
  const Time four = study(asked).metrics.makespan;
  asked.steps = 6;
  CHECK(study(asked).metrics.makespan - four == 2 * outcome.step_time);
}

TEST_CASE("throughput and bubble of a stream do not depend on what is called a step") {
  const LinkSpec link{parse_bandwidth("2GB/s"), parse_time("300us")};
  for (const std::string schedule : {"pipedream", "pipedream:replicas=3-1",
                                     "pipedream:replicas=2-1-1", "pipedream:replicas=1-2-1"}) {
    for (const bool linked : {false, true}) {
      CAPTURE(schedule);
      Case asked = uniform_case(schedule, 4, 64);
      asked.cluster = uniform_cluster(4, linked ? std::optional(link) : std::nullopt, std::nullopt);
      const Outcome whole = study(asked);
      CHECK(whole.bubble_fraction >= 0);
      CHECK(whole.bubble_fraction < 1);
      CHECK(whole.exposed_communication >= 0);
      // The long run, by hand: growth over many mini-batches.
      Case longer = asked;
      longer.microbatches = 840;
      longer.steps = 1;
      const Time one = study(longer).metrics.makespan;
      longer.steps = 2;
      const Time two = study(longer).metrics.makespan;
      CHECK(to_seconds(two - one) / 840 == doctest::Approx(to_seconds(whole.step_time) / 64));
      for (const int microbatches : {1, 2, 3, 7}) {
        asked.microbatches = microbatches;
        CHECK(study(asked).throughput == doctest::Approx(whole.throughput));
      }
    }
  }
}

TEST_CASE("exposed communication is what free links would save") {
  Case asked = uniform_case("1f1b", 4, 16);
  asked.model = uniform_model("layers=4");
  asked.cluster =
      uniform_cluster(4, LinkSpec{parse_bandwidth("1GB/s"), parse_time("500us")}, std::nullopt);
  const Outcome outcome = study(asked);
  CHECK(outcome.step_time == parse_time("99ms"));
  CHECK(outcome.exposed_communication == doctest::Approx(42.0 / 99));
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

TEST_CASE("two buffers are shown over enough steps to be seen") {
  const Outcome outcome = study(uniform_case("pipedream_2bw", 4, 64));
  CHECK(outcome.versions_peak() == 2);
  CHECK(outcome.staleness_max() == 1);
  CHECK(outcome.step_time == 64 * (study(uniform_case("1f1b", 1, 1)).step_time / 4));
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
  // Two layers of 4 MB weights and 4 MB gradients, 1 MB while an op runs, and stashes of 2 MB.
  const Outcome tight = study(uniform_case("dapple", 4, 8, parse_bytes("21MB")));
  CHECK(tight.fit == Fit::yes);
  CHECK(tight.memory.device_stash_peak == std::vector<int>{2, 2, 2, 1});
  CHECK(study(uniform_case("1f1b", 4, 8, parse_bytes("21MB"))).fit == Fit::no);
  CHECK(study(uniform_case("dapple", 4, 8, parse_bytes("18MB"))).fit == Fit::no);
}

TEST_CASE("a given program is validated before anything relies on it") {
  Case asked = uniform_case("1f1b", 1, 1);
  asked.model = uniform_model("layers=1");
  asked.program = parse_program("stageline-program 1\nmicrobatches: 1\nstage 0: a\na: 0F0 0B9\n");
  CHECK_THROWS_AS(study(asked), ProgramError);
}

// The step of a program that is given in place of the schedule which it came from.
Time given_step(const Case& asked, const Program& program) {
  Case given = asked;
  given.program = program;
  given.microbatches = 1;  // the program says how many
  return study(given).step_time;
}

TEST_CASE("a flushed program of one step has the pace of its schedule, as text and as CSV") {
  int texts = 0;
  int tables = 0;
  for (const int devices : {2, 4}) {
    for (const ScheduleSpec& spec : test::all_specs(devices)) {
      for (const bool links : {false, true}) {
        Case asked = uniform_case("gpipe", devices, 8);
        asked.model = uniform_model("layers=24,update=200us,output=1MB");
        asked.model.layers[5].forward *= 2;
        if (links) {
          asked.cluster = uniform_cluster(devices, parse_link("4GB/s,20us"), std::nullopt);
        }
        asked.spec = spec;
        std::optional<Outcome> found;
        try {
          found = study(asked);
        } catch (const UsageError&) {
          continue;  // so many devices, layers or micro-batches do not suit the schedule
        }
        if (found->program.settings.weights != WeightRule::flush || found->program.steps != 1)
          continue;
        CAPTURE(spelled(spec));
        CAPTURE(devices);
        CAPTURE(links);
        CHECK(given_step(asked, parse_program(print(found->program))) == found->step_time);
        ++texts;
        for (const PytorchForm form : {PytorchForm::compute_only, PytorchForm::compute_comms}) {
          std::string csv;
          try {
            csv = write_pytorch_schedule(found->program, form);
          } catch (const UsageError&) {
            continue;  // what the CSV cannot say
          }
          const Program read = read_pytorch_schedule(csv).program;
          CHECK(given_step(asked, read) == found->step_time);
          ++tables;
        }
      }
    }
  }
  CHECK(texts > 60);
  CHECK(tables > 60);
}

}  // namespace
}  // namespace stageline
