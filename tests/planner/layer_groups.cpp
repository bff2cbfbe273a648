// Is a large model that is planned in groups of layers the same model, and are the rows what its
// layers one by one give?
#include "tools/inputs/layer_groups.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tests/make.hpp"
#include "tests/planner/random_chain.hpp"
#include "tests/thorough.hpp"
#include "tools/inputs/setting.hpp"
#include "tools/planner/planner.hpp"
#include "tools/study/study.hpp"
#include "traces/traces.hpp"

namespace stageline::layer_groups_tests {
namespace {

Model chain_of(std::mt19937& random, int layers) {
  return read_trace(test::random_trace(random, layers), "random").front();
}

template <class Amount>
Amount sum(const Model& model, Amount Layer::*amount) {
  Amount all{};
  for (const Layer& layer : model.layers) all += layer.*amount;
  return all;
}

Outcome studied(const planner::PlanRequest& asked, const planner::Candidate& candidate) {
  const SettingRequest request = request_of(asked.setting, candidate);
  return study(
      make_case(request, read_setting(request), candidate.spec, candidate.shape.devices()));
}

Bytes fullest(const Outcome& outcome) {
  return nth(outcome.memory.device, outcome.peak_device()).peak;
}

planner::PlanRequest question(const std::string& trace, int devices, int samples) {
  planner::PlanRequest request;
  request.setting.trace = trace;
  request.setting.devices = {devices};
  request.samples = samples;
  request.threads = 1;
  return request;
}

TEST_CASE("groups take what their layers take, and hand on what the layers behind them read") {
  std::mt19937 random(71);
  Model model = chain_of(random, 23);
  for (int l = 0; l < 23; ++l) {
    LayerCollective one;
    one.bytes = Bytes{l % 2 == 0 ? 100 : 200};
    one.forward = 1;
    nth(model.layers, l).collectives = {one};
  }
  CHECK(in_groups(model, 23) == model);
  const Model groups = in_groups(model, 5);
  REQUIRE(groups.layers.size() == 5);
  for (Time Layer::*const time : {&Layer::forward, &Layer::input_grad, &Layer::weight_grad,
                                  &Layer::backward, &Layer::update}) {
    CHECK(sum(groups, time) == sum(model, time));
  }
  for (Bytes Layer::*const bytes : {&Layer::weights, &Layer::gradients, &Layer::optimizer_state,
                                    &Layer::stash_input_grad, &Layer::stash_weight_grad}) {
    CHECK(sum(groups, bytes) == sum(model, bytes));
  }
  int collectives = 0;
  for (int g = 0; g < 5; ++g) {
    const Layer& group = nth(groups.layers, g);
    const int end = first_of_group(23, 5, g + 1);
    CHECK(group.name == nth(model.layers, first_of_group(23, 5, g)).name);
    CHECK(group.output == nth(model.layers, end - 1).output);
    CHECK(group.collectives.size() == 2);
    Time alone = nth(model.layers, first_of_group(23, 5, g)).weight_grad_alone();
    for (int l = first_of_group(23, 5, g) + 1; l < end; ++l) alone += nth(model.layers, l).backward;
    CHECK(group.weight_grad_alone() == alone);
    for (const LayerCollective& one : group.collectives) collectives += one.forward;
  }
  CHECK(collectives == 23);
  CHECK(in_layers({0, 2}, 23, 5) == "0-3,4-12,13-");
}

TEST_CASE("groups keep apart what a dispatcher takes there and back") {
  std::mt19937 random(74);
  Model model = chain_of(random, 3);
  LayerCollective one{CollectiveKind::all_to_all, Dimension::expert, Bytes{100}, 1, 1, 0};
  one.routing = {"deepep", false, 8, 1, 1};
  model.layers[0].collectives = model.layers[1].collectives = {one};
  one.routing.combine = true;
  model.layers[2].collectives = {one};
  const Layer group = in_groups(model, 1).layers.front();
  REQUIRE(group.collectives.size() == 2);
  CHECK(group.collectives[0].forward == 2);
  CHECK(group.collectives[1] == one);
}

TEST_CASE("tensors that skip layers lead from group to group") {
  std::mt19937 random(72);
  Model model = chain_of(random, 6);
  for (int l = 0; l < 5; ++l) model.edges.push_back({l, l + 1});
  model.edges.push_back({0, 4});
  const Model groups = in_groups(model, 3);
  CHECK(groups.edges == std::vector<LayerEdge>{{0, 1}, {0, 2}, {1, 2}});
  CHECK(groups.layers[0].output == model.layers[0].output + model.layers[1].output);
  CHECK(groups.layers[1].output == model.layers[3].output);
}

TEST_CASE("a plan of many layers has the steps of all of them, and none is below its bound") {
  std::mt19937 random(73);
  for (int devices = 2; devices <= (test::thorough ? 3 : 2); ++devices) {
    CAPTURE(devices);
    planner::PlanRequest request = question(test::random_trace(random, 1500), devices, 6);
    request.setting.cluster.link = LinkSpec{Bandwidth{2'000'000'000}, Time{500'000}};
    planner::fix(request.space, "schedule=1f1b,gpipe,zb_h1");
    planner::fix(request.space, "zero=0");
    const planner::Plan found = planner::plan(request);
    REQUIRE(!found.front.empty());
    CHECK_FALSE(found.exhausted);
    REQUIRE(!found.notes.empty());
    CHECK(found.notes.front().starts_with("1500 layers were searched in 512 groups of 2 or 3: "));
    CHECK(found.bound > Time{});
    for (const planner::PlanPoint& point : found.front) {
      CAPTURE(point.flags);
      const Outcome outcome = studied(request, point.candidate);
      CHECK(outcome.step_time == point.verdict.step);
      CHECK(fullest(outcome) == point.verdict.fullest());
      CHECK(found.bound <= point.verdict.step);
    }
    // Of the cuts of all layers, too, no schedule is below the bound.
    for (const char* const name : {"1f1b", "zb_h1", "gpipe", "zb_v"}) {
      CAPTURE(name);
      planner::Candidate plain = found.front.front().candidate;
      plain.spec = test::spec(name);
      plain.partition = "balanced";
      plain.shape.degrees = Degrees{};
      plain.shape.degrees.pipeline = devices;
      plain.shape.microbatch_size = 1;
      plain.shape.microbatches = 6;
      const Time step = studied(request, plain).step_time;
      CHECK(found.bound <= step);
      if (name != std::string("zb_v")) CHECK(found.front.front().verdict.step <= step);
    }
  }
}

TEST_CASE("up to 1024 layers are planned one by one") {
  if (!test::thorough) return;
  planner::PlanRequest request = question("uniform:layers=1024", 2, 2);
  planner::fix(request.space, "schedule=gpipe");
  planner::fix(request.space, "dp=1");
  planner::fix(request.space, "microbatch-size=1");
  CHECK(planner::plan(request).notes.empty());
  request.setting.trace = "uniform:layers=1025";
  CHECK(planner::plan(request).notes.size() == 1);
}

TEST_CASE("a hundred thousand equal layers: as fast as they can be, after few simulations") {
  planner::PlanRequest request = question("uniform:layers=100000", 8, 16);
  planner::fix(request.space, "schedule=1f1b,zb_v");
  planner::fix(request.space, "dp=1");
  planner::fix(request.space, "microbatch-size=1");
  const planner::Plan found = planner::plan(request);
  REQUIRE(!found.front.empty());
  CHECK(found.front.front().verdict.step == from_seconds(0.003 * 100'000 / 8 * 16));
  CHECK(found.bound >= from_seconds(599.999));
  CHECK(found.counts.judged < 300);
}

TEST_CASE("what lacks least of many layers lacks that of all of them") {
  planner::PlanRequest request = question("uniform:layers=3000", 4, 8);
  request.setting.cluster.memory = parse_bytes("100MB");
  planner::fix(request.space, "schedule=1f1b,gpipe");
  const planner::Plan found = planner::plan(request);
  CHECK(found.front.empty());
  REQUIRE(found.missing);
  CHECK(found.missing->flags.find("1f1b") != std::string::npos);
  planner::Candidate least;
  least.spec = test::spec("1f1b");
  least.shape.degrees.pipeline = 4;
  least.shape.microbatch_size = 1;
  least.shape.microbatches = 8;
  const Bytes highest = fullest(studied(request, least));
  CHECK(found.missing->need.missing() <= highest - parse_bytes("100MB"));
}

TEST_CASE("a cut of very many layers by hand asks for a budget") {
  planner::PlanRequest request = question("uniform:layers=10001", 2, 2);
  planner::fix(request.space, "partition=0-4999,5000-");
  CHECK_THROWS_WITH_AS(planner::plan(request), doctest::Contains("10001 layers"), UsageError);
  planner::fix(request.space, "schedule=gpipe");
  planner::fix(request.space, "pp=2");
  request.budget = std::chrono::milliseconds(1);
  const planner::Plan found = planner::plan(request);
  REQUIRE(!found.front.empty());
  CHECK(found.front.front().flags.find("0-4999,5000-") != std::string::npos);
}

}  // namespace
}  // namespace stageline::layer_groups_tests
