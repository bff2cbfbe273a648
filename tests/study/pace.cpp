// Is a pace never faster than what has to be done, whoever asks, and the same for a schedule and
// for its text?
#include "tools/study/pace/pace.hpp"
#include "sim/base/index.hpp"
#include "sim/deadlock.hpp"
#include "tools/study/study.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>

#include "sim/base/errors.hpp"
#include "sim/lower/passes.hpp"
#include "tests/make.hpp"
#include "tests/random_program.hpp"
#include "tests/specs.hpp"
#include "tests/thorough.hpp"
#include "tools/inputs/setting.hpp"
#include "tools/study/hybrid.hpp"
#include "tools/study/pace/bound.hpp"
#include "tools/study/pace/lone_step.hpp"
#include "tools/study/run/steps.hpp"
#include "traces/traces.hpp"

namespace stageline::pace_tests {
namespace {

// Unequal layers, of a microsecond and more, so that a rounded picosecond does not count. The first
// makes no gradient of its input now and then.
Model random_model(std::mt19937& random, int layers) {
  Model model = uniform_model("layers=" + std::to_string(layers));
  const auto time = [&](unsigned most) { return Time{1'000'000} * (random() % (most + 1)); };
  for (Layer& layer : model.layers) {
    layer.forward = time(12);
    layer.input_grad = time(12);
    layer.weight_grad = Time{1'000'000} + time(11);
    layer.backward = layer.input_grad + layer.weight_grad;
    layer.update = time(3);
    layer.output = Bytes{static_cast<std::int64_t>(random() % 9) * 1000};
    layer.gradients = layer.weights = Bytes{static_cast<std::int64_t>(random() % 9) * 1000};
  }
  if (random() % 2 == 0) {
    model.layers[0].input_grad = Time{};
    model.layers[0].backward = model.layers[0].weight_grad;
  }
  return model;
}

Case random_case(std::mt19937& random, const ScheduleSpec& spec, int devices, bool link) {
  Case asked;
  asked.model = random_model(random, 12);
  const LinkSpec wire{Bandwidth{1'000'000'000}, Time{1'000'000} * (random() % 4)};
  asked.cluster = uniform_cluster(devices, link ? std::optional(wire) : std::nullopt, std::nullopt);
  asked.spec = spec;
  asked.microbatches = 1 + static_cast<int>(random() % 9);
  if (spec.scheduler->assign != nullptr) asked.model.layers.resize(as_size(devices) + 3);
  constexpr Messages messages[] = {Messages::async, Messages::blocking, Messages::batched};
  asked.messages = messages[random() % 3];
  return asked;
}

// What its busiest lane or shared link does in all of the program.
Time busiest(const TaskGraph& graph) {
  std::vector<Time> lane(graph.lanes.size());
  std::vector<Time> resource(graph.resources.size());
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    lane[graph.lane[task]] += graph.duration[task];
    for (const std::uint32_t r : graph.paths[graph.path_of[task]].resources) {
      resource[r] += graph.duration[task];
    }
  }
  Time most{};
  for (const Time time : lane) most = std::max(most, time);
  for (const Time time : resource) most = std::max(most, time);
  return most;
}

// What is wrong with the pace, or nothing.
std::string breach(const Outcome& outcome) {
  // A step may have been rounded down. Where the last round of replicas is short, one of them does
  // more than it does in the long run.
  const Program& program = outcome.program;
  const bool whole = std::all_of(program.placement.stage.begin(), program.placement.stage.end(),
                                 [&](const StagePlace& place) {
                                   return program.total_microbatches() % place.replicas.size() == 0;
                                 });
  const Time all = (outcome.step_time + Time{1}) * program.steps;
  if (whole && all < busiest(outcome.graph)) return "faster than its lane";
  // The pieces of a sequence are rounded one by one.
  const double picoseconds = program.settings.sequence_chunks > 1 ? outcome.graph.tasks() : 1;
  const double rounded = 1e-12 * picoseconds / std::max(to_seconds(outcome.step_time), 1e-12);
  if (outcome.speedup > outcome.devices * (1 + rounded)) return "faster than all devices";
  if (outcome.bubble_fraction < 0 || outcome.bubble_fraction > 1) return "not a bubble";
  if (outcome.exposed_communication < 0 || outcome.exposed_communication > 1) return "not a share";
  return "";
}

// "0-2,3,4-5", the layers of each stage.
std::string ranges(const Partition& partition) {
  std::string text;
  const auto& stage = partition.stage_of;
  for (std::size_t first = 0, last = 0; first < stage.size(); first = last + 1) {
    for (last = first; last + 1 < stage.size() && stage[last + 1] == stage[first];) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(first) + "-" + std::to_string(last);
  }
  return text;
}

// The outcome's program, written and read again, on the same layers.
Outcome read_again(Case asked, const Outcome& outcome) {
  asked.program = parse_program(print(outcome.program));
  asked.partition = ranges(outcome.plan.partition);
  return study(asked);
}

}  // namespace

TEST_CASE("no schedule and no program text is faster than its busiest lane, or than its devices") {
  std::mt19937 random(811);
  std::map<std::string, int> held;
  int alike = 0;
  int longer = 0;
  for (int devices = 1; devices <= 4; ++devices) {
    for (const ScheduleSpec& spec : test::all_specs(devices)) {
      if (devices == 4 && random() % 3 != 0) continue;
      for (int turn = 0; turn < 3; ++turn) {
        if (held[std::string(spec.scheduler->name)] > 0 && !test::chosen(random, 3)) continue;
        const bool link = turn == 1;
        Case asked = random_case(random, spec, devices, link);
        if (turn == 2) asked.microbatches = 4 * devices;
        asked.steps = 1 + static_cast<int>(random() % 4);
        CAPTURE(spelled(spec));
        CAPTURE(devices);
        CAPTURE(link);
        CAPTURE(asked.microbatches);
        CAPTURE(asked.steps);
        CAPTURE(name(*asked.messages));
        try {
          const Outcome outcome = study(asked);
          CHECK(breach(outcome) == "");
          const Outcome given = read_again(asked, outcome);
          CAPTURE(print(given.program));
          CHECK(breach(given) == "");
          ++held[std::string(spec.scheduler->name)];
          if (random() % 4 != 0 || !outcome.settled) continue;
          // Long enough, the text shows the schedule's own pace.
          const bool synchronous = outcome.synchrony == Synchrony::synchronous;
          asked.steps = synchronous ? 3 : steps_of_a_stream(outcome.program);
          const Outcome whole = read_again(asked, study(asked));
          CHECK(breach(whole) == "");
          ++longer;
          if (whole.step_time == outcome.step_time) ++alike;
          const bool free_order = !link && *asked.messages == Messages::async;
          if (whole.settled && free_order) CHECK(whole.step_time == outcome.step_time);
        } catch (const UsageError&) {
          continue;  // a size that this schedule does not do
        } catch (const ProgramError&) {
          continue;  // messages that cannot stand in one stream
        } catch (const Deadlock&) {
          continue;
        }
      }
    }
  }
  for (const Scheduler* const scheduler : schedulers()) {
    CHECK_MESSAGE(held[std::string(scheduler->name)] > 0, scheduler->name);
  }
  // Not where messages stand or queue in another order in a longer run, nor where a list's steps
  // differ.
  CHECK(100 * alike >= 97 * longer);
}

TEST_CASE("messages that only the ends of a program have do not count in its steady step") {
  Case asked;
  asked.model = uniform_model("layers=9,forward=2158us,weight_grad=4ps,weights=3518kB,batch=60");
  asked.cluster =
      uniform_cluster(5, LinkSpec{Bandwidth{900'000'000'000}, from_seconds(2)}, std::nullopt);
  asked.spec = parse_schedules("layerpipe").front();
  asked.microbatches = 6;
  asked.messages = Messages::batched;
  for (const int steps : {1, 5, 20}) {
    asked.steps = steps;
    CHECK(study(asked).step_time > from_seconds(50.4));  // 126 messages in five steps
    CHECK(study(asked).step_time < from_seconds(50.6));
  }
}

TEST_CASE("one device does W as the lone W of a pipeline, where that was measured shorter") {
  Case asked;
  asked.model = uniform_model("layers=6");
  for (Layer& layer : asked.model.layers) layer.lone_weight_grad = layer.weight_grad / 10;
  asked.cluster = uniform_cluster(4, std::nullopt, std::nullopt);
  asked.spec = test::spec("layerpipe");
  asked.microbatches = 64;
  CHECK(study(asked).speedup <= 4);  // else it contradicts itself
}

TEST_CASE("what flows take from one another at the begin does not count in their steady step") {
  // The forwards run ahead, and all their stashes share a link with the gradients.
  Case asked;
  asked.model = uniform_model("layers=11,weight_grad=5ps,stash=2597kB,batch=59");
  asked.cluster = uniform_cluster(4, LinkSpec{parse_bandwidth("300MB/s"), Time{4}}, std::nullopt);
  asked.spec = test::spec("layerpipe");
  asked.microbatches = 1;
  const Time in_turn = study(asked).step_time;
  asked.sharing = Sharing::fair;
  const Time fair = study(asked).step_time;
  CHECK(fair >= in_turn);  // what the busiest lane sends, at full rate
  const auto end_of = [&](int steps) {
    asked.steps = steps;
    return to_seconds(study(asked).metrics.makespan);
  };
  CHECK(to_seconds(fair) == doctest::Approx((end_of(200) - end_of(100)) / 100).epsilon(0.001));
}

TEST_CASE("a reduction that starts ahead at a fair rate does not make the steady step longer") {
  // It follows the end of the last backward as planned before other flows slow that down.
  SettingRequest request;
  request.trace = "model:llama3-8b@h100";
  request.cluster.cluster = "h100x8*2";
  request.degrees.tensor = 8;
  request.degrees.data = 2;
  request.microbatches = 4;
  const Setting setting = read_setting(request);
  for (const std::string schedule : {"1f1b", "gpipe", "zb_h1"}) {
    CAPTURE(schedule);
    Case asked = make_case(request, setting, test::spec(schedule), setting.device_counts.front());
    const Outcome own = study(asked);
    CHECK(own.settled);
    asked.steps = 4;
    const Outcome longer = study(asked);
    const std::vector<Time> ends = step_ends(longer.program, longer.graph, longer.times);
    CHECK(own.step_time == ends[3] - ends[2]);
    CHECK(longer.step_time == own.step_time);
    CHECK(read_again(asked, longer).step_time == own.step_time);
  }
}

TEST_CASE("an order for a flush without the flush has no pace of its forwards alone") {
  // The middle of a long GPipe: F behind F, and B behind B.
  Case asked;
  asked.model = uniform_model("layers=4");
  asked.cluster = uniform_cluster(4, std::nullopt, std::nullopt);
  asked.spec = test::spec("gpipe");
  asked.weights = WeightRule::latest;
  asked.microbatches = 64;
  const Outcome own = study(asked);
  CHECK(breach(own) == "");
  for (const int steps : {1, 2, 3, 8}) {
    asked.steps = steps;
    CHECK(breach(read_again(asked, study(asked))) == "");
  }
}

TEST_CASE("no schedule beats its bound, from one micro-batch on") {
  std::mt19937 random(812);
  int held = 0;
  for (int devices = 1; devices <= 4; ++devices) {
    for (const ScheduleSpec& spec : test::all_specs(devices)) {
      if (devices == 4 && random() % 3 != 0) continue;
      for (const int microbatches : {1, 2, 5, 8}) {
        if (!test::chosen(random, 4)) continue;
        Case asked = random_case(random, spec, devices, random() % 2 == 0);
        asked.microbatches = microbatches;
        CAPTURE(spelled(spec));
        CAPTURE(devices);
        CAPTURE(microbatches);
        CAPTURE(name(*asked.messages));
        std::optional<Bound> bound;
        Outcome outcome;
        try {
          bound = bound_of(asked);
          if (!bound) continue;
          outcome = study(asked);
        } catch (const UsageError&) {
          continue;
        } catch (const ProgramError&) {
          continue;
        } catch (const Deadlock&) {
          continue;
        }
        CHECK(outcome.step_time == bound->step);
        for (const LowerBound& one : bound->bounds) {
          CHECK_MESSAGE(one.step <= bound->step, one.name);
        }
        CHECK(bound->distance() >= 0);
        ++held;
      }
    }
  }
  CHECK(held > (test::thorough ? 1000 : 150));
}

TEST_CASE("with one micro-batch and no update, the path bounds a flushed step exactly") {
  Case asked;
  asked.model = uniform_model("layers=6,input_grad=2ms");
  asked.cluster = uniform_cluster(3, std::nullopt, std::nullopt);
  asked.microbatches = 1;
  for (const char* const name : {"gpipe", "1f1b", "naive", "zb_v", "zb_h1", "dapple"}) {
    CAPTURE(name);
    asked.spec = test::spec(name);
    const std::optional<Bound> bound = bound_of(asked);
    REQUIRE(bound);
    CHECK(bound->largest().name == "path");
    CHECK(bound->distance() == 0);
  }
}

TEST_CASE("filling and draining cost no less than nothing, and on one device nothing") {
  std::mt19937 random(813);
  for (int devices = 1; devices <= 3; ++devices) {
    for (const ScheduleSpec& spec : test::all_specs(devices)) {
      if (spec.scheduler->synchrony != Synchrony::asynchronous) continue;
      Case asked = random_case(random, spec, devices, random() % 2 == 0);
      asked.messages = Messages::async;
      asked.microbatches = 4 * devices;
      CAPTURE(spelled(spec));
      CAPTURE(devices);
      std::optional<HybridStudy> found;
      try {
        found = hybrid_study(asked, {20, 40}, 2);
      } catch (const UsageError&) {
        continue;
      }
      if (!found) continue;
      CHECK(found->fill > Time{});
      CHECK(found->drain >= Time{});
      CHECK(found->fill_and_drain >= Time{});
      if (devices > 1) continue;
      const bool again = spec.knobs.count("recompute") > 0 && spec.knobs.at("recompute") != "never";
      if (again) continue;
      CHECK(found->fill_and_drain == Time{});
      CHECK(found->period.time == found->nonpipelined * found->period.rounds);
      CHECK(found->asked.hybrid.total == found->nonpipelined * 40);
    }
  }
}

// Whether only the quick pace has a period: nothing is derived where the longest cycle that is
// found takes two rounds to come back, and the run is too short for that.
bool only_quick(const Pace& quick, const Pace& slow) { return quick.period && !slow.period; }

// The mean of the last steps of a run of sixteen or more. A quick pace claims all to be alike.
constexpr int many_steps = 16;
Time late_step(const Run& run) {
  const std::vector<Time> ends = step_ends(run.program, run.graph, run.times);
  REQUIRE(ends.size() >= many_steps);
  constexpr int last = 8;
  const Time all = ends.back() - ends[ends.size() - 1 - last];
  return all.count() % last == 0 ? all / last : Time{-1};
}

// What of two paces of one run differs, but for what only_quick() has.
std::string difference(const Pace& one, const Pace& other) {
  if (one.step.time != other.step.time) return "step";
  if (only_quick(one, other)) return "";
  if (one.step.settled != other.step.settled) return "settled";
  if (one.with_free_links != other.with_free_links) return "with free links";
  if (one.period.has_value() != other.period.has_value()) return "derived";
  if (!one.period) return "";
  if (one.round != other.round) return "round";
  // A cycle of several rounds may be as long, round for round, as one of a single round.
  const bool same =
      one.period->time * other.period->rounds == other.period->time * one.period->rounds;
  return same ? "" : "period";
}

TEST_CASE("a flushed pace read off one step or three is that of the event graph") {
  std::mt19937 random(815);
  int read = 0;
  int derived = 0;
  int skipped = 0;  // the period of the event graph, where it has none
  int late = 0;     // compared with a longer run
  for (int devices = 1; devices <= 5; ++devices) {
    for (const ScheduleSpec& spec : test::all_specs(devices)) {
      if (spec.scheduler->synchrony != Synchrony::synchronous) continue;
      for (int turn = 0; turn < 4; ++turn) {
        if (!test::chosen(random, 24)) continue;
        Case asked = random_case(random, spec, devices, turn % 2 == 1);
        if (turn < 2) asked.model = uniform_model("layers=12,output=3kB,update=1us");
        asked.messages = Messages::async;
        CAPTURE(spelled(spec));
        CAPTURE(devices);
        CAPTURE(turn);
        CAPTURE(asked.microbatches);
        try {
          const Layout layout = checked_layout(asked);
          const Costs costs = costs_of(asked, layout);
          Runs runs(asked, layout, costs, 3);
          const Pace slow = pace_of(asked, layout, runs, true, PaceOf::cycle);
          const Pace quick = pace_of(asked, layout, runs, true);
          CHECK(difference(quick, slow) == "");
          derived += slow.period ? 1 : 0;
          skipped += only_quick(quick, slow) ? 1 : 0;
          if (!quick.period || quick.derived) continue;
          // Where there is no other period to compare with, and now and then elsewhere.
          if (read++ % 16 == 0 || only_quick(quick, slow)) {
            CHECK(late_step(runs.of(many_steps)) == quick.step.time);
            ++late;
          }
        } catch (const UsageError&) {
          continue;  // a size that this schedule does not do
        }
      }
    }
  }
  CHECK(derived > (test::thorough ? 2000 : 40));
  CHECK(100 * read > 90 * derived);
  CHECK(late * 16 >= read);
  CHECK(100 * skipped <= read);
}

TEST_CASE("so is that of any order, on any stage graph") {
  test::RandomPrograms programs(816);
  int of_one = 0;
  int of_three = 0;
  int skipped = 0;
  for (int i = 0; i < 2000; ++i) {
    test::RandomProgram made = programs.make(/*shared=*/i % 2 == 0);
    if (made.program.settings.weights != WeightRule::flush || made.program.steps > 1) continue;
    Run one;
    Run three;
    try {
      const Program thrice = repeated(made.program, 3);
      validate(thrice);
      one = run_of(made.program, made.costs);
      three = run_of(thrice, made.costs);
    } catch (const ProgramError&) {
      continue;  // replicas that do not share a step evenly
    } catch (const Deadlock&) {
      continue;
    }
    CAPTURE(i);
    CAPTURE(print(one.program));
    const Pace slow = pace_of(three, PaceOf::cycle);
    const Pace quick = pace_of(three);
    CHECK(difference(quick, slow) == "");
    skipped += only_quick(quick, slow) ? 1 : 0;
    if (quick.period && !quick.derived) {
      ++of_three;
      CHECK(late_step(run_of(repeated(made.program, many_steps), made.costs)) == quick.step.time);
    }
    if (!steps_wait_in_lanes(one.program, one.graph)) continue;
    const std::optional<Time> lone = lone_step(one.graph, one.times);
    const std::optional<Time> free = lone_step_with_free_links(one.graph);
    if (!lone) continue;
    ++of_one;
    CHECK(slow.step.time == *lone);
    if (!slow.period) continue;
    CHECK(slow.period->time == *lone * slow.period->rounds);
    if (free) CHECK(slow.with_free_links == *free);
  }
  CHECK(of_one > 10);
  CHECK(of_three > of_one);
  CHECK(10 * skipped <= of_three);
}

}  // namespace stageline::pace_tests
