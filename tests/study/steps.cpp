// How long is a step, how many make a period, and what bounds them?
#include "tests/study/ranked.hpp"
#include "tests/study/uniform.hpp"
#include "tools/study/study.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>

#include "sim/analysis/cycle_words.hpp"
#include "sim/base/errors.hpp"
#include "tests/make.hpp"
#include "tests/specs.hpp"
#include "tests/thorough.hpp"
#include "tools/inputs/inputs.hpp"
#include "tools/report/text/staleness.hpp"
#include "tools/study/pace/bound.hpp"
#include "traces/programs.hpp"
#include "traces/traces.hpp"

namespace stageline::steps_tests {
namespace {

using test::uniform_case;

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
      const bool has_path = std::any_of(bound->bounds.begin(), bound->bounds.end(),
                                        [](const LowerBound& one) { return one.name == "path"; });
      CHECK(has_path == (outcome.synchrony == Synchrony::synchronous));
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
  CHECK(bound_of(given)->step == bound_of(uniform_case("1f1b", 2, 4))->step);  // its step repeats
  Case stream = uniform_case("pipedream", 2, 4);
  stream.program = study(stream).program;
  CHECK_THROWS_WITH_AS(bound_of(stream), doctest::Contains("--schedule"), UsageError);
}

TEST_CASE("with degrees the bound is of the pipeline that stands for all replicas") {
  const Cluster cluster =
      uniform_cluster(8, LinkSpec{parse_bandwidth("1GB/s"), parse_time("5us")}, std::nullopt);
  for (const std::string schedule : {"gpipe", "1f1b", "zb_h1"}) {
    for (const int tensor : {1, 2}) {
      for (const int data : {1, 2}) {
        CAPTURE(schedule);
        CAPTURE(tensor);
        CAPTURE(data);
        Degrees degrees;
        degrees.tensor = tensor;
        degrees.data = data;
        degrees.pipeline = 8 / tensor / data;
        Case asked = uniform_case(schedule, degrees.pipeline, 8);
        asked.model = uniform_model("layers=8,weights=1MB,output=1MB");
        for (Layer& layer : asked.model.layers) {
          layer.gradients = Bytes{1'000'000};
          layer.collectives = {
              {CollectiveKind::all_reduce, Dimension::tensor, Bytes{1'000'000}, 2, 2, 0}};
        }
        asked.ranked = std::make_shared<RankedCluster>(cluster, degrees, "best", "none", false);
        asked.cluster = asked.ranked->ranks();
        const std::optional<Bound> bound = bound_of(asked);
        REQUIRE(bound);
        CHECK(bound->step == study(asked).step_time);
        for (const LowerBound& one : bound->bounds) {
          CAPTURE(one.name);
          CHECK(one.step <= bound->step);
        }
      }
    }
  }
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

TEST_CASE("two buffers are shown over enough steps to be seen") {
  const Outcome outcome = study(uniform_case("pipedream_2bw", 4, 64));
  CHECK(outcome.versions_peak() == 2);
  CHECK(outcome.staleness_max() == 1);
  CHECK(outcome.step_time == 64 * (study(uniform_case("1f1b", 1, 1)).step_time / 4));
}

// The step of a program that is given in place of the schedule which it came from.
Time given_step(const Case& asked, const Program& program) {
  Case given = asked;
  given.program = program;
  given.microbatches = 1;  // the program says how many
  return study(given).step_time;
}

TEST_CASE("a flushed step whose replicas have unlike shares is not repeated") {
  Case asked = uniform_case("gpipe", 3, 1);
  asked.cluster = uniform_cluster(3, parse_link("1GB/s,1us"), std::nullopt);
  asked.program = parse_program(
      "stageline-program 1\nmicrobatches: 3\nsteps: 1\nweights: flush\nstage 0: gpu0+gpu1\n"
      "stage 1: gpu2\ngpu0: 0F0 0F2 0B0 0B2 0REDUCE_GRAD0 0U0\n"
      "gpu1: 0F1 0B1 0REDUCE_GRAD0.1 0U0.1\ngpu2: 1F0 1F1 1F2 1B0 1B1 1B2 1U0\n");
  const Outcome outcome = study(asked);
  CHECK(outcome.program.steps == 1);
  CHECK(outcome.step_time == outcome.metrics.makespan);
}

TEST_CASE("a flushed program of one step has the pace of its schedule, as text and as CSV") {
  std::mt19937 random(9);
  int texts = 0;
  int tables = 0;
  for (const int devices : {2, 4}) {
    for (const ScheduleSpec& spec : test::all_specs(devices)) {
      if (!spec.knobs.empty() && !test::chosen(random, 4)) continue;
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
  CHECK(texts > (test::thorough ? 60 : 15));
  CHECK(tables > (test::thorough ? 60 : 15));
}

}  // namespace
}  // namespace stageline::steps_tests
