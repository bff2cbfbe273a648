// Who was busy, who waited and for what, and when was each step done?
#include "sim/metrics.hpp"

#include <doctest/doctest.h>

#include "tests/random_program.hpp"
#include "tests/text.hpp"

namespace stageline {
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
    text += all.ran.graph.devices[static_cast<std::size_t>(one.device)] + ": " +
            std::to_string(one.start.count()) + "-" + std::to_string(one.end.count()) + " " +
            std::string(name(one.kind)) + " " + print(one.before) + "\n";
  }
  return text;
}

const std::string one_f_one_b = straight_text(2, 4,
                                              "gpu0: 0F0 0F1 0B0 0F2 0B1 0F3 0B2 0B3\n"
                                              "gpu1: 1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3\n");

TEST_CASE("waiting is fill before the first backward, drain after the last forward") {
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

TEST_CASE("waiting for a slower stage in between is imbalance") {
  Costs costs = uniform_costs(2, 2, Time{1}, Time{1}, Time{1});
  costs.stage[1].forward = Time{3};
  const Measured all = measured(one_f_one_b, costs);
  CHECK(idle(all) ==
        "gpu0: 2-6 fill 0B0\n"
        "gpu0: 9-11 imbalance 0B1\n"
        "gpu0: 14-16 drain 0B2\n"
        "gpu0: 18-21 drain 0B3\n"
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

TEST_CASE("waiting for a reduction is the link's, for a prefetch another matter") {
  const std::string reduce =
      "stageline-program 1\nmicrobatches: 2\nstage 0: a+b\n"
      "a: 0F0 0B0 0REDUCE_GRAD0 0U0\nb: 0F1 0B1 0REDUCE_GRAD0.1 0U0.1\n";
  Costs costs = uniform_costs(1, 2, Time{1}, Time{1}, Time{1}, Time{1});
  costs.stage[0].gradients = Bytes{5};
  costs.stage[0].update = Time{1};
  CHECK(idle(measured(reduce, costs)) == "a: 3-8 link 0U0\nb: 3-8 link 0U0.1\n");
  Costs copies = uniform_costs(1, 1, Time{1}, Time{1}, Time{1});
  copies.network.to_host[0].bandwidth = copies.network.from_host[0].bandwidth =
      Bandwidth{1'000'000'000'000};
  CHECK(idle(measured(straight_text(1, 1, "gpu0: 0F0 0OFFLOAD0 0PREFETCH0 0B0\n"), copies)) ==
        "gpu0: 1-3 fill 0B0\ngpu0: 3-5 other 0B0\n");
}

TEST_CASE("equal stages have no imbalance, however slow the links are") {
  for (const int transfer : {0, 1, 2, 5, 40}) {
    Costs costs = uniform_costs(2, 2, Time{2}, Time{1}, Time{3}, Time{transfer});
    for (Route& route : costs.network.routes) route.latency = Time{transfer / 2};
    const test::Simulated ran = test::simulated(complete(parse_program(one_f_one_b), costs), costs);
    const Metrics metrics = metrics_of(ran.program, ran.graph, ran.times);
    for (const DeviceMetrics& device : metrics.device) {
      CHECK(device.idle_by[static_cast<std::size_t>(IdleKind::imbalance)] == Time{});
      CHECK((device.idle_by[static_cast<std::size_t>(IdleKind::link)] > Time{}) == (transfer > 0));
    }
  }
}

TEST_CASE("a device without work is idle for another reason") {
  const std::string text = "stageline-program 1\nmicrobatches: 1\nstage 0: a\na: 0F0 0B0\nspare:\n";
  const Measured all = measured(text, uniform_costs(1, 2, Time{1}, Time{1}, Time{1}));
  CHECK(idle(all) == "spare: 0-3 other 0F0\n");
  CHECK(all.metrics.device[1].idle == Time{3});
  CHECK(all.metrics.device[1].busy == Time{});
}

TEST_CASE("after a flush the pipeline fills again; without one it never drains") {
  const std::string lists =
      "gpu0: 0F0 0B0 0F1 0B1\n"
      "gpu1: 1F0 1B0 1F1 1B1\n";
  const Costs costs = uniform_costs(2, 2, Time{1}, Time{1}, Time{1});
  CHECK(idle(measured(straight_text(2, 1, lists, "steps: 2\n"), costs)) ==
        "gpu0: 1-4 fill 0B0\ngpu0: 7-10 fill 0B1\n"
        "gpu1: 0-1 fill 1F0\ngpu1: 4-7 fill 1F1\ngpu1: 10-12 drain 0F0\n");
  CHECK(idle(measured(straight_text(2, 1, lists, "steps: 2\nweights: stash\n"), costs)) ==
        "gpu0: 1-4 fill 0B0\ngpu0: 7-10 drain 0B1\n"
        "gpu1: 0-1 fill 1F0\ngpu1: 4-7 imbalance 1F1\ngpu1: 10-12 drain 0F0\n");
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
      const std::vector<Span>& spans = ran.timeline.lane(static_cast<int>(d), LaneKind::compute);
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
}  // namespace stageline
