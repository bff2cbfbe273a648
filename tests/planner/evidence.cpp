// Does the planner meet or beat what is known to be good: the rows of a comparison, every cut under
// every schedule, PipeDream's plans, and the best of vTrain's measured grids?
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "sim/base/errors.hpp"
#include "tests/evidence/published/sample_points.hpp"
#include "tests/make.hpp"
#include "tests/planner/random_chain.hpp"
#include "tests/thorough.hpp"
#include "tools/compare/comparison.hpp"
#include "tools/planner/planner.hpp"
#include "tools/planner/space.hpp"
#include "tools/published/points.hpp"
#include "tools/published/vtrain.hpp"

namespace stageline::evidence_tests {
namespace {

std::string shared_folder(const std::string& name) {
  const char* const data = std::getenv("STAGELINE_DATA");
  return std::string(data == nullptr ? "" : data) + "/" + name;
}

// The shortest step of the rows that fit, or may; nothing where none does.
std::optional<Time> best_of(const std::vector<Row>& rows) {
  std::optional<Time> best;
  for (const Row& row : rows) {
    if (!row.outcome || row.outcome->fit == Fit::no) continue;
    if (!best || row.outcome->step_time < *best) best = row.outcome->step_time;
  }
  return best;
}

// The synchronous ones.
std::vector<ScheduleSpec> all_of(const std::string& names) {
  std::vector<ScheduleSpec> specs;
  for (const ScheduleSpec& spec : parse_schedules(names)) {
    if (spec.scheduler->synchrony == Synchrony::synchronous) specs.push_back(spec);
  }
  return specs;
}

struct Compared {
  const char* trace;
  const char* cluster;  // or nothing
  const char* memory;
  int devices;
  int microbatches;
  const char* schedules;
};

// Without those that order their ops by a search, which take most of the time of a plan.
constexpr const char* most = test::thorough
                                 ? "gpipe,1f1b,eager_1f1b,interleaved_1f1b,zb_h1,zb_h2,dualpipe"
                                 : "gpipe,1f1b,zb_h1";

TEST_CASE("a plan is never slower than the best row of a comparison for the same question") {
  constexpr Compared questions[] = {
      {"uniform:layers=8,batch=1,stash=4MB,weights=1MB", "", "60MB", 4, 8,
       test::thorough ? "all" : most},
      {"uniform:layers=8,batch=2,output=8MB", "", "1GB", 4, 16, most},
      {"lenet5-cpu", "", "200MB", 3, 6, most},
      {"resnet50-cpu", "", "8GB", 4, 8, most},
      {"model:gpt@h100,layers=8,hidden=1024,heads=16,vocab=32000,batch=1", "h100x8", "", 8, 16,
       "gpipe,1f1b,interleaved_1f1b,zb_h1"},
  };
  int compared = 0;
  for (const Compared& one : questions) {
    if (!test::thorough && one.devices > 4) continue;
    if (!test::thorough && std::string(one.trace) == "resnet50-cpu") continue;
    if (!test::thorough && one.microbatches > 8) continue;
    CAPTURE(one.trace);
    planner::PlanRequest request;
    request.setting.trace = one.trace;
    if (*one.cluster != 0) {
      request.setting.cluster.cluster = one.cluster;
    } else {
      request.setting.cluster.link = parse_link("2.5GB/s,50us");
      request.setting.cluster.memory = parse_bytes(one.memory);
      request.setting.devices = {one.devices};
    }
    SettingRequest asked = request.setting;
    asked.microbatches = one.microbatches;
    const Setting setting = read_setting(asked);
    request.samples = std::int64_t{one.microbatches} * std::max(1, setting.model.batch);
    const std::vector<Row> rows = compare(asked, setting, all_of(one.schedules));
    const std::optional<Time> best = best_of(rows);
    request.space.schedules = all_of(one.schedules);
    const planner::Plan found = planner::plan(request);
    if (!best) continue;
    ++compared;
    REQUIRE_FALSE(found.front.empty());
    CHECK(found.front.front().verdict.step <= *best);
    // Nor does the bound say more than can be.
    CHECK(found.bound <= *best);
  }
  CHECK(compared >= (test::thorough ? 4 : 2));
}

TEST_CASE("random chains: a plan is never slower than the best row of a comparison") {
  std::mt19937 random(21);
  int compared = 0;
  for (int trial = 0; trial < (test::thorough ? 12 : 3); ++trial) {
    planner::PlanRequest request =
        test::random_chain_request(random, 4 + trial % 5, 2 + trial % 3, 8);
    request.setting.cluster.memory = Bytes{100'000 + 60'000 * trial};
    planner::fix(request.space,
                 "schedule=gpipe|1f1b|eager_1f1b|interleaved_1f1b|zb_h1|zb_h2|zb_v|naive");
    SettingRequest asked = request.setting;
    asked.microbatches = 8;
    const std::optional<Time> best =
        best_of(compare(asked, read_setting(asked), request.space.schedules));
    const planner::Plan found = planner::plan(request);
    if (!best) continue;
    ++compared;
    CAPTURE(request.setting.trace);
    REQUIRE_FALSE(found.front.empty());
    CHECK(found.front.front().verdict.step <= *best);
  }
  CHECK(compared > (test::thorough ? 6 : 1));
}

TEST_CASE("small cases: the planner finds the optimum of all cuts under all schedules") {
  std::mt19937 random(23);
  int cases = 0;
  int equal = 0;
  int candidates = 0;
  std::vector<ScheduleSpec> specs = all_of("all");
  for (const ScheduleSpec& spec :
       parse_schedules("list:priority=forward_first,list:priority=critical_path,"
                       "cyclic:limit=memory")) {
    specs.push_back(spec);
  }
  for (int trial = 0; trial < (test::thorough ? 30 : 4); ++trial) {
    const int layers = 4 + trial % 3;
    const int devices = 2 + trial % 2;
    planner::PlanRequest request = test::random_chain_request(random, layers, devices, 4);
    request.setting.cluster.memory =
        Bytes{100'000 + static_cast<std::int64_t>(random() % 300) * 1000};
    planner::fix(request.space, "dp=1");
    planner::fix(request.space, "recompute=none");
    const planner::Plan found = planner::plan(request);
    planner::Evaluator evaluator(request.setting);
    std::optional<Time> best;
    std::string best_flags;
    for (const planner::Shape& shape : planner::shapes_of(request)) {
      for (const ScheduleSpec& spec : specs) {
        const int stages = planner::stages_of(spec, devices);
        if (stages == 0 || stages > layers) continue;
        for (const std::string& cut : planner::all_cuts(layers, stages)) {
          const planner::Candidate candidate{shape, spec, {}, {}, cut};
          const planner::Judgement judged = evaluator.judge(candidate);
          if (!judged.verdict || judged.verdict->fit == Fit::no) continue;
          ++candidates;
          if (best && judged.verdict->step >= *best) continue;
          best = judged.verdict->step;
          best_flags = flags_of(request.setting, candidate);
        }
      }
    }
    CAPTURE(request.setting.trace);
    CAPTURE(best_flags);
    if (!best) continue;
    ++cases;
    REQUIRE_FALSE(found.front.empty());
    equal += found.front.front().verdict.step == *best ? 1 : 0;
    CHECK(found.front.front().verdict.step <= *best);
    CHECK(found.bound <= *best);
  }
  MESSAGE(cases << " cases, " << equal << " equal, " << candidates << " candidates that fit");
  CHECK(cases > (test::thorough ? 15 : 1));
}

TEST_CASE("under pipedream the planner is never slower than PipeDream's plan for its profiles") {
  const std::string folder = shared_folder("pipedream");
  int profiles = 0;
  for (const char* const name : {"vgg16", "resnet50", "resnet18", "alexnet", "gnmt"}) {
    planner::PlanRequest request;
    request.setting.trace = folder + "/" + name + ".graph.txt";
    if (!test::shared_file(std::string("pipedream/") + name + ".graph.txt")) continue;
    ++profiles;
    request.setting.profile_batch = 128;
    request.setting.cluster.link = parse_link("1GB/s");
    for (const int devices : {4, 8}) {
      if (!test::thorough && (devices > 4 || profiles > 2)) continue;
      CAPTURE(name);
      CAPTURE(devices);
      request.setting.devices = {devices};
      request.samples = std::int64_t{128} * 16;
      request.space = {};
      planner::fix(request.space, "schedule=pipedream");
      planner::fix(request.space, "microbatch-size=128");
      planner::fix(request.space, "recompute=none");
      SettingRequest asked = request.setting;
      asked.microbatches = 16;
      asked.partition = "pipedream";
      const std::vector<Row> rows =
          compare(asked, read_setting(asked), parse_schedules("pipedream"));
      REQUIRE(rows.front().outcome);
      const planner::Plan found = planner::plan(request);
      REQUIRE_FALSE(found.front.empty());
      MESSAGE(std::string(name) << " on " << devices << ": " << rows.front().outcome->schedule
                                << " " << print(rows.front().outcome->step_time) << ", ours "
                                << print(found.front.front().verdict.step) << " "
                                << found.front.front().flags);
      CHECK(found.front.front().verdict.step <= rows.front().outcome->step_time);
    }
  }
  if (profiles == 0) MESSAGE("skipped: STAGELINE_DATA holds no pipedream");
}

TEST_CASE("of vTrain's measured grids our first choice is theirs") {
  const auto csv = test::shared_file("vtrain/multi_node_calibration.csv");
  if (!csv) {
    MESSAGE("skipped: STAGELINE_DATA holds no vtrain/multi_node_calibration.csv");
    return;
  }
  const std::vector<Point> points = read_vtrain_runs(*csv, "multi.csv");
  std::vector<std::int64_t> sizes;
  for (const Point& point : points) {
    if (std::find(sizes.begin(), sizes.end(), point.config.layers) == sizes.end()) {
      sizes.push_back(point.config.layers);
    }
  }
  CHECK(sizes.size() == 2);
  for (const std::int64_t layers : sizes) {
    const Point* theirs = nullptr;
    const Point* ours = nullptr;
    double least = 0;
    int rows = 0;
    for (const Point& point : points) {
      if (point.config.layers != layers) continue;
      ++rows;
      if (theirs == nullptr || *point.step_time < *theirs->step_time) theirs = &point;
      const double step = predicted(question_of(point)).step;
      if (ours == nullptr || step < least) {
        ours = &point;
        least = step;
      }
    }
    CAPTURE(layers);
    CHECK(rows > 20);
    CHECK(ours->id == theirs->id);
    MESSAGE(layers << " layers: " << ours->id << ", " << least << " s of " << *theirs->step_time);
  }
}

}  // namespace
}  // namespace stageline::evidence_tests
