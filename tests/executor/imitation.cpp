// Does an imitated run keep the program's order, the predicted times of its ops and the sizes of
// its messages?
#include "tools/executor/run/imitation.hpp"

#include <doctest/doctest.h>  // behind LibTorch, which has a CHECK of its own

#include <algorithm>
#include <string>
#include <vector>

#include "schedulers/scheduler.hpp"
#include "sim/base/index.hpp"
#include "sim/wires.hpp"
#include "tools/executor/run/execute.hpp"
#include "tools/inputs/inputs.hpp"
#include "tools/study/study.hpp"

namespace stageline::executor {
namespace {

constexpr int lanes = 4;

Outcome outcome_of(const std::string& schedule, const std::optional<LinkSpec>& link) {
  Case asked;
  TraceRequest trace;
  trace.text = "uniform8";  // a millisecond a pass and layer
  asked.model = open_trace(trace);
  asked.cluster = uniform_cluster(lanes, link, std::nullopt, link);
  asked.spec = parse_schedules(schedule).at(0);
  asked.microbatches = 8;
  asked.steps = 2;
  return study(asked);
}

Job imitated_job(const Outcome& outcome) {
  Job job{outcome.program, stage_graph(outcome.program), outcome.plan.partition, {}, false};
  job.imitated = true;
  return job;
}

}  // namespace

TEST_CASE("an imitated run has the program's order, and no op is shorter than predicted") {
  for (const std::string text :
       {"1f1b", "interleaved_1f1b", "zb_h1", "chimera", "list", "pipedream",
        "1f1b:recompute=always", "pipedream:replicas=2-1-1", "seq1f1b", "layerpipe", "pipefb"}) {
    for (const auto& link : {std::optional<LinkSpec>{}, std::optional(parse_link("1GB/s,200us"))}) {
      CAPTURE(text);
      CAPTURE(link.has_value());
      const Outcome outcome = outcome_of(text, link);
      Executor executor(imitated_job(outcome), outcome.costs, std::vector<Accelerator>(lanes));
      const TaskGraph& predicted = executor.graph();
      const Execution run = executor.run();
      for (std::uint32_t lane = 0; lane < predicted.lanes.size(); ++lane) {
        if (predicted.lanes[lane].kind != LaneKind::compute) continue;
        Time free{};
        for (std::uint32_t at = predicted.lane_begin[lane]; at != predicted.lane_begin[lane + 1];
             ++at) {
          const std::uint32_t task = predicted.lane_task[at];
          const Time begin = run.times.available[task] - run.graph.duration[task];
          CHECK(begin >= free);
          CHECK(run.graph.duration[task] >= predicted.duration[task]);
          for (std::uint32_t n = predicted.need_begin[task]; n != predicted.need_begin[task + 1];
               ++n) {
            CHECK(begin >= run.times.available[predicted.need[n]]);
          }
          free = run.times.available[task];
        }
      }
      CHECK(to_seconds(makespan(run.times)) >= 0.97 * to_seconds(outcome.metrics.makespan));
      CHECK(run.losses == std::vector<double>(run.losses.size(), 0));
    }
  }
}

TEST_CASE("an imitated run that is told to stop stops, and the next one is whole") {
  const Outcome outcome = outcome_of("1f1b", std::nullopt);
  Executor executor(imitated_job(outcome), outcome.costs, std::vector<Accelerator>(lanes));
  const std::atomic<bool> stop{true};
  CHECK_THROWS_AS(executor.run(&stop), Stopped);
  CHECK(makespan(executor.run().times) >= outcome.metrics.makespan);
  for (const HeldBytes& held : executor.run_counted()) CHECK(held.peak == 0);
}

TEST_CASE("imitated messages are as large as the simulator's") {
  for (const std::string text :
       {"1f1b", "chimera", "pipedream:replicas=2-1-1", "pipefb", "seq1f1b"}) {
    CAPTURE(text);
    const Outcome outcome = outcome_of(text, parse_link("1GB/s"));
    const Job job = imitated_job(outcome);
    const TaskGraph graph = compile(job.program, outcome.costs);
    Exchange exchange(job.program, job.graph);
    Imitation imitation(job, outcome.costs, graph, exchange, [](int) { return true; });
    for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
      if (lane_of(graph.op[task].kind) == LaneKind::compute) imitation.leave(task);
    }
    int messages = 0;
    for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
      const Op op = graph.op[task];
      if (!is_send(op.kind)) continue;
      ++messages;
      const Tensors& sent =
          exchange.mailbox.at(*cargo_of(op.kind), wire_of(job.graph, op), op.microbatch);
      REQUIRE(sent.size() == 1);
      CHECK(sent[0].numel() * static_cast<std::int64_t>(sent[0].element_size()) ==
            message_bytes(job.program, outcome.costs, job.graph, op).count);
    }
    CHECK(messages > 0);
  }
}

}  // namespace stageline::executor
