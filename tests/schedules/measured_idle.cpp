// Is the idle time of a measured run explained as that of the same run simulated?
#include "sim/analysis/measured_idle.hpp"

#include <doctest/doctest.h>

#include "sim/base/index.hpp"
#include "tests/make.hpp"
#include "tests/specs.hpp"

namespace stageline::measured_idle_tests {
namespace {

using test::Ran;

// By reader: from when the message's maker ended until it arrived.
std::map<Op, Time> transit_of(const Ran& ran) {
  std::map<Op, Time> transit;
  const TaskGraph& graph = ran.graph;
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    const Op op = graph.op[task];
    if (op.kind != OpKind::send_forward && op.kind != OpKind::send_backward) continue;
    Time sent{};
    for (std::uint32_t n = graph.need_begin[task]; n != graph.need_begin[task + 1]; ++n) {
      sent = std::max(sent, ran.times.available[graph.need[n]]);
    }
    const bool forward = op.kind == OpKind::send_forward;
    const Time time = ran.times.available[task] - sent;
    const int reader = forward ? op.stage + 1 : op.stage - 1;
    transit[op_of(forward ? OpKind::forward : OpKind::backward, reader, op.microbatch)] = time;
    if (!forward) transit[op_of(OpKind::input_grad, reader, op.microbatch)] = time;
  }
  return transit;
}

TEST_CASE("a run that loses nothing has the idle time of its simulation, cause by cause") {
  std::mt19937 random(17);
  for (const std::string schedule :
       {"gpipe", "1f1b", "interleaved_1f1b:chunks=2", "zb_h1", "zb_v"}) {
    for (const bool transfer : {false, true}) {
      CAPTURE(schedule);
      CAPTURE(transfer);
      const ScheduleSpec spec = test::spec(schedule);
      const Costs costs = test::random_costs(random, test::stages_for(spec, 3), 3, transfer);
      const Ran ran = test::run_schedule(schedule, 3, costs, 6, 2);
      const Metrics simulated = metrics_of(ran.program, ran.graph, ran.times);
      const MeasuredIdle measured = measured_idle(ran.program, ran.timeline, transit_of(ran));
      REQUIRE(measured.metrics.device.size() == 3);
      for (std::size_t d = 0; d < 3; ++d) {
        CAPTURE(d);
        CHECK(measured.other[d] == Time{});
        CHECK(measured.metrics.device[d].busy == simulated.device[d].busy);
        CHECK(measured.metrics.device[d].idle_by == simulated.device[d].idle_by);
      }
    }
  }
}

TEST_CASE("time before an op that could have begun has another cause than the program") {
  const Costs costs = uniform_costs(2, 2, Time{10}, Time{10}, Time{10}, Time{2});
  const Ran ran = test::run_schedule("1f1b", 2, costs, 4);
  const Metrics simulated = metrics_of(ran.program, ran.graph, ran.times);
  Timeline late = ran.timeline;
  for (Spans& lane : late.lanes) {
    for (Span& span : lane) {
      span.start += Time{7};
      span.end += Time{7};
    }
  }
  const MeasuredIdle measured = measured_idle(ran.program, late, transit_of(ran));
  for (std::size_t d = 0; d < 2; ++d) {
    CHECK(measured.other[d] == Time{7});
    CHECK(measured.metrics.device[d].idle == simulated.device[d].idle + Time{7});
    CHECK(measured.metrics.device[d].idle_by == simulated.device[d].idle_by);
    Time sum = measured.other[d];
    for (const Time time : measured.metrics.device[d].idle_by) sum += time;
    CHECK(sum == measured.metrics.device[d].idle);
  }
  CHECK(measured.late[0] == Time{7});
  CHECK(measured.late[1] == Time{});  // it waits for its input
  // Without the times of its messages, waiting for them is not explained.
  const MeasuredIdle untimed = measured_idle(ran.program, late, {});
  CHECK(untimed.other[1] > Time{7});
  CHECK(nth(untimed.metrics.device[1].idle_by, IdleKind::link) == Time{});
}

}  // namespace
}  // namespace stageline::measured_idle_tests
