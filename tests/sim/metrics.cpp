// Who was busy, who waited and for what, and when was each step done?
#include "sim/analysis/metrics.hpp"
#include "sim/base/index.hpp"

#include <doctest/doctest.h>

#include "tests/random_program.hpp"
#include "tests/text.hpp"

namespace stageline::metrics_tests {
namespace {

using test::straight_text;

struct Measured {
  test::Simulated ran;
  Metrics metrics;
};

Measured measured(const std::string& text, const Costs& costs) {
  Measured all{test::simulated(parse_program(text), costs), {}};
  all.metrics = metrics_of(all.ran.program, all.ran.graph, all.ran.times);
  return all;
}

// "gpu0: 4-6 fill 0B0", a line an interval.
std::string idle(const Measured& all) {
  std::string text;
  for (const IdleInterval& one : all.metrics.idle) {
    text += nth(all.ran.graph.devices, one.device) + ": " + std::to_string(one.start.count()) +
            "-" + std::to_string(one.end.count()) + " " + std::string(name(one.kind)) + " " +
            print(one.before) + "\n";
  }
  return text;
}

const std::string one_f_one_b = straight_text(2, 4,
                                              "gpu0: 0F0 0F1 0B0 0F2 0B1 0F3 0B2 0B3\n"
                                              "gpu1: 1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3\n");

TEST_CASE("waiting is fill up to the first backward, drain behind the last forward") {
  const Measured all = measured(one_f_one_b, uniform_costs(2, 2, Time{1}, Time{1}, Time{1}));
  CHECK(idle(all) ==
        "gpu0: 2-4 fill 0B0\n"
        "gpu0: 12-13 drain 0B3\n"
        "gpu1: 0-1 fill 1F0\n"
        "gpu1: 13-15 drain 0F0\n");
  CHECK(all.metrics.makespan == Time{15});
  CHECK(all.metrics.device[0].busy == Time{12});
  CHECK(all.metrics.device[0].idle == Time{3});
  CHECK(all.metrics.device[0].span_idle == Time{3});
  CHECK(all.metrics.device[1].span_idle == Time{});
}

TEST_CASE("waiting that is longer than with equal stages is imbalance, wherever it is") {
  Costs costs = uniform_costs(2, 2, Time{1}, Time{1}, Time{1});
  costs.stage[1].forward = Time{3};
  const Measured all = measured(one_f_one_b, costs);
  CHECK(idle(all) ==
        "gpu0: 2-4 fill 0B0\n"
        "gpu0: 4-6 imbalance 0B0\n"
        "gpu0: 9-11 imbalance 0B1\n"
        "gpu0: 14-16 imbalance 0B2\n"
        "gpu0: 18-20 drain 0B3\n"
        "gpu0: 20-21 imbalance 0B3\n"
        "gpu1: 0-1 fill 1F0\n"
        "gpu1: 21-23 drain 0F0\n");
}

TEST_CASE("what a device would not have waited with free links is the link's, wherever it was") {
  const std::string text = straight_text(2, 1,
                                         "gpu0: 0F0 0SEND_F0 0RECV_B0 0B0\n"
                                         "gpu1: 1RECV_F0 1F0 1B0 1SEND_B0\n");
  Costs costs = uniform_costs(2, 2, Time{1}, Time{1}, Time{1}, Time{4});
  for (Route& route : costs.network.routes) route.latency = Time{2};
  const Measured all = measured(text, costs);
  CHECK(idle(all) ==
        "gpu0: 1-4 fill 0B0\n"
        "gpu0: 4-16 link 0B0\n"
        "gpu1: 0-1 fill 1F0\n"
        "gpu1: 1-7 link 1F0\n"
        "gpu1: 10-12 drain 0F0\n"
        "gpu1: 12-18 link 0F0\n");
  CHECK(all.metrics.makespan_free_links == Time{6});
}

TEST_CASE("waiting for a reduction, a copy and an update have names of their own") {
  const std::string reduce =
      "stageline-program 1\nmicrobatches: 2\nstage 0: a+b\n"
      "a: 0F0 0B0 0REDUCE_GRAD0 0U0\nb: 0F1 0B1 0REDUCE_GRAD0.1 0U0.1\n";
  Costs costs = uniform_costs(1, 2, Time{1}, Time{1}, Time{1}, Time{1});
  costs.stage[0].gradients = Bytes{5};
  costs.stage[0].update = Time{1};
  CHECK(idle(measured(reduce, costs)) == "a: 3-8 collectives 0U0\nb: 3-8 collectives 0U0.1\n");
  Costs copies = uniform_costs(1, 1, Time{1}, Time{1}, Time{1});
  copies.network.to_host[0].bandwidth = copies.network.from_host[0].bandwidth =
      Bandwidth{1'000'000'000'000};
  CHECK(idle(measured(straight_text(1, 1, "gpu0: 0F0 0OFFLOAD0 0PREFETCH0 0B0\n"), copies)) ==
        "gpu0: 1-5 copies 0B0\n");
  // Stage 1 is on the first device again, whose 1F1 waits for the other's update.
  const std::string updates =
      "stageline-program 1\nmicrobatches: 2\nweights: stash\ndelays: 0 -\n"
      "stage 0: a\nstage 1: b\n"
      "a: 0F0 0B0 0U0 0F1 0B1 0U1\nb: 1F0 1B0 1U0 1F1 1B1 1U1\n";
  Costs two = uniform_costs(2, 2, Time{1}, Time{1}, Time{1});
  two.stage[0].update = Time{4};
  CHECK(idle(measured(updates, two)) ==
        "a: 1-4 fill 0B0\na: 11-14 drain 0B1\n"
        "b: 0-1 fill 1F0\nb: 4-7 dependency 1F1\nb: 7-11 optimizer 1F1\n"
        "b: 14-16 drain 0F0\nb: 16-20 optimizer 0F0\n");
}

TEST_CASE("equal stages have no imbalance, however slow the links are") {
  for (const int transfer : {0, 1, 2, 5, 40}) {
    Costs costs = uniform_costs(2, 2, Time{2}, Time{1}, Time{3}, Time{transfer});
    for (Route& route : costs.network.routes) route.latency = Time{transfer / 2};
    const test::Simulated ran = test::simulated(complete(parse_program(one_f_one_b), costs), costs);
    const Metrics metrics = metrics_of(ran.program, ran.graph, ran.times);
    for (const DeviceMetrics& device : metrics.device) {
      CHECK(nth(device.idle_by, IdleKind::imbalance) == Time{});
      CHECK((nth(device.idle_by, IdleKind::link) > Time{}) == (transfer > 0));
    }
  }
}

TEST_CASE("a device without work is unused") {
  const std::string text = "stageline-program 1\nmicrobatches: 1\nstage 0: a\na: 0F0 0B0\nspare:\n";
  const Measured all = measured(text, uniform_costs(1, 2, Time{1}, Time{1}, Time{1}));
  CHECK(idle(all) == "spare: 0-3 unused 0F0\n");
  CHECK(all.metrics.device[1].idle == Time{3});
  CHECK(all.metrics.device[1].busy == Time{});
}

TEST_CASE("a run that takes no time has no idle interval, whoever has no work") {
  const std::string text = "stageline-program 1\nmicrobatches: 1\nstage 0: a\na: 0F0 0B0\nspare:\n";
  const Measured all = measured(text, uniform_costs(1, 2, Time{}, Time{}, Time{}));
  CHECK(idle(all).empty());
  CHECK(all.metrics.device[1].idle == Time{});
}

TEST_CASE("after a flush the pipeline fills again; without one it never drains") {
  const std::string lists =
      "gpu0: 0F0 0B0 0F1 0B1\n"
      "gpu1: 1F0 1B0 1F1 1B1\n";
  const Costs costs = uniform_costs(2, 2, Time{1}, Time{1}, Time{1});
  CHECK(idle(measured(straight_text(2, 1, lists, "steps: 2\n"), costs)) ==
        "gpu0: 1-4 fill 0B0\ngpu0: 7-10 fill 0B1\n"
        "gpu1: 0-1 fill 1F0\ngpu1: 4-6 drain 1F1\ngpu1: 6-7 fill 1F1\ngpu1: 10-12 drain 0F0\n");
  CHECK(idle(measured(straight_text(2, 1, lists, "steps: 2\nweights: stash\n"), costs)) ==
        "gpu0: 1-4 fill 0B0\ngpu0: 7-10 drain 0B1\n"
        "gpu1: 0-1 fill 1F0\ngpu1: 4-7 dependency 1F1\ngpu1: 10-12 drain 0F0\n");
}

TEST_CASE("a recompute is no backward: the pipeline fills until the gradient is there") {
  const std::string lists =
      "gpu0: 0F0 0F1 0R0 0B0 0R1 0B1\n"
      "gpu1: 1F0 1R0 1B0 1F1 1R1 1B1\n";
  CHECK(
      idle(measured(straight_text(2, 2, lists), uniform_costs(2, 2, Time{1}, Time{1}, Time{1}))) ==
      "gpu0: 3-5 fill 0B0\ngpu0: 8-9 drain 0B1\n"
      "gpu1: 0-1 fill 1F0\ngpu1: 9-11 drain 0F0\n");
}

TEST_CASE("a device of forwards alone fills until the first backward lets it go on") {
  const std::string text =
      "stageline-program 1\nmicrobatches: 6\nweights: stash\nwindows: 2\n"
      "stage 0: F=f I=b W=b\nf: 0F0 0F1 0F2 0F3 0F4 0F5\nb: 0B0 0B1 0B2 0B3 0B4 0B5\n";
  CHECK(idle(measured(text, uniform_costs(1, 2, Time{1}, Time{1}, Time{1}))) ==
        "f: 2-3 fill 0F2\nf: 4-5 dependency 0F3\nf: 6-7 dependency 0F4\n"
        "f: 8-9 dependency 0F5\nf: 10-13 drain 0F0\n"
        "b: 0-1 fill 0B0\n");
}

TEST_CASE("what a link delays and less waiting later makes up for is not the link's") {
  // Without the message b would start at 4 and then wait from 8 to 12 for c.
  const std::string text =
      "stageline-program 1\nmicrobatches: 1\nedges: 0>1 2>3 3>4 4>5\n"
      "stage 0: a\nstage 1: b\nstage 2: c\nstage 3: c\nstage 4: c\nstage 5: b\n"
      "a: 0F0 0SEND_F0 0RECV_B0 0B0\n"
      "b: 1RECV_F0 1F0 5RECV_F0 5F0 5B0 5SEND_B0 1B0 1SEND_B0\n"
      "c: 2F0 3F0 4F0 4SEND_F0 4RECV_B0 4B0 3B0 2B0\n";
  Costs costs = uniform_costs(6, 3, Time{4}, Time{1}, Time{1}, Time{3});
  costs.edges.erase(costs.edges.begin() + 1);
  for (EdgeCosts& edge : costs.edges) {
    edge.gradient = Bytes{};
    if (edge.edge.from > 0) edge.activation = Bytes{};
  }
  CHECK(idle(measured(text, costs)) ==
        "a: 4-20 fill 0B0\na: 22-24 drain 0F0\n"
        "b: 0-7 fill 1F0\nb: 11-12 fill 5F0\nb: 20-24 drain 0F0\n"
        "c: 12-18 fill 4B0\n");
}

TEST_CASE("a step ends with the last thing that belongs to it") {
  const std::string text = straight_text(2, 1,
                                         "gpu0: 0F0 0B0 0U0 0F1 0B1 0U1\n"
                                         "gpu1: 1F0 1B0 1U0 1F1 1B1 1U1\n",
                                         "steps: 2\n");
  Costs costs = uniform_costs(2, 2, Time{1}, Time{1}, Time{1});
  costs.stage[0].update = Time{2};
  const Measured all = measured(text, costs);
  CHECK(step_ends(all.ran.program, all.ran.graph, all.ran.times) ==
        std::vector<Time>{Time{8}, Time{16}});
}

TEST_CASE("updates after every backward belong to the step of their last micro-batch") {
  const std::string text =
      straight_text(1, 2, "gpu0: 0F0 0B0 0U0 0F1 0B1 0U1 0F2 0B2 0U2 0F3 0B3 0U3\n",
                    "steps: 2\nweights: stash\n");
  Costs costs = uniform_costs(1, 1, Time{1}, Time{1}, Time{1});
  costs.stage[0].update = Time{5};
  const Measured all = measured(text, costs);
  CHECK(step_ends(all.ran.program, all.ran.graph, all.ran.times) ==
        std::vector<Time>{Time{16}, Time{32}});
}

TEST_CASE("random programs: idle intervals fill what is not busy, and their sums agree") {
  test::RandomPrograms random(71);
  for (int i = 0; i < 300; ++i) {
    const test::RandomProgram made = random.make(i % 2 == 0);
    const test::Simulated ran = test::simulated(complete(made.program, made.costs), made.costs);
    CAPTURE(print(ran.program));
    const Metrics metrics = metrics_of(ran.program, ran.graph, ran.times);
    REQUIRE(metrics.makespan == makespan(ran.times));
    for (std::size_t d = 0; d < metrics.device.size(); ++d) {
      const DeviceMetrics& device = metrics.device[d];
      Time busy{};
      const Spans& spans = ran.timeline.lane(static_cast<int>(d), LaneKind::compute);
      for (std::size_t at = 0; at < spans.size(); ++at) {
        if (at > 0 && spans[at - 1].op.overlapped) continue;  // counted with its pair
        busy += spans[at].end - spans[at].start;
      }
      Time by_kind{};
      for (const Time one : device.idle_by) by_kind += one;
      Time by_interval{};
      Time last{};
      bool in_order = true;
      for (const IdleInterval& one : metrics.idle) {
        if (one.device != static_cast<int>(d)) continue;
        in_order = in_order && one.start >= last && one.end > one.start;
        last = one.end;
        by_interval += one.end - one.start;
        for (const Span& span : spans) {
          in_order = in_order && (span.end <= one.start || span.start >= one.end);
        }
      }
      CHECK(in_order);
      CHECK(device.busy == busy);
      CHECK(device.busy + device.idle == metrics.makespan);
      CHECK(by_kind == device.idle);
      CHECK(by_interval == device.idle);
      if (spans.empty()) continue;
      CHECK(device.span_idle == spans.back().end - spans.front().start - busy);
    }
  }
}

}  // namespace
}  // namespace stageline::metrics_tests
