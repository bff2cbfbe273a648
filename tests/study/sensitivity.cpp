// Do derivatives equal finite differences where they hold, and the steps that simulations show?
#include "tools/study/whatif/sensitivity.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "sim/base/errors.hpp"
#include "sim/interference.hpp"
#include "tests/make.hpp"
#include "tests/specs.hpp"
#include "tests/study/uniform.hpp"
#include "tests/thorough.hpp"
#include "tools/inputs/setting.hpp"
#include "tools/report/charts/tornado.hpp"
#include "tools/report/text/sensitivity.hpp"
#include "tools/study/pace/pace.hpp"
#include "tools/study/pace/run_with_pace.hpp"
#include "tools/study/run/run.hpp"
#include "traces/traces.hpp"

namespace stageline::sensitivity_tests {
namespace {

// Unequal layers, of microseconds, so that a rounded picosecond does not count.
Case random_case_of(std::mt19937& random, const ScheduleSpec& spec, int devices, bool link) {
  Case asked;
  asked.model = uniform_model("layers=12");
  const auto time = [&](unsigned most) {
    return Time{1'000'000} * (1 + static_cast<int>(random() % most)) + Time{random() % 1000};
  };
  for (Layer& layer : asked.model.layers) {
    layer.forward = time(12);
    layer.input_grad = time(12);
    layer.weight_grad = time(11);
    layer.backward = layer.input_grad + layer.weight_grad;
    layer.update = time(3);
    layer.output = Bytes{static_cast<std::int64_t>(1 + random() % 9) * 1000};
    layer.gradients = layer.weights = Bytes{static_cast<std::int64_t>(1 + random() % 9) * 1000};
    layer.memory_bound = random() % 3 == 0;
  }
  const LinkSpec wire{Bandwidth{1'000'000'000}, Time{1'000'000} * (1 + random() % 4)};
  asked.cluster = uniform_cluster(devices, link ? std::optional(wire) : std::nullopt, std::nullopt);
  asked.cluster.pair_overlap = static_cast<double>(random() % 5) / 8;
  asked.spec = spec;
  asked.microbatches = devices * (1 + static_cast<int>(random() % 3));
  if (spec.scheduler->assign != nullptr) {
    asked.model.layers.resize(static_cast<std::size_t>(devices) + 3);
  }
  return asked;
}

// A run whose period is derived, and what its tasks take.
struct Derivable {
  Run run;
  Derived derived;
  TaskGraph alone;
  Layout layout;
  Costs costs;
  Case asked;
};

std::optional<Derivable> derivable(const Case& asked) {
  Derivable made;
  made.asked = asked;
  made.layout = checked_layout(asked);
  made.costs = costs_of(asked, made.layout);
  const bool synchronous = asked.spec.scheduler->synchrony == Synchrony::synchronous;
  const int steps = steps_of_a_pace(asked, made.layout, synchronous);
  Runs runs(asked, made.layout, made.costs, steps);
  made.run = run_of(runs.program(steps), made.costs);
  Pace pace = pace_of(made.run, PaceOf::cycle);
  if (!pace.derived) return std::nullopt;
  made.derived = *std::move(pace.derived);
  made.alone = compile(made.run.program, made.costs);
  return made;
}

// The pace of the same order with these times, by simulation.
Pace simulated_pace(const Derivable& made, const TaskTable& times) {
  Run changed;
  changed.program = made.run.program;
  changed.graph = made.alone;
  for (std::uint32_t task = 0; task < changed.graph.tasks(); ++task) {
    Time& duration = changed.graph.duration[task];
    duration = longest_of(times, task);
    Path& path = changed.graph.paths[changed.graph.path_of[task]];
    path.lag = times.lag[task];
    path.head_start = times.head_start[task];
  }
  changed.times = simulate_together(changed.graph, {});
  return pace_of(changed, PaceOf::cycle);
}

// Whether ops wait for the same ones, of the same rounds.
bool same_waits(const EventGraph& one, const EventGraph& other) {
  return one.op == other.op &&
         std::equal(one.edges.begin(), one.edges.end(), other.edges.begin(), other.edges.end(),
                    [](const EventGraph::Edge& a, const EventGraph::Edge& b) {
                      return a.from == b.from && a.to == b.to && a.rounds == b.rounds &&
                             a.wait == b.wait;
                    });
}

double ratio(const Period& period) {
  return static_cast<double>(period.time.count()) / static_cast<double>(period.rounds);
}

const LeverEffect& effect_of(const Sensitivity& found, const std::string& name) {
  const auto at = std::find_if(found.effects.begin(), found.effects.end(),
                               [&](const LeverEffect& one) { return one.lever.name == name; });
  REQUIRE_MESSAGE(at != found.effects.end(), name);
  return *at;
}

// Rounded picoseconds of the ops of a cycle.
constexpr double rounding = 20'000;

// What is wrong with the slopes of a lever, or nothing.
std::string breach_of(const PeriodCurve& curve, const TaskTable& part) {
  const double now = ratio(curve.period());
  const PeriodSlopes slopes = curve.slopes(part);
  const SlopeReach reach = curve.reach(part, slopes);
  const double faster = slopes.faster.value();
  const double slower = slopes.slower.value();
  if (faster < 0 || faster > slower || slower > now) return "not a share of the cycle";
  if (reach.least > 1 || reach.most < 1) return "not around 1";
  for (const double share : {0.01, 0.5, 1.0}) {
    const double down = 1 - (1 - reach.least) * share;
    if (std::abs(ratio(curve.at(part, down)) - (now + faster * (down - 1))) > rounding) {
      return "not linear down to " + std::to_string(down);
    }
    const double up = 1 + (reach.most - 1) * share;
    if (std::abs(ratio(curve.at(part, up)) - (now + slower * (up - 1))) > rounding) {
      return "not linear up to " + std::to_string(up);
    }
  }
  // Where it ends: the gain gets smaller, the loss larger.
  const double beyond = reach.least * 0.5;
  if (reach.least > 1e-3 && ratio(curve.at(part, beyond)) <= now + faster * (beyond - 1)) {
    return "goes on below " + std::to_string(reach.least);
  }
  const double above = reach.most * 2;
  if (reach.most < PeriodCurve::most_factor &&
      ratio(curve.at(part, above)) <= now + slower * (above - 1)) {
    return "goes on above " + std::to_string(reach.most);
  }
  return "";
}

}  // namespace

TEST_CASE("derivatives equal finite differences as far as they hold, for every scheduler") {
  std::mt19937 random(2101);
  std::map<std::string, int> held;
  int kept = 0;
  int reordered = 0;
  for (const int devices : {2, 4}) {
    for (const ScheduleSpec& spec : test::all_specs(devices)) {
      const bool plain = spec.knobs.empty() || random() % 8 == 0;
      for (const bool link : {false, true}) {
        if (!plain && random() % (test::thorough ? 4 : 16) != 0) continue;
        const std::string schedule = spelled(spec);
        const Case asked = random_case_of(random, spec, devices, link);
        CAPTURE(schedule);
        CAPTURE(devices);
        CAPTURE(link);
        std::optional<Derivable> made;
        try {
          made = derivable(asked);
        } catch (const UsageError&) {
          continue;  // it does not go on these devices
        }
        if (!made) continue;
        const Levers levers(made->asked, made->layout, made->costs, made->run.program, made->alone);
        const PeriodCurve curve(made->alone, made->derived.events, levers.times());
        CHECK(ratio(curve.period()) == ratio(made->derived.period));
        const bool shared = shares_resources(made->alone);
        for (const Lever& lever : levers.all()) {
          if (!test::chosen(random, 3)) continue;
          CAPTURE(lever.name);
          const TaskTable part = levers.part(lever);
          CHECK(breach_of(curve, part) == "");
          if (random() % 4 != 0) continue;
          // Another way to the same step: simulated, with the rounds that it shows.
          if (shared) {
            // So little that links serve messages in the same order, but where two come at once.
            for (const double factor : {0.99999, 1.00001}) {
              CAPTURE(factor);
              const Time derived = step_of(curve.at(part, factor), made->derived.round,
                                           made->run.program.microbatches);
              const Pace pace = simulated_pace(*made, scaled(levers.times(), part, factor));
              if (!pace.derived || !same_waits(pace.derived->events, made->derived.events)) {
                ++reordered;
                continue;
              }
              ++kept;
              CHECK(std::abs((derived - pace.step.time).count()) <= 1);
            }
            continue;
          }
          for (const double factor : {0.0, 0.5, 0.9, 1.1}) {
            CAPTURE(factor);
            const Time derived = step_of(curve.at(part, factor), made->derived.round,
                                         made->run.program.microbatches);
            const Time simulated =
                simulated_pace(*made, scaled(levers.times(), part, factor)).step.time;
            CHECK(std::abs((derived - simulated).count()) <= 1);
          }
        }
        ++held[std::string(spec.scheduler->name)];
      }
    }
  }
  CHECK(held.size() >= 20);
  CHECK(kept > 4 * reordered);
}

TEST_CASE("where several cycles are critical, the slopes of faster and slower are both exact") {
  int apart = 0;
  for (const Scheduler* const scheduler : schedulers()) {
    const std::string schedule(scheduler->name);
    CAPTURE(schedule);
    std::optional<Derivable> made;
    try {
      made = derivable(test::uniform_case(schedule, 4, 8));
    } catch (const UsageError&) {
      continue;  // it does not go on these devices
    }
    if (!made) continue;
    const Levers levers(made->asked, made->layout, made->costs, made->run.program, made->alone);
    const PeriodCurve curve(made->alone, made->derived.events, levers.times());
    for (const Lever& lever : levers.all()) {
      CAPTURE(lever.name);
      const TaskTable part = levers.part(lever);
      CHECK(breach_of(curve, part) == "");
      const PeriodSlopes slopes = curve.slopes(part);
      apart += slopes.faster.value() < slopes.slower.value() ? 1 : 0;
    }
  }
  CHECK(apart > 50);
  // Any of four equal stages is the slowest when it gets slower, and none by itself is worth
  // anything.
  const Case asked = test::uniform_case("pipedream", 4, 16);
  const LeverEffect stage = effect_of(sensitivity_of(asked, study(asked)), "stage 1 (gpu1)");
  CHECK(stage.share_faster == 0);
  CHECK(stage.share_slower == 1);
}

TEST_CASE("kinds of ops and latencies add up to the cycle") {
  std::mt19937 random(2102);
  int unique = 0;
  for (const char* const schedule : {"1f1b", "gpipe", "zb_h1", "pipedream", "interleaved_1f1b"}) {
    for (const bool link : {false, true}) {
      CAPTURE(schedule);
      const Case asked = random_case_of(random, test::spec(schedule), 4, link);
      const Sensitivity found = sensitivity_of(asked, study(asked));
      if (!found.exact) continue;
      double least = 0;
      double most = 0;
      for (const LeverEffect& effect : found.effects) {
        if (effect.lever.kind != LeverKind::op_kind && effect.lever.kind != LeverKind::latency) {
          continue;
        }
        least += effect.share_faster;
        most += effect.share_slower;
      }
      CHECK(least <= doctest::Approx(1));
      CHECK(most >= doctest::Approx(1));
      unique += most - least < 1e-9 ? 1 : 0;
    }
  }
  CHECK(unique > 0);
}

TEST_CASE("a gain gets smaller and a loss larger the farther a change goes") {
  std::mt19937 random(2103);
  for (const char* const schedule : {"1f1b", "zb_h1", "chimera", "dualpipe", "pipedream"}) {
    CAPTURE(schedule);
    const Case asked = random_case_of(random, test::spec(schedule), 4, false);
    const Outcome outcome = study(asked);
    const Sensitivity found = sensitivity_of(asked, outcome);
    CHECK(found.engine == SensitivityEngine::cycle);
    CHECK(found.step == outcome.step_time);
    for (const LeverEffect& effect : found.effects) {
      CAPTURE(effect.lever.name);
      const double tenth = gain(found.step, effect.faster);
      const double half = gain(found.step, effect.twice);
      CHECK(tenth >= 0);
      CHECK(half >= tenth);
      CHECK(half <= doctest::Approx(5 * tenth + 1e-6));
      CHECK(gain(found.step, effect.free) <= doctest::Approx(2 * half + 1e-6));
      CHECK(-gain(found.step, effect.slower) >= doctest::Approx(effect.share_slower / 10));
      CHECK(tenth <= doctest::Approx(effect.share_faster / 10));
    }
  }
}

TEST_CASE("the slowest stage is the cycle, and others have the time between as slack") {
  Case asked = test::uniform_case("pipedream", 4, 16);
  for (const std::size_t layer : {4, 5}) {
    Layer& slow = asked.model.layers[layer];
    slow.forward = slow.input_grad = slow.weight_grad = Time{1'500'000'000};
    slow.backward = slow.input_grad + slow.weight_grad;
  }
  asked.partition = "0-1,2-3,4-5,6-7";
  const Sensitivity found = sensitivity_of(asked, study(asked));
  REQUIRE(found.exact);
  const LeverEffect& slow = effect_of(found, "stage 2 (gpu2)");
  CHECK(slow.share_faster == doctest::Approx(1));
  CHECK(slow.share_slower == doctest::Approx(1));
  CHECK(slow.least == doctest::Approx(2.0 / 3));  // then it is as fast as the others
  CHECK(gain(found.step, slow.faster) == doctest::Approx(0.1));
  CHECK(gain(found.step, slow.free) == doctest::Approx(1.0 / 3));
  const LeverEffect& fast = effect_of(found, "stage 1 (gpu1)");
  CHECK(fast.share_slower == 0);
  CHECK(fast.most == doctest::Approx(1.5));
  CHECK(fast.free == found.step);
  CHECK(effect_of(found, "forward").share_faster == doctest::Approx(1.0 / 3));
  CHECK(advice_of(found).find("stage 2 (gpu2)") != std::string::npos);
}

// In two directions an odd number of micro-batches makes every other step another one.
TEST_CASE("where steps alternate, changed times are priced by the pace of both") {
  const Case asked = [] {
    Case one = test::uniform_case("chimera", 4, 7);
    for (Layer& layer : one.model.layers) layer.output = Bytes{2'000'000};
    const LinkSpec link{Bandwidth{10'000'000'000}, Time{5'000'000}};
    one.cluster = uniform_cluster(4, link, std::nullopt);
    one.partition = "0-1,2-3,4-5,6-7";
    return one;
  }();
  const Sensitivity found = sensitivity_of(asked, study(asked));
  CHECK(found.engine == SensitivityEngine::simulated);
  for (const int gpu : {0, 1}) {
    Case slower = asked;
    nth(slower.cluster.devices, gpu).rate /= 1.1;
    const double there = to_seconds(study(slower).step_time);
    const LeverEffect& effect = effect_of(found, "compute of gpu" + std::to_string(gpu));
    CHECK(to_seconds(effect.slower) == doctest::Approx(there).epsilon(1e-6));
  }
}

TEST_CASE("an effect is found at the smallest change that has it, as a walk over all finds it") {
  std::mt19937 random(2105);
  for (const char* const schedule : {"1f1b", "gpipe", "zb_h1"}) {
    CAPTURE(schedule);
    const Case asked = random_case_of(random, test::spec(schedule), 4, true);
    const Outcome outcome = study(asked);
    const Sensitivity found = sensitivity_of(asked, outcome);
    if (found.engine != SensitivityEngine::simulated) continue;
    const Layout layout = checked_layout(asked);
    const Run run = run_with_pace(asked, layout, outcome);
    const TaskGraph alone = compile(run.program, outcome.costs);
    const Levers levers(asked, layout, outcome.costs, run.program, alone);
    for (const LeverEffect& effect : found.effects) {
      CAPTURE(effect.lever.name);
      // The whole run from end to end, with the times of a table.
      const auto step = [&](double factor) {
        const TaskTable times = scaled(levers.times(), levers.part(effect.lever), factor);
        TaskGraph graph = alone;
        for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
          graph.duration[task] = times.duration[task];
          graph.paths[graph.path_of[task]].lag = times.lag[task];
          graph.paths[graph.path_of[task]].head_start = times.head_start[task];
        }
        return pace_with(run.program, std::move(graph), outcome.costs).step.time;
      };
      CHECK(effect.slower == step(1.1));
      CHECK(effect.faster == step(0.9));
      CHECK(effect.twice == step(0.5));
      CHECK(effect.free == step(0));
      if (std::abs(effect.share_slower) > 1e-6) continue;
      std::optional<double> first;
      for (const double factor : {1.02, 1.05, 1.1, 1.2, 1.5, 2.0, 5.0, 10.0}) {
        if (!first && std::abs(gain(found.step, step(factor))) > 1e-6) first = factor;
      }
      CHECK(effect.costs_from == first);
    }
  }
}

// One rule with --slow: a device that computes faster moves no bytes faster.
TEST_CASE("the compute of a device is a lever without the collectives inside its ops") {
  SettingRequest request;
  request.trace = "model:gpt@h100,layers=4,hidden=4096,heads=32,vocab=51200,seq=2048,batch=1";
  request.cluster.cluster = "h100x8";
  request.devices = {8};
  request.degrees.tensor = 4;
  request.degrees.pipeline = 2;
  request.partition = "0-4,5-";
  request.microbatches = 8;
  const Setting setting = read_setting(request);
  const Case asked = make_case(request, setting, test::spec("1f1b"), 8);
  const Sensitivity found = sensitivity_of(asked, study(asked));
  Cluster faster = asked.ranked->devices();
  for (int device = 4; device < 8; ++device) nth(faster.devices, device).rate *= 2;
  Case changed = asked;
  changed.ranked = asked.ranked->on(faster);
  changed.cluster = changed.ranked->ranks();
  const double there = to_seconds(study(changed).step_time);
  CHECK(to_seconds(effect_of(found, "stage 1 (pp1)").twice) ==
        doctest::Approx(there).epsilon(1e-3));
}

TEST_CASE("a lever is what the same change of the trace does") {
  std::mt19937 random(2104);
  for (const char* const schedule : {"1f1b", "gpipe", "pipedream", "zb_h1"}) {
    for (const bool link : {false, true}) {
      CAPTURE(schedule);
      CAPTURE(link);
      Case asked = random_case_of(random, test::spec(schedule), 4, link);
      asked.partition = "0-2,3-5,6-8,9-11";
      const Sensitivity found = sensitivity_of(asked, study(asked));
      const auto check = [&](const std::string& lever, Time LeverEffect::*step,
                             const Case& changed) {
        CAPTURE(lever);
        const double seconds = to_seconds(study(changed).step_time);
        CHECK(to_seconds(effect_of(found, lever).*step) == doctest::Approx(seconds).epsilon(1e-5));
      };
      Case changed = asked;
      for (Layer& layer : changed.model.layers) layer.forward = layer.forward * 9 / 10;
      check("forward", &LeverEffect::faster, changed);
      changed = asked;
      for (std::size_t l = 3; l < 6; ++l) {
        Layer& layer = changed.model.layers[l];
        layer.forward = layer.forward / 2;
        layer.input_grad = layer.input_grad / 2;
        layer.weight_grad = layer.weight_grad / 2;
        layer.backward = layer.backward / 2;
        layer.update = layer.update / 2;
      }
      check("stage 1 (gpu1)", &LeverEffect::twice, changed);
      changed = asked;
      for (Layer& layer : changed.model.layers) {
        layer.update = Time{};
        if (!layer.memory_bound) continue;
        layer.forward = layer.input_grad = layer.weight_grad = layer.backward = Time{};
      }
      check("memory-bound work", &LeverEffect::free, changed);
      if (!link) continue;
      changed = asked;
      for (Link& wire : changed.cluster.links) wire.bandwidth = Bandwidth{2'000'000'000};
      check("links: bandwidth", &LeverEffect::twice, changed);
      changed = asked;
      for (Link& wire : changed.cluster.links) {
        wire.latency = Time{};
        wire.latency_back = Time{};
      }
      check("links: latency", &LeverEffect::free, changed);
    }
  }
}

TEST_CASE("at fair rates the shares are finite differences, and say so") {
  std::mt19937 random(2105);
  Case asked = random_case_of(random, test::spec("interleaved_1f1b"), 4, true);
  asked.sharing = Sharing::fair;
  const Outcome outcome = study(asked);
  const Sensitivity found = sensitivity_of(asked, outcome, 1);
  CHECK(!found.exact);
  CHECK(found.engine == SensitivityEngine::simulated);
  CHECK(gain(outcome.step_time, found.step) == doctest::Approx(0).epsilon(1e-5));
  REQUIRE(!found.notes.empty());
  CHECK(found.notes.front().find("finite differences") != std::string::npos);
  // Free bandwidth and latency are what is exposed.
  Case free = asked;
  free.cluster.links.clear();
  const double without = to_seconds(study(free).step_time);
  CHECK(to_seconds(effect_of(found, "links: bandwidth").free) >= without * (1 - 1e-9));
  // Four threads say the same.
  const Sensitivity again = sensitivity_of(asked, outcome, 4);
  REQUIRE(again.effects.size() == found.effects.size());
  for (std::size_t i = 0; i < found.effects.size(); ++i) {
    CHECK(again.effects[i].lever.name == found.effects[i].lever.name);
    CHECK(again.effects[i].faster == found.effects[i].faster);
    CHECK(again.effects[i].share_faster == found.effects[i].share_faster);
  }
}

TEST_CASE("table and tornado show the levers that change the step, the largest gain first") {
  const Case asked = test::uniform_case("1f1b", 4, 8);
  const Sensitivity found = sensitivity_of(asked, study(asked));
  for (std::size_t i = 1; i < found.effects.size(); ++i) {
    CHECK(found.effects[i - 1].faster <= found.effects[i].faster);
  }
  const std::string table = report::sensitivity_table(found, 2, 0);
  CHECK(table.find("backward") != std::string::npos);
  CHECK(table.find("more change the step less") != std::string::npos);
  // A change of half a thousandth is folded.
  Sensitivity mild = found;
  LeverEffect& last = mild.effects.back();
  last.faster = last.twice = last.free = last.slower = mild.step + mild.step / 2000;
  CHECK(
      report::sensitivity_table(mild, 1000, 0).find("1 more change the step by less than 0.1 %") !=
      std::string::npos);
  CHECK(report::sensitivity_tornado(mild, 1000).bars.size() == mild.effects.size() - 1);
  CHECK(report::sensitivity_tornado(found, 1000).bars.size() == found.effects.size());
  const report::Tornado tornado = report::sensitivity_tornado(found, 3);
  CHECK(tornado.bars.size() == 3);
  CHECK(tornado.bars.front().faster < 0);
  CHECK(tornado.bars.front().slower > 0);
  const std::string svg = report::tornado_svg(tornado);
  CHECK(svg.find("twice as fast") != std::string::npos);
  CHECK(svg.find(tornado.bars.front().name) != std::string::npos);
  CHECK_THROWS_AS(report::tornado_svg({}), UsageError);
}

TEST_CASE("a step without time has no sensitivity") {
  Case asked = test::uniform_case("1f1b", 4, 8);
  for (Layer& layer : asked.model.layers) {
    layer.forward = layer.input_grad = layer.weight_grad = layer.backward = Time{};
  }
  CHECK_THROWS_WITH_AS(sensitivity_of(asked, study(asked)), doctest::Contains("takes no time"),
                       UsageError);
}

}  // namespace stageline::sensitivity_tests
