// Is the planner's first no slower than the fastest of all that can be asked of `compare` in its
// place: every cut, every schedule, and the knobs that change an order or a limit?
#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/errors.hpp"
#include "tests/make.hpp"
#include "tests/planner/random_chain.hpp"
#include "tests/thorough.hpp"
#include "tools/compare/comparison.hpp"
#include "tools/planner/planner.hpp"
#include "tools/planner/space.hpp"

namespace stageline::enumeration_tests {
namespace {

// A chain of random layers, and what is said of the plan.
struct Small {
  unsigned seed;
  int layers;
  int devices;
  int samples;
  const char* link;
  const char* memory;  // or nothing
  std::vector<const char*> fixed;
};

planner::PlanRequest request_for(const Small& small) {
  std::mt19937 random(small.seed);
  planner::PlanRequest request =
      test::random_chain_request(random, small.layers, small.devices, small.samples);
  request.setting.cluster.link = parse_link(small.link);
  request.setting.cluster.memory.reset();
  if (*small.memory != 0) request.setting.cluster.memory = parse_bytes(small.memory);
  for (const char* const item : small.fixed) planner::fix(request.space, item);
  return request;
}

// Every synchronous schedule; those that order their ops by their costs in every placement, under
// every limit, too.
std::vector<ScheduleSpec> all_specs(int pipeline) {
  std::string names = "all,zb_auto:goal=makespan,dapple:policy=B,gpipe:reverse=yes";
  for (const std::string placement : {"straight", "looped", "v"}) {
    std::vector<std::string> limits{"p", "2p", "memory"};
    for (int stashes = 1; stashes <= 2 * pipeline; ++stashes) {
      limits.push_back(std::to_string(stashes));
    }
    for (const std::string& limit : limits) {
      const std::string knobs = ":placement=" + placement + ",limit=" + limit;
      names += ",zb_auto" + knobs + ",cyclic" + knobs;
      for (const char* const priority : {"backward_first", "forward_first", "critical_path"}) {
        names += ",list" + knobs + ",priority=" + priority;
      }
    }
  }
  std::vector<ScheduleSpec> specs;
  for (const ScheduleSpec& spec : parse_schedules(names)) {
    if (spec.scheduler->synchrony == Synchrony::synchronous) specs.push_back(spec);
  }
  return specs;
}

// None where none of them can run.
std::vector<Row> rows_of(const SettingRequest& asked, const std::vector<ScheduleSpec>& specs) {
  try {
    return compare(asked, read_setting(asked), specs);
  } catch (const UsageError&) {
    return {};
  }
}

struct Fastest {
  std::optional<Time> step;
  std::string flags;
  int compared = 0;  // that fit
};

// The rows of shapes that the plan searches. A pipeline of one rank runs 1F1B alone, as in a plan.
Fastest enumerate(const planner::PlanRequest& request) {
  Fastest fastest;
  const std::vector<Recomputation> recomputations = request.space.recomputation.empty()
                                                        ? std::vector<Recomputation>{{}}
                                                        : request.space.recomputation;
  const auto layers = static_cast<int>(read_setting(request.setting).model.layers.size());
  for (const planner::Shape& shape : planner::shapes_of(request)) {
    const int pipeline = shape.degrees.pipeline;
    std::vector<ScheduleSpec> specs = request.space.schedules;
    if (specs.empty()) specs = pipeline == 1 ? parse_schedules("1f1b") : all_specs(pipeline);
    for (int stages = pipeline; stages <= layers; stages += pipeline) {
      std::vector<ScheduleSpec> placed;
      std::copy_if(
          specs.begin(), specs.end(), std::back_inserter(placed),
          [&](const ScheduleSpec& spec) { return planner::stages_of(spec, pipeline) == stages; });
      if (placed.empty()) continue;
      for (const std::string& cut : planner::all_cuts(layers, stages)) {
        for (const Recomputation& recomputation : recomputations) {
          const planner::Candidate candidate{shape, placed.front(), recomputation, {}, cut};
          const SettingRequest asked = request_of(request.setting, candidate);
          for (const Row& row : rows_of(asked, placed)) {
            if (!row.outcome || row.outcome->fit == Fit::no) continue;
            ++fastest.compared;
            if (fastest.step && row.outcome->step_time >= *fastest.step) continue;
            fastest.step = row.outcome->step_time;
            fastest.flags = row.outcome->schedule + " " + flags_of(request.setting, candidate);
          }
        }
      }
    }
  }
  return fastest;
}

TEST_CASE("small questions: a plan is never slower than the fastest of all rows of comparisons") {
  const Small questions[] = {
      // Pipelines alone, of which messages, memory or neither decide.
      {201, 4, 2, 6, "4GB/s,2us", "", {"dp=1", "recompute=none", "microbatch-size=1"}},
      {202, 4, 2, 6, "500MB/s,1us", "", {"dp=1", "recompute=none", "microbatch-size=1"}},
      {203, 5, 2, 8, "4GB/s,500ns", "260kB", {"dp=1", "recompute=none", "microbatch-size=1"}},
      {204, 5, 3, 6, "1GB/s,2us", "240kB", {"dp=1", "recompute=none", "microbatch-size=1"}},
      {205, 4, 4, 8, "2GB/s,1us", "", {"dp=1", "recompute=none", "microbatch-size=1"}},
      {206, 5, 4, 8, "500MB/s,3us", "230kB", {"dp=1", "recompute=none", "microbatch-size=1"}},
      {207, 6, 2, 4, "50GB/s,0us", "240kB", {"dp=1", "recompute=none", "microbatch-size=1"}},
      {208, 6, 3, 6, "20GB/s,1us", "", {"dp=1", "recompute=none", "microbatch-size=1"}},
      // Replicas, sizes of micro-batches and recomputation are open, too.
      {209, 4, 2, 8, "2GB/s,1us", "300kB", {"zero=0", "recompute=none|full"}},
      {210, 4, 4, 8, "4GB/s,1us", "280kB", {"zero=0|3", "recompute=none"}},
      // Limits, priorities and placements that are given.
      {211,
       4,
       2,
       8,
       "1GB/s,1us",
       "",
       {"dp=1", "schedule=zb_auto:limit=1|zb_auto:limit=2", "recompute=none"}},
      {212,
       5,
       3,
       6,
       "2GB/s,1us",
       "",
       {"dp=1", "schedule=list:limit=2|list:limit=2,priority=critical_path", "recompute=none"}},
      {213,
       6,
       2,
       6,
       "1GB/s,500ns",
       "300kB",
       {"dp=1", "schedule=zb_auto:limit=memory,placement=v|zb_v", "recompute=none"}},
      {214,
       6,
       3,
       9,
       "2GB/s,1us",
       "250kB",
       {"dp=1", "schedule=cyclic:limit=memory|cyclic:limit=2|1f1b", "recompute=none"}},
      {215,
       6,
       2,
       8,
       "4GB/s,1us",
       "",
       {"dp=1", "schedule=interleaved_1f1b:chunks=3|interleaved_1f1b:group=1|looped_bfs",
        "recompute=none"}},
      {216,
       5,
       4,
       8,
       "1GB/s,1us",
       "260kB",
       {"dp=1", "schedule=zb_auto:goal=makespan|zb_h1|eager_1f1b", "recompute=none|full"}},
      {217,
       4,
       2,
       7,
       "500MB/s,2us",
       "",
       {"dp=1", "schedule=list:split=no|gpipe|1f1b", "recompute=none"}},
      {218,
       6,
       2,
       5,
       "8GB/s,100ns",
       "270kB",
       {"dp=1", "schedule=hanayo|v_half|v_min|1f1b_v", "recompute=none"}},
      {219,
       4,
       4,
       12,
       "2GB/s,2us",
       "",
       {"dp=1", "schedule=dualpipe|chimera|gems", "recompute=none"}},
      {220,
       5,
       3,
       6,
       "4GB/s,1us",
       "250kB",
       {"dp=1", "schedule=zb_h2|zb_auto:limit=3|dapple:policy=B", "recompute=every:1|none"}},
  };
  std::mt19937 random(5);
  int asked = 0;
  int fit = 0;
  int compared = 0;
  for (const Small& small : questions) {
    if (!test::chosen(random, 6)) continue;
    ++asked;
    CAPTURE(small.seed);
    const planner::PlanRequest request = request_for(small);
    const planner::Plan found = planner::plan(request);
    const Fastest fastest = enumerate(request);
    compared += fastest.compared;
    if (!fastest.step) continue;
    ++fit;
    CAPTURE(fastest.flags);
    REQUIRE_FALSE(found.front.empty());
    CAPTURE(found.front.front().flags);
    CHECK(found.front.front().verdict.step <= *fastest.step);
    CHECK(found.exhausted);
    // Every candidate was simulated, or is no faster by its bound.
    CHECK(found.bound == found.front.front().verdict.step);
  }
  MESSAGE(fit << " of " << asked << " questions have an answer, " << compared << " rows fit");
  CHECK(fit + 2 >= asked);
}

}  // namespace
}  // namespace stageline::enumeration_tests
