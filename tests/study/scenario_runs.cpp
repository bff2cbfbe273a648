// Laws of a schedule under scenarios.
#include "tools/study/whatif/scenario_runs.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <tuple>

#include "sim/base/errors.hpp"
#include "tests/make.hpp"
#include "tools/inputs/setting.hpp"
#include "tools/study/study.hpp"

namespace stageline::scenario_runs_tests {
namespace {

struct Asked {
  Case asked;
  Outcome outcome;
};

Asked ask(const std::string& schedule, SettingRequest request = {}) {
  if (request.trace.empty()) request.trace = "uniform8";
  if (request.devices.empty()) request.devices = {4};
  if (request.microbatches == 0) request.microbatches = 8;
  const Setting setting = read_setting(request);
  Asked made;
  made.asked = make_case(request, setting, test::spec(schedule), request.devices.front());
  made.outcome = study(made.asked);
  return made;
}

ScenarioRequest jitter_of(const std::string& text, std::int64_t scenarios) {
  ScenarioRequest request;
  request.perturbation.jitter = parse_jitter(text, "--jitter");
  request.scenarios = scenarios;
  return request;
}

// A language model on eight GPUs, cut in two the same way whatever is slow.
SettingRequest ranked(int tensor, int data, Zero zero = Zero::none) {
  SettingRequest request;
  request.trace = "model:gpt@h100,layers=4,hidden=4096,heads=32,vocab=51200,seq=2048,batch=1";
  request.cluster.cluster = "h100x8";
  request.devices = {8};
  request.degrees.tensor = tensor;
  request.degrees.data = data;
  request.degrees.pipeline = 2;
  request.degrees.zero = zero;
  request.partition = "0-4,5-";
  request.replicas_vary = true;
  return request;
}

// The step of every scenario, all of which are alike.
Time only_step(const Asked& made, const std::vector<Slow>& slow) {
  ScenarioRequest request = jitter_of("0%", 16);
  request.perturbation.slow = slow;
  const std::vector<Time> steps = scenario_steps(made.asked, made.outcome, request).step;
  CHECK(steps == std::vector<Time>(16, steps.front()));
  return steps.front();
}

}  // namespace

TEST_CASE("without perturbation every scenario is the nominal step, of every schedule") {
  for (const Scheduler* const scheduler : schedulers()) {
    const std::string schedule(scheduler->name);
    CAPTURE(schedule);
    for (const auto& sizes :
         {std::pair("", 8), {"10GB/s,5us", 8}, {"10GB/s,5us", 3}, {"1GB/s,5us", 4}}) {
      const char* const link = sizes.first;
      const int microbatches = sizes.second;
      CAPTURE(link);
      CAPTURE(microbatches);
      SettingRequest request;
      request.microbatches = microbatches;
      if (*link != '\0') request.cluster.link = parse_link(link);
      Asked made;
      try {
        made = ask(schedule, request);
      } catch (const UsageError&) {
        continue;  // it does not go on four devices
      }
      const ScenarioSteps steps = scenario_steps(made.asked, made.outcome, jitter_of("0%", 20));
      CHECK(steps.step == std::vector<Time>(20, steps.nominal));
      if (made.outcome.period || made.outcome.settled) {
        CHECK(steps.nominal == made.outcome.step_time);
      } else {
        // A mean of a stream; or what the busiest link carries, where its queue grows without end.
        const double step = to_seconds(made.outcome.step_time);
        CHECK(to_seconds(steps.nominal) == doctest::Approx(step).epsilon(0.01));
      }
    }
  }
}

// In two directions an odd number of micro-batches makes every other step another one.
TEST_CASE("where steps alternate, the step of a scenario is the pace over their period") {
  for (const int microbatches : {5, 7, 9}) {
    for (const char* const link : {"", "10GB/s,5us", "2GB/s,5us"}) {
      CAPTURE(microbatches);
      CAPTURE(link);
      SettingRequest request;
      request.microbatches = microbatches;
      request.slow = {{"gpu1", 1.3}};
      request.partition = "0-1,2-3,4-5,6-7";
      if (*link != '\0') request.cluster.link = parse_link(link);
      const Asked made = ask("chimera", request);
      const ScenarioSteps steps = scenario_steps(made.asked, made.outcome, jitter_of("0%", 16));
      CHECK(to_seconds(steps.nominal) ==
            doctest::Approx(to_seconds(made.outcome.step_time)).epsilon(1e-6));
      CHECK(steps.step == std::vector<Time>(16, steps.nominal));
    }
  }
}

TEST_CASE(
    "where steps alternate in a scenario alone, its step is the pace over their period, too") {
  for (const char* const schedule : {"chimera", "gems"}) {
    for (const int microbatches : {5, 7, 8}) {
      CAPTURE(schedule);
      CAPTURE(microbatches);
      SettingRequest request;
      request.microbatches = microbatches;
      request.partition = "0-1,2-3,4-5,6-7";
      const Asked made = ask(schedule, request);
      request.slow = {{"gpu0", 1.3}};
      const double there = to_seconds(ask(schedule, request).outcome.step_time);
      CHECK(to_seconds(only_step(made, {{"gpu0", 1.3}})) == doctest::Approx(there).epsilon(1e-6));
    }
  }
}

TEST_CASE("flows slow compute once, not again in every scenario") {
  for (const std::string schedule : {"1f1b", "zb_h1", "chimera", "pipedream"}) {
    CAPTURE(schedule);
    for (const int tensor : {1, 2}) {
      CAPTURE(tensor);
      SettingRequest request;
      request.trace = "model:gpt2@h100,batch=8";
      request.cluster.cluster = "h100x8*2";
      request.devices = {4 * tensor};
      request.degrees.tensor = tensor;
      request.sharing = Sharing::fair;
      const Asked made = ask(schedule, request);
      CHECK(is_fair(made.outcome.graph));
      // Within the picoseconds to which rates of flows are rounded.
      const auto step = doctest::Approx(to_seconds(made.outcome.step_time)).epsilon(1e-6);
      ScenarioRequest none = jitter_of("0%", 16);
      none.perturbation.pauses = {{1e9, Time{1}}};
      const ScenarioSteps steps = scenario_steps(made.asked, made.outcome, none);
      CHECK(to_seconds(steps.nominal) == step);
      CHECK(to_seconds(distribution_of(steps.step).p50) == step);
    }
  }
}

TEST_CASE("the number of threads changes no byte") {
  for (const char* const link : {"", "1GB/s,5us"}) {
    SettingRequest setting;
    if (*link != '\0') setting.cluster.link = parse_link(link);
    const Asked made = ask("1f1b", setting);
    ScenarioRequest request = jitter_of("5%", 300);
    std::vector<Time> first;
    for (const int threads : {1, 2, 7}) {
      request.threads = threads;
      const ScenarioSteps steps = scenario_steps(made.asked, made.outcome, request);
      CHECK(steps.engine == (*link == '\0' ? ScenarioEngine::batched : ScenarioEngine::single));
      if (first.empty()) first = steps.step;
      CHECK(steps.step == first);
    }
  }
}

TEST_CASE("more scenarios begin with the fewer") {
  const Asked made = ask("zb_h1");
  const std::vector<Time> few = scenario_steps(made.asked, made.outcome, jitter_of("5%", 70)).step;
  std::vector<Time> many = scenario_steps(made.asked, made.outcome, jitter_of("5%", 500)).step;
  many.resize(70);
  CHECK(few == many);
}

TEST_CASE("a frozen order is near the order that is chosen anew") {
  SettingRequest setting;
  setting.cluster.link = parse_link("1GB/s,5us");
  const Asked made = ask("1f1b", setting);
  ScenarioRequest request = jitter_of("2%", 200);
  request.freeze = true;
  const ScenarioSteps steps = scenario_steps(made.asked, made.outcome, request);
  CHECK(steps.engine == ScenarioEngine::frozen);
  CHECK(steps.frozen_error < 0.02);
}

TEST_CASE("a slower device is never faster") {
  const Asked made = ask("1f1b");
  std::vector<Time> before;
  for (const double factor : {1.0, 1.1, 1.5, 3.0}) {
    ScenarioRequest request = jitter_of("5%", 100);
    request.perturbation.slow = {{"gpu2", factor, 1}};
    const std::vector<Time> steps = scenario_steps(made.asked, made.outcome, request).step;
    for (std::size_t k = 0; k < before.size(); ++k) CHECK(steps[k] >= before[k]);
    before = steps;
  }
}

TEST_CASE("a device that is slow in scenarios is as slow as one of the setting") {
  for (const auto& [tensor, data, zero] : {std::tuple(4, 1, Zero::none),
                                           {2, 2, Zero::none},
                                           {2, 2, Zero::optimizer},
                                           {1, 4, Zero::weights}}) {
    const int ranks[] = {tensor, data};  // clang 14 captures no structured binding
    CAPTURE(ranks[0]);
    CAPTURE(ranks[1]);
    const SettingRequest usual = ranked(tensor, data, zero);
    SettingRequest slow = usual;
    slow.slow = {{"gpu7", 1.5}};
    const double there = to_seconds(ask("1f1b", slow).outcome.step_time);
    const Time drawn = only_step(ask("1f1b", usual), {{"gpu7", 1.5, 1}});
    CHECK(to_seconds(drawn) == doctest::Approx(there).epsilon(1e-4));
  }
}

TEST_CASE("a device that is slow takes each of unequal micro-batches as many times as long") {
  SettingRequest request;
  request.lengths = "100,400,200,800,100,300,200,700";
  request.partition = "uniform";
  for (const char* const trace :
       {"uniform:layers=8,forward=1ms", "model:gpt@h100,layers=6,hidden=1024,heads=16,seq=1024"}) {
    CAPTURE(trace);
    request.trace = trace;
    const Asked made = ask("1f1b", request);
    CHECK(only_step(made, {{"gpu0", 1}}) == made.outcome.step_time);
    SettingRequest slow = request;
    slow.slow = {{"gpu1", 1.5}};
    const double there = to_seconds(ask("1f1b", slow).outcome.step_time);
    CHECK(to_seconds(only_step(made, {{"gpu1", 1.5}})) == doctest::Approx(there).epsilon(1e-9));
  }
}

TEST_CASE("a slow device computes slower, and its collectives take what they took") {
  SettingRequest request = ranked(2, 2);
  const Outcome usual = ask("1f1b", request).outcome;
  request.slow = {{"gpu7", 1.5}};
  const Outcome slow = ask("1f1b", request).outcome;
  const StageCosts& stage = usual.costs.stage[1];
  REQUIRE(stage.blocking.forward > Time{});
  const Time computes = stage.forward - stage.blocking.forward;
  int slower = 0;
  for (const Op op : slow.program.ops[3]) {  // of dp1.pp1
    if (op.kind != OpKind::forward) continue;
    const double takes = to_seconds(stage.blocking.forward + computes * 3 / 2);
    const Time charged = duration_of(slow.program, slow.costs, op);
    CHECK(to_seconds(charged) == doctest::Approx(takes).epsilon(1e-6));
    ++slower;
  }
  CHECK(slower > 0);
}

TEST_CASE("a rank of several devices is as slow as the slowest of them") {
  const Asked made = ask("1f1b", ranked(4, 1));
  const Time one = only_step(made, {{"gpu6", 1.5, 1}});
  CHECK(one > made.outcome.step_time);
  CHECK(only_step(made, {{"gpu6", 1.5, 1}, {"gpu7", 1.2, 1}}) == one);
  CHECK(only_step(made, {{"gpu6", 1.2, 1}, {"pp1", 1.25, 1}}) == one);
}

TEST_CASE("slow links make the collectives inside ops longer, as such links of the cluster do") {
  for (const auto& [tensor, data, zero] :
       {std::tuple(4, 1, Zero::none), {1, 4, Zero::gradients}, {1, 4, Zero::weights}}) {
    const int ranks[] = {tensor, data};  // clang 14 captures no structured binding
    CAPTURE(ranks[0]);
    CAPTURE(ranks[1]);
    const SettingRequest usual = ranked(tensor, data, zero);
    const Asked made = ask("1f1b", usual);
    Cluster cluster = made.asked.ranked->devices();
    for (Link& link : cluster.links) link.bandwidth.bytes_per_second /= 2;
    Asked narrow = made;
    narrow.asked.ranked = made.asked.ranked->on(cluster);
    narrow.asked.cluster = narrow.asked.ranked->ranks();
    const double there = to_seconds(study(narrow.asked).step_time);
    CHECK(there > to_seconds(made.outcome.step_time) * 1.05);
    CHECK(to_seconds(only_step(made, {{"links", 2, 1}})) == doctest::Approx(there).epsilon(2e-3));
    // Drawn in half of the scenarios.
    ScenarioRequest half = jitter_of("0%", 512);
    half.perturbation.slow = {{"links", 2, 0.5}};
    const ScenarioSteps drawn = scenario_steps(made.asked, made.outcome, half);
    const Distribution times = distribution_of(drawn.step);
    CHECK(times.p5 == drawn.nominal);
    CHECK(to_seconds(times.p95) == doctest::Approx(there).epsilon(2e-3));
  }
}

TEST_CASE("one slow link is found by its name where collectives alone take it") {
  const Asked made = ask("1f1b", ranked(4, 1));
  Cluster cluster = made.asked.ranked->devices();
  int halved = 0;
  for (Link& link : cluster.links) {
    if (link.from != 5 || link.tier != Tier::nvlink) continue;
    link.bandwidth.bytes_per_second /= 2;
    ++halved;
  }
  REQUIRE(halved == 1);
  Asked narrow = made;
  narrow.asked.ranked = made.asked.ranked->on(cluster);
  narrow.asked.cluster = narrow.asked.ranked->ranks();
  const double there = to_seconds(study(narrow.asked).step_time);
  const Time drawn = only_step(made, {{"gpu5>nvswitch", 2, 1}});
  CHECK(drawn > made.outcome.step_time);
  CHECK(to_seconds(drawn) == doctest::Approx(there).epsilon(2e-3));
  ScenarioRequest unknown = jitter_of("0%", 16);
  unknown.perturbation.slow = {{"gpu5>nvlink", 2, 1}};
  CHECK_THROWS_WITH_AS(scenario_steps(made.asked, made.outcome, unknown),
                       doctest::Contains("nothing is called"), UsageError);
}

TEST_CASE("a step of tensor-parallel ranks is as slow as the slowest of their draws") {
  // One rank of eight GPUs: a step is a chain of its ops, so its mean is that of one op.
  SettingRequest request = ranked(8, 1);
  request.degrees.pipeline = 1;
  request.partition = "balanced";
  const Asked made = ask("1f1b", request);
  const ScenarioSteps steps = scenario_steps(made.asked, made.outcome, jitter_of("5%", 512));
  const double loss = to_seconds(distribution_of(steps.step).mean) / to_seconds(steps.nominal) - 1;
  CHECK(loss == doctest::Approx(0.0730).epsilon(0.03));  // see tests/cost_models/perturbation.cpp
}

TEST_CASE("replicas that gather weights in every op wait for the slowest of all") {
  const ScenarioRequest jitter = jitter_of("5%", 256);
  const auto loss = [&](Zero zero, ZeroEvery every = ZeroEvery::microbatch) {
    SettingRequest request = ranked(1, 4, zero);
    request.degrees.zero_every = every;
    const Asked made = ask("1f1b", request);
    const ScenarioSteps steps = scenario_steps(made.asked, made.outcome, jitter);
    return to_seconds(distribution_of(steps.step).mean) / to_seconds(steps.nominal) - 1;
  };
  // E[max of 4] is 5.1 % at each op; without the gathers only whole steps wait.
  CHECK(loss(Zero::weights) > 0.05);
  CHECK(loss(Zero::none) < 0.035);
  CHECK(loss(Zero::weights, ZeroEvery::step) < 0.035);
}

TEST_CASE("scenarios that last longer than can be added up are refused") {
  SettingRequest request;
  request.trace = "uniform:layers=8,forward=1000s,input_grad=1000s,weight_grad=1000s";
  const Asked slow = ask("1f1b", request);
  ScenarioRequest rare = jitter_of("0%", 100);
  rare.perturbation.slow = {{"gpu1", 100, 0.5}};
  const char* const refusal = "longer than the clock's 4.61e+06 s (53 days)";
  CHECK_THROWS_WITH_AS(scenario_steps(slow.asked, slow.outcome, rare), doctest::Contains(refusal),
                       UsageError);
  rare.perturbation.slow = {{"gpu1", 2, 0.5}};
  for (const Time step : scenario_steps(slow.asked, slow.outcome, rare).step) {
    CHECK(step >= slow.outcome.step_time);
  }
  const Asked made = ask("1f1b");
  ScenarioRequest pauses = jitter_of("0%", 16);
  for (const Time pause : {10 * from_seconds(1e5), longest_run, Time::max()}) {
    pauses.perturbation.pauses = {{1, pause}, {1, pause}};
    CHECK_THROWS_WITH_AS(scenario_steps(made.asked, made.outcome, pauses),
                         doctest::Contains(refusal), UsageError);
  }
}

TEST_CASE("the slow device is on the critical path") {
  const Asked made = ask("1f1b");
  ScenarioRequest request = jitter_of("1%", 64);
  request.perturbation.slow = {{"gpu2", 3, 1}};
  const ScenarioSteps steps = scenario_steps(made.asked, made.outcome, request);
  REQUIRE(!steps.critical.empty());
  CHECK(steps.critical.front().name == "gpu2");
  CHECK(steps.critical.front().often == 1);
  double shares = 0;
  for (const CriticalShare& share : steps.critical) shares += share.share;
  CHECK(shares == doctest::Approx(1));
}

TEST_CASE("the mean of the later of two ops is that of two normals") {
  // Two stages on two devices that wait for one another: one micro-batch a step of GPipe is a
  // chain, so a step is a sum; the maximum of two equal normals with deviation σ has mean σ/√π
  // above.
  std::vector<Time> first;
  std::vector<Time> second;
  const Asked made = ask("1f1b");
  ScenarioRequest request = jitter_of("5%", 20'000);
  request.perturbation.seed = 3;
  const std::vector<Time> one = scenario_steps(made.asked, made.outcome, request).step;
  request.perturbation.seed = 4;
  const std::vector<Time> other = scenario_steps(made.asked, made.outcome, request).step;
  std::vector<Time> later;
  for (std::size_t k = 0; k < one.size(); ++k) later.push_back(std::max(one[k], other[k]));
  const Distribution each = distribution_of(one);
  const Distribution both = distribution_of(later);
  const double above = to_seconds(both.mean) - to_seconds(each.mean);
  CHECK(above ==
        doctest::Approx(to_seconds(each.deviation) / std::sqrt(3.14159265358979)).epsilon(0.05));
}

TEST_CASE("quantiles are exact, with linear interpolation between") {
  std::vector<Time> times;
  for (int i = 100; i >= 0; --i) times.emplace_back(i * 10);
  const Distribution d = distribution_of(times);
  CHECK(d.mean == Time{500});
  CHECK(d.p5 == Time{50});
  CHECK(d.p50 == Time{500});
  CHECK(d.p95 == Time{950});
  CHECK(d.p99 == Time{990});
  CHECK(quantile({Time{0}, Time{10}}, 0.25) == Time{3});  // 2.5, halves up
}

TEST_CASE("ties for the best are shared") {
  const std::vector<std::vector<Time>> steps{{Time{10}, Time{20}}, {Time{10}, Time{10}}};
  const std::vector<double> best = shares_of_best(steps, {1, 1});
  CHECK(best == std::vector<double>{0.25, 0.75});
  // With twice the samples a step, the first is as fast in the second scenario.
  CHECK(shares_of_best(steps, {2, 1}) == std::vector<double>{0.75, 0.25});
}

TEST_CASE("measured jitter takes the spread of the trace") {
  SettingRequest request;
  request.trace = "resnet20-cpu";
  const Asked made = ask("1f1b", request);
  const ScenarioSteps steps = scenario_steps(made.asked, made.outcome, jitter_of("measured", 400));
  CHECK(distribution_of(steps.step).deviation > Time{});
  SettingRequest priced;
  priced.trace = "model:resnet18@h100";
  const Asked without = ask("1f1b", priced);
  CHECK_THROWS_WITH_AS(scenario_steps(without.asked, without.outcome, jitter_of("measured", 4)),
                       doctest::Contains("states no spread"), UsageError);
}

}  // namespace stageline::scenario_runs_tests
