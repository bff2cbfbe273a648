// Are estimates near the simulated steps of what searches its order, and corrected by what is
// known?
#include "tools/planner/estimates.hpp"

#include <doctest/doctest.h>

#include <string>

#include "tests/make.hpp"
#include "tools/planner/corrections.hpp"
#include "tools/planner/evaluator.hpp"
#include "tools/planner/grounds.hpp"
#include "tools/planner/shape_loads.hpp"
#include "tools/planner/space.hpp"

namespace stageline::estimate_tests {
namespace {

TEST_CASE("zb_auto:limit=memory is estimated to wait for stashes where few have room") {
  planner::PlanRequest request;
  request.setting.trace =
      "uniform:layers=8,forward=1ms,input_grad=1ms,weight_grad=1ms,weights=1MB,stash=8MB,"
      "output=0B,batch=1";
  request.setting.devices = {8};
  request.samples = 64;
  planner::fix(request.space, "dp=1");
  planner::fix(request.space, "microbatch-size=1");
  const planner::Family family{test::spec("zb_auto:limit=memory"), {}, {}};
  double widest = 0;
  for (const int megabytes : {12, 20, 28, 36, 44, 68}) {  // one stash to eight beside the weights
    CAPTURE(megabytes);
    request.setting.cluster.memory = Bytes{megabytes * 1'000'000};
    planner::Evaluator evaluator(request.setting);
    planner::Grounds grounds(evaluator);
    const planner::Shape shape = planner::shapes_of(request).front();
    const planner::Grounds::Found found = grounds.of(shape);
    const planner::Estimates estimates(found.loads, *found.model, shape, grounds.reach(),
                                       found.limit);
    const double estimate = estimates.of(family, 8).step;
    const planner::Judgement judged = evaluator.judge({shape, family.spec, {}, {}, "balanced"});
    REQUIRE(judged.verdict);
    const double step = to_seconds(judged.verdict->step);
    CHECK(estimate == doctest::Approx(step).epsilon(0.15));
    widest = std::max(widest, step);
  }
  CHECK(widest > 1.0);  // five times what it takes with room for all: 0.2 s
}

TEST_CASE("a correction is the least of what three simulations were above their estimates") {
  planner::Corrections corrections;
  const planner::Corrections::Kind kind{8, false, 3};
  const planner::Corrections::Ground ground{17, 0};
  const planner::Corrections::Ground other{18, 0};
  CHECK(corrections.factor(kind, ground) == 1);
  CHECK_FALSE(corrections.learn_search(kind, ground, 1.5));
  CHECK_FALSE(corrections.learn_search(kind, ground, 1.25));
  CHECK(corrections.factor(kind, ground) == 1);  // two say nothing yet
  CHECK(corrections.learn_search(kind, ground, 1.4));
  CHECK(corrections.factor(kind, ground) == 1.25);
  CHECK(corrections.factor({8, false, 4}, ground) == 1);
  CHECK(corrections.factor({8, true, 3}, ground) == 1);
  CHECK_FALSE(corrections.learn_search(kind, ground, 2));

  // What families of fixed order say of their shape, whatever the family that searches.
  corrections.learn_fixed(other, 1.2);
  CHECK(corrections.fixed(other) == 1);
  CHECK(corrections.factor({8, false, 4}, other) == 1);
  corrections.close_fixed(other);  // there is no further one
  CHECK(corrections.fixed(other) == planner::Corrections::least_known);
  CHECK(corrections.factor({8, false, 4}, other) == 1.2);
  CHECK(corrections.factor(kind, other) == doctest::Approx(1.25 * 1.2));
  CHECK(corrections.factor(kind, ground) == 1.25);

  // What a family takes beyond that is its own: here a tenth.
  CHECK(corrections.learn_search(kind, other, 1.1 * 1.2));
  CHECK(corrections.factor(kind, ground) == doctest::Approx(1.1));
  CHECK(corrections.learn_search(kind, other, 0.9));
  CHECK(corrections.factor(kind, ground) == 1);  // never faster than estimated
}

}  // namespace
}  // namespace stageline::estimate_tests
