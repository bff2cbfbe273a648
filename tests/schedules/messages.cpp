// Does every schedule run when its messages block, and no faster for it?
#include <doctest/doctest.h>

#include <algorithm>

#include "sim/analysis/memory.hpp"
#include "sim/analysis/metrics.hpp"
#include "sim/analysis/steady_state.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/check/lint.hpp"
#include "tests/make.hpp"
#include "tests/schedules/brute_force.hpp"
#include "tests/schedules/stream_reference.hpp"
#include "tests/specs.hpp"
#include "tests/thorough.hpp"

namespace stageline::messages_tests {
namespace {

Program program_for(const ScheduleSpec& spec, int devices, const Costs& costs, int microbatches,
                    int steps, Messages messages) {
  Program program =
      spec.scheduler->schedule(test::problem_for(spec, devices, costs, microbatches, steps));
  program.settings.messages = messages;
  return program;
}

TEST_CASE("every schedule runs with messages that block, and as a slow simulator says") {
  std::mt19937 random(91);
  int programs = 0;
  for (const ScheduleSpec& spec : parse_schedules("all")) {
    for (const int devices : {2, 3, 4}) {
      for (const Messages messages : {Messages::blocking, Messages::batched}) {
        if (!test::chosen(random, 3)) continue;
        Costs costs;
        Program program;
        try {
          costs = test::random_costs(random, test::stages_for(spec, devices), devices, true);
          program = program_for(spec, devices, costs, 2 * devices, 2, messages);
        } catch (const UsageError&) {
          continue;  // not on so few devices
        }
        program = complete(std::move(program), costs);
        CAPTURE(print(program));
        REQUIRE_NOTHROW(validate(program));
        REQUIRE_NOTHROW(compile(program, costs));
        const TaskGraph graph = compile(program, costs);
        const TaskTimes swept = sweep(graph);
        const std::map<Op, test::When> when = test::stream_reference(program, costs);
        REQUIRE_FALSE(when.empty());
        const Timeline timeline = timeline_of(program, graph, swept);
        bool same = true;
        for (std::size_t lane = 0; lane < timeline.lanes.size(); ++lane) {
          if (lane % lane_kinds == as_size(LaneKind::receive)) continue;
          for (const Span& span : timeline.lanes[lane]) {
            const test::When& then = when.at(test::plain(span.op));
            same = same && then.start == span.start && then.end == span.end;
          }
        }
        CHECK(same);
        const TaskTimes times = run(graph);
        CHECK(test::brute_force(graph).available == times.available);
        // Every byte is given back, and the idle time has its reasons.
        const Timeline ran = timeline_of(program, graph, times);
        for (const DeviceMemory& device : memory_of(program, costs, ran).device) {
          for (const MemoryKind kind : {MemoryKind::stash, MemoryKind::buffers}) {
            CHECK(nth(device.at_end, kind) == Bytes{});
          }
        }
        const Metrics metrics = metrics_of(program, graph, times);
        for (const DeviceMetrics& device : metrics.device) {
          Time sum{};
          for (const Time idle : device.idle_by) sum += idle;
          CHECK(sum == device.idle);
          CHECK(device.busy + device.idle == metrics.makespan);
        }
        Time at{};
        for (const PathPiece& piece : critical_path(graph, times)) {
          CHECK(piece.start == at);
          at = piece.end;
        }
        CHECK(at == metrics.makespan);
        ++programs;
      }
    }
  }
  CHECK(programs > (test::thorough ? 100 : 30));
}

TEST_CASE("on the same order blocking is never faster than batched, nor batched than async") {
  std::mt19937 random(92);
  for (const ScheduleSpec& spec : parse_schedules("gpipe,1f1b,naive")) {
    for (const int devices : {2, 4, 7}) {
      for (int microbatches = 1; microbatches <= 9; microbatches += 4) {
        const Costs costs = test::random_costs(random, devices, devices, true);
        Program program =
            complete(program_for(spec, devices, costs, microbatches, 2, Messages::blocking), costs);
        const auto time = [&](Messages messages) {
          program.settings.messages = messages;
          return makespan(sweep(compile(program, costs)));
        };
        const Time async = time(Messages::async);
        const Time batched = time(Messages::batched);
        CHECK(async <= batched);
        CHECK(batched <= time(Messages::blocking));
      }
    }
  }
}

TEST_CASE("1F1B-like schedules keep the usual order, and are not found wanting") {
  for (const char* const name : {"naive", "gpipe", "gpipe:recompute=always", "1f1b", "pipedream"}) {
    const ScheduleSpec spec = test::spec(name);
    for (int devices = 2; devices <= 9; ++devices) {
      const Costs costs = uniform_costs(devices, devices, Time{1}, Time{1}, Time{1}, Time{1});
      for (const int microbatches : {1, 2, devices - 1, devices, 2 * devices + 1}) {
        for (const Messages messages : {Messages::blocking, Messages::batched}) {
          CAPTURE(name);
          CAPTURE(devices);
          CAPTURE(microbatches);
          const Transferred done = with_transfers(
              add_updates(program_for(spec, devices, costs, microbatches, 2, messages)));
          CHECK(done.deadlock == "");
          if (devices > 4) continue;
          for (const LintFinding& finding : lint(done.program).findings) {
            CHECK_MESSAGE(finding.severity == Severity::note, finding.message);
          }
        }
      }
    }
  }
}

// Nothing under way waits for an update, nor for a reduction that waits for others: the messages of
// the last backward leave first.
TEST_CASE("blocking messages leave before the updates, with and without reductions") {
  int placed_anew = 0;
  for (const char* const name : {"1f1b", "eager_1f1b", "1f1b_v", "hanayo", "interleaved_1f1b"}) {
    for (const int replicas : {1, 2}) {
      const ScheduleSpec spec = test::spec(name);
      Costs costs = uniform_costs(test::stages_for(spec, 3), 3, Time{5}, Time{5}, Time{5});
      for (StageCosts& stage : costs.stage) stage.update = Time{7};
      Program program = program_for(spec, 3, costs, 6, 1, Messages::blocking);
      program.settings.data_ranks = replicas;
      const Transferred done = with_transfers(add_updates(std::move(program)));
      placed_anew += done.deadlock.empty() ? 0 : 1;
      for (const std::vector<Op>& list : done.program.ops) {
        const auto end = std::find_if(list.begin(), list.end(), [](const Op& op) {
          return op.kind == OpKind::update || op.kind == OpKind::reduce_grad;
        });
        CAPTURE(name);
        CAPTURE(print(done.program));
        CHECK(end != list.end());
        CHECK(std::none_of(end, list.end(), [](const Op& op) {
          return op.kind == OpKind::send_backward || op.kind == OpKind::send_forward;
        }));
      }
    }
  }
  CHECK(placed_anew >= 4);
}

// The period from the event graph is what a long run shows, round after round.
TEST_CASE("the steady state of messages that block is exact") {
  std::mt19937 random(93);
  int derived = 0;
  for (const char* const name : {"1f1b", "gpipe", "pipedream", "stale_weights"}) {
    const ScheduleSpec spec = test::spec(name);
    const bool flushed = spec.scheduler->synchrony == Synchrony::synchronous;
    for (const Messages messages : {Messages::blocking, Messages::batched}) {
      for (int trial = 0; trial < 4; ++trial) {
        const int devices = spec.scheduler->name == "stale_weights" ? 3 : 2 + trial;
        Costs costs = test::random_costs(random, test::stages_for(spec, devices), devices, true);
        for (Route& route : costs.network.routes) route.resources.clear();
        const int microbatches = flushed ? 5 : 80;
        const Program program = complete(
            program_for(spec, devices, costs, microbatches, flushed ? 12 : 1, messages), costs);
        const TaskGraph graph = compile(program, costs);
        const TaskTimes times = simulate(graph);
        const int all = static_cast<int>(program.total_microbatches());
        const int round = flushed ? microbatches : 1;
        const auto events = event_graph(graph, times, all, round);
        if (!events) continue;
        CAPTURE(name);
        const Period period = period_of(*events);
        const std::vector<Time> ends = microbatch_ends(program, graph, times);
        const auto done = [&](std::int64_t rounds) {
          return ends[static_cast<std::size_t>(rounds * round) - 1];
        };
        const std::int64_t last = flushed ? 10 : 60;
        REQUIRE(period.rounds < 6);
        CHECK(done(last) - done(last - period.rounds) == period.time);
        // With free links nothing but messages goes away.
        CHECK(period_of(with_free_links(*events)).time * period.rounds <=
              period.time * period_of(with_free_links(*events)).rounds);
        ++derived;
      }
    }
  }
  CHECK(derived > 20);
}

}  // namespace
}  // namespace stageline::messages_tests
