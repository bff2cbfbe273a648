// Do the parts that take a step apart start from the step that simulate gives?
#include <doctest/doctest.h>

#include <cmath>

#include "tests/make.hpp"
#include "tools/inputs/setting.hpp"
#include "tools/study/study.hpp"
#include "tools/study/whatif/scenario_runs.hpp"
#include "tools/study/whatif/sensitivity.hpp"
#include "tools/study/whatif/waterfall.hpp"

namespace stageline::agreement_tests {
namespace {

struct Question {
  const char* trace;
  const char* schedule;
  const char* link;
  int devices;
  int replicas;  // data-parallel
  int microbatches;
  const char* slow;
};

// Reductions share their links with messages of the next step: the last step of a run is shorter.
constexpr Question with_shared_links[] = {
    {"resnet50-h100", "1f1b:recompute=always", "2.5GB/s,50us", 4, 2, 1, ""},
    {"resnet50-h100", "1f1b", "5GB/s,10us", 4, 2, 2, ""},
    {"resnet50-h100", "zb_h1", "5GB/s,10us", 4, 2, 2, ""},
    {"model:resnet18@rtx4090,batch=8", "gems", "1GB/s", 4, 1, 3, ""},
    {"uniform:layers=16", "1f1b", "1GB/s", 6, 2, 12, "gpu1:2"},
};

Case case_of(const Question& one) {
  SettingRequest request;
  request.trace = one.trace;
  request.cluster.link = parse_link(one.link);
  request.devices = {one.devices};
  request.microbatches = one.microbatches;
  if (one.replicas > 1) request.degrees.data = one.replicas;
  if (*one.slow != '\0') request.slow = parse_slow(one.slow, "--slow");
  return make_case(request, read_setting(request), test::spec(one.schedule), one.devices);
}

double off(Time step, Time from) { return std::abs(to_seconds(step) / to_seconds(from) - 1); }

}  // namespace

TEST_CASE("--why, sensitivity and whatif start from the step that simulate gives") {
  for (const Question& one : with_shared_links) {
    CAPTURE(one.trace);
    CAPTURE(one.schedule);
    const Case asked = case_of(one);
    const Outcome outcome = study(asked);
    CHECK(outcome.settled);
    // As long as each of many steps takes.
    Case longer = asked;
    longer.steps = 8;
    const Time eight = study(longer).metrics.makespan;
    longer.steps = 4;
    const Time four = study(longer).metrics.makespan;
    CHECK(off((eight - four) / 4, outcome.step_time) < 1e-6);

    CHECK(off(waterfall_of(asked, outcome, CauseOrder::fixed).step, outcome.step_time) < 1e-6);
    CHECK(off(sensitivity_of(asked, outcome, 1).step, outcome.step_time) < 1e-6);
    ScenarioRequest scenarios;
    scenarios.perturbation.jitter = parse_jitter("0%", "--jitter");
    scenarios.scenarios = 16;
    const ScenarioSteps steps = scenario_steps(asked, outcome, scenarios);
    CHECK(off(steps.nominal, outcome.step_time) < 1e-6);
    CHECK(off(steps.step.front(), outcome.step_time) < 1e-6);
  }
}

TEST_CASE("the bubble is what the devices do not work, also where their updates differ") {
  for (const char* const schedule : {"chimera", "gpipe", "1f1b", "dualpipe"}) {
    for (const char* const slow : {"", "gpu0:3"}) {
      CAPTURE(schedule);
      CAPTURE(slow);
      const Case asked =
          case_of({"uniform:layers=8,forward=1ms,update=20ms", schedule, "100GB/s", 4, 1, 8, slow});
      const Outcome outcome = study(asked);
      Time busy{};
      for (const DeviceMetrics& device : outcome.metrics.device) busy += device.busy;
      const double work = to_seconds(busy / outcome.program.steps);
      CHECK(outcome.bubble_fraction ==
            doctest::Approx(1 - work / (4 * to_seconds(outcome.step_time))));
    }
  }
}

TEST_CASE("messages that ask for a link at once are served as step after step serves them") {
  constexpr Question two_ways[] = {
      {"uniform:layers=8,forward=2ms,input_grad=4ms,weight_grad=3ms,weights=5MB,output=10MB",
       "chimera", "1GB/s,10us", 4, 1, 12, ""},
      {"uniform:layers=6,forward=1ms,input_grad=4ms,weight_grad=3ms,weights=1MB,output=10MB",
       "dualpipe", "20GB/s,100us", 4, 1, 12, ""},
  };
  for (const Question& one : two_ways) {
    CAPTURE(one.schedule);
    Case asked = case_of(one);
    const Time step = study(asked).step_time;
    asked.steps = 12;
    const Time twelve = study(asked).metrics.makespan;
    asked.steps = 8;
    CHECK((twelve - study(asked).metrics.makespan) / 4 == step);
  }
}

TEST_CASE("replicas that are alike take as long all together as the one that stands for them") {
  for (const char* const schedule : {"gpipe", "1f1b", "zb_h1"}) {
    for (const Zero zero : all_zeros) {
      for (const int microbatches : {2, 4, 7}) {
        CAPTURE(schedule);
        CAPTURE(name(zero));
        CAPTURE(microbatches);
        SettingRequest request;
        request.trace = "uniform:layers=6,forward=3ms,weights=4MB,output=3MB";
        request.cluster.link = parse_link("1GB/s,50us");
        request.devices = {4};
        request.microbatches = microbatches;
        request.degrees.data = 2;
        request.degrees.zero = zero;
        const ScheduleSpec spec = test::spec(schedule);
        const Case one = make_case(request, read_setting(request), spec, 4);
        request.all_pipelines = true;
        const Case all = make_case(request, read_setting(request), spec, 4);
        CHECK(all.cluster.devices.size() == 4);
        CHECK(off(study(all).step_time, study(one).step_time) < 1e-6);
      }
    }
  }
}

}  // namespace stageline::agreement_tests
