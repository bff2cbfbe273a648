// Is what the planner says of the step of what fits in a limit below every step of what does?
#include <doctest/doctest.h>

#include <random>

#include "sim/base/errors.hpp"
#include "tests/make.hpp"
#include "tests/planner/random_chain.hpp"
#include "tests/thorough.hpp"
#include "tools/planner/evaluator.hpp"
#include "tools/planner/shape_loads.hpp"
#include "tools/planner/space.hpp"

namespace stageline::fitting_tests {
namespace {

// A candidate fits in what its own fullest device holds, so that it is no faster than what fits.
void check_fitting(planner::Evaluator& evaluator, const planner::Candidate& candidate,
                   const planner::Family& family, int& judged, int& raised) {
  const planner::Judgement judgement = evaluator.judge(candidate);
  if (!judgement.verdict) return;
  const planner::ShapeLoads loads(evaluator.case_of(candidate));
  const planner::ShapeBound bound = loads.family(family.spec, family.recomputation,
                                                 family.offloading, judgement.verdict->fullest());
  ++judged;
  raised += bound.fitting > bound.step ? 1 : 0;
  CHECK(bound.fitting >= bound.step);
  CHECK(bound.fitting <= judgement.verdict->step);
}

void check_families(const planner::PlanRequest& request, std::mt19937& random, unsigned every,
                    int& judged, int& raised) {
  planner::Evaluator evaluator(request.setting);
  for (const planner::Shape& shape : planner::shapes_of(request)) {
    if (random() % every != 0) continue;
    planner::Candidate candidate{shape, test::spec("1f1b"), {}, {}, "balanced"};
    Case any;
    try {
      any = evaluator.case_of(candidate);
    } catch (const UsageError&) {
      continue;
    }
    const int pipeline = shape.degrees.pipeline;
    for (const planner::Family& family : planner::families_of({}, any.model, pipeline)) {
      const int stages = planner::stages_of(family.spec, pipeline);
      const bool searched = family.spec.scheduler->name == "zb_auto";
      if (random() % every != 0 || searched || stages == 0) continue;
      candidate.spec = family.spec;
      candidate.recomputation = family.recomputation;
      CAPTURE(request.setting.trace);
      CAPTURE(flags_of(request.setting, candidate));
      check_fitting(evaluator, candidate, family, judged, raised);
      if (!family.recomputation.parts.empty() || stages < 2) continue;
      // The search recomputes in some stages of what does not fit.
      for (const Rebuild how : {Rebuild::selective, Rebuild::every, Rebuild::full}) {
        const int last = static_cast<int>(random() % static_cast<unsigned>(stages));
        candidate.recomputation.parts = {{{how, 1}, {{0, last}}}};
        CAPTURE(flags_of(request.setting, candidate));
        check_fitting(evaluator, candidate, family, judged, raised);
      }
    }
  }
}

TEST_CASE("no candidate that fits is faster than what the planner says of those that fit") {
  std::mt19937 random(29);
  int judged = 0;
  int raised = 0;
  for (int trial = 0; trial < (test::thorough ? 60 : 4); ++trial) {
    const int layers = 4 + static_cast<int>(random() % 6);
    planner::PlanRequest request =
        test::random_chain_request(random, layers, 2 + static_cast<int>(random() % 3), 8);
    check_families(request, random, 3, judged, raised);
  }
  CHECK(judged > 100);
  CHECK(raised > judged / 200);
}

TEST_CASE("nor one of a language model") {
  std::mt19937 random(31);
  int judged = 0;
  int raised = 0;
  planner::PlanRequest request;
  request.setting.trace = "model:gpt@h100,layers=12,hidden=2048,heads=16,vocab=2000,batch=1";
  request.setting.cluster.cluster = "h100x8";
  request.samples = 32;
  check_families(request, random, test::thorough ? 4 : 8, judged, raised);
  CHECK(judged > 40);
  CHECK(raised > 0);
}

TEST_CASE("a loop waits at both ends, on the mean of its devices") {
  SettingRequest base;
  base.trace =
      "uniform:layers=16,forward=1ms,input_grad=1ms,weight_grad=1ms,weights=1MB,stash=8MB,"
      "output=0,batch=1";
  base.devices = {4};
  planner::Evaluator evaluator(base);
  planner::Candidate candidate;
  candidate.spec = test::spec("interleaved_1f1b:chunks=4");
  candidate.shape.degrees.pipeline = 4;
  candidate.shape.microbatches = 4;
  const planner::ShapeLoads loads(evaluator.case_of(candidate));
  const planner::ShapeBound bound = loads.family(candidate.spec, {}, {});
  // Four micro-batches of 12 ms on each device; 0, 3, 6 and 9 ms of waiting.
  CHECK(to_seconds(bound.step) == doctest::Approx(52.5e-3).epsilon(1e-6));
  CHECK(bound.why == "filling and draining 4 devices makes it 52.50 ms on the mean");
  CHECK(bound.step <= evaluator.judge(candidate).verdict->step);
}

}  // namespace
}  // namespace stageline::fitting_tests
