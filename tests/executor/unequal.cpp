// Do micro-batches of unequal lengths, and slices of sequences, train as plain training of the same
// tokens does?
#include "tools/executor/run/execute.hpp"

#include <doctest/doctest.h>  // behind LibTorch, which has a CHECK of its own

#include <cmath>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "schedulers/scheduler.hpp"
#include "sim/base/errors.hpp"
#include "tests/executor/trials.hpp"
#include "tests/specs.hpp"
#include "tools/executor/programs/validation.hpp"
#include "tools/executor/run/micro_batches.hpp"
#include "tools/inputs/inputs.hpp"
#include "tools/lab/evidence/judge.hpp"

namespace stageline::executor {
namespace {

using trials::anywhere;
using trials::case_of;
using trials::check_against_training;
using trials::Trial;
using trials::trial;

// Of twelve places, so that slices of many lengths fit.
const std::string gpt = "gpt,layers=3,hidden=16,heads=2,seq=12,vocab=11";

Trial trial_of(const std::string& schedule, int devices, std::vector<std::int64_t> lengths) {
  Trial tried =
      trial(gpt, case_of(gpt, parse_schedules(schedule).at(0), devices, 4, 2, std::nullopt));
  tried.job.training.lengths = std::move(lengths);
  return tried;
}

void refused(const Trial& tried, const std::string& words) {
  CHECK_THROWS_WITH_AS(
      Executor(tried.job, tried.outcome.costs, anywhere(tried.job.program.devices.size())),
      doctest::Contains(words.c_str()), UsageError);
}

}  // namespace

TEST_CASE("micro-batches of unequal lengths train as the same tokens do, under every schedule") {
  std::set<std::string> names;
  int tried = 0;
  for (const ScheduleSpec& spec : test::all_specs(2)) {
    const std::string name = spelled(spec);
    CAPTURE(name);
    try {
      Trial one = trial(trials::gpt, case_of(trials::gpt, spec, 2, 4, 2, std::nullopt));
      if (one.job.program.settings.sequence_chunks > 1) continue;  // their lengths are slices'
      one.job.training.lengths = {4, 1, 3, 2};
      check_against_training(one);
      names.insert(std::string(spec.scheduler->name));
      ++tried;
    } catch (const UsageError&) {  // it does not go on two devices
    }
  }
  MESSAGE(tried << " programs");
  CHECK(names.size() > 25);
}

TEST_CASE("what a micro-batch learns from depends on its length") {
  const Trial equal = trial_of("1f1b", 2, {12, 12, 12, 12});
  Trial unequal = trial_of("1f1b", 2, {12, 12, 12, 6});
  CHECK(tokens_of(unequal.job, 3).count == 6);
  CHECK(tokens_of(unequal.job, 7).count == 6);
  CHECK(loss_weight_of(unequal.job, 3) == doctest::Approx(6.0 / 42));
  CHECK(loss_weight_of(equal.job, 3) == 0.25);
  Executor one(equal.job, equal.outcome.costs, anywhere(2));
  Executor other(unequal.job, unequal.outcome.costs, anywhere(2));
  const std::vector<double> whole = one.run().losses;
  const std::vector<double> shorter = other.run().losses;
  CHECK(whole.at(0) == shorter.at(0));
  CHECK(whole.at(3) != shorter.at(3));
}

TEST_CASE("as many tokens as the shape says, by name, give the same bits") {
  const Trial plain = trial_of("zb_h1", 2, {});
  const Trial named = trial_of("zb_h1", 2, {12});
  Executor one(plain.job, plain.outcome.costs, anywhere(2));
  Executor other(named.job, named.outcome.costs, anywhere(2));
  CHECK((one.run().losses == other.run().losses));
}

TEST_CASE("slices of sequences train as whole ones do: keys, values and their gradients") {
  for (const char* const schedule :
       {"seq1f1b:sequence_chunks=1", "seq1f1b:sequence_chunks=2", "seq1f1b:sequence_chunks=3",
        "seq1f1b:sequence_chunks=4", "seq1f1b:sequence_chunks=12", "svpp:sequence_chunks=3"}) {
    for (int devices = 1; devices <= 3; ++devices) {
      CAPTURE(schedule);
      CAPTURE(devices);
      check_against_training(trial_of(schedule, devices, {}));
    }
  }
  check_against_training(trial_of("seq1f1b:sequence_chunks=3", 2, {7, 1, 4}));
  check_against_training(trial_of("svpp:sequence_chunks=4", 2, {1, 2, 3, 6}));
}

TEST_CASE("what is profiled of each length and slice says what stages keep, to the byte") {
  if (std::thread::hardware_concurrency() < 2) {
    MESSAGE("skipped: there is one core");
    return;
  }
  ValidationPlan plan;
  plan.models = {{"gpt,layers=4,hidden=32,heads=2,seq=12,vocab=50", {2}}};
  for (const char* const schedule :
       {"1f1b", "zb_h1", "seq1f1b:sequence_chunks=3", "svpp:sequence_chunks=2"}) {
    plan.variants.push_back({schedule, "", "balanced", true, ""});
  }
  plan.microbatches = 4;
  plan.lengths = {12, 3, 7, 1};
  plan.rounds = 1;
  plan.counted_runs = 1;
  plan.timelines = 0;
  const lab::Evidence evidence = run_validation(
      plan, [](const ValidationProgress&) {}, nullptr);
  // Whole, four lengths, three slices and two.
  CHECK(evidence.traces.size() == 1 + 4 + 3 + 2);
  REQUIRE(evidence.cases.size() == 4);
  CHECK((evidence.cases[0].lengths == plan.lengths));
  CHECK((evidence.cases[2].lengths == std::vector<std::int64_t>{4, 4, 4}));
  for (const lab::CaseJudgement& judged : lab::judge(evidence).cases) {
    REQUIRE(judged.counted_stash_error);
    CHECK(*judged.counted_stash_error == Bytes{});
    CHECK(judged.stash_error == Bytes{});
    REQUIRE(judged.counted_peak_error);
    CHECK(std::abs(*judged.counted_peak_error) < 0.1);
  }
  const lab::Evidence again = lab::read_evidence(lab::write_evidence(evidence), "unequal");
  CHECK(again == evidence);
}

TEST_CASE("lengths and slices that the model does not have are refused") {
  refused(trial_of("1f1b", 2, {12, 12, 13, 4}), "13 tokens is longer than the 12 places");
  refused(trial_of("1f1b", 2, {12, 12, 4}), "3 lengths do not divide a step of 4 micro-batches");
  refused(trial_of("seq1f1b:sequence_chunks=3", 2, {4, 4, 3}), "do not make up a sequence of 12");
  Trial images = trial(trials::resnet, case_of(trials::resnet, parse_schedules("1f1b").at(0), 2, 4,
                                               1, std::nullopt));
  images.job.training.lengths = {4};
  refused(images, "is no sequence, which has a length");
  Trial odd = trial_of("seq1f1b:sequence_chunks=2", 2, {});
  odd.job.training.shape = parse_shape("gpt,layers=3,hidden=16,heads=2,seq=13,vocab=11");
  refused(odd, "2 equal slices do not divide a sequence of 13 tokens");
  Trial costly = trial_of("1f1b", 2, {});
  costly.job.program.settings.costs = {1, 2, 1, 2};
  refused(costly, "do not say how many tokens");
}

}  // namespace stageline::executor
