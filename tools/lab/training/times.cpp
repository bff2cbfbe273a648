// Simulates a whole training as one stream.
//
//     step      1 …                     N │ N + 1 …
//     pipeline  ├ fill ┤ … ├─── drain ───┤
//     alone                               ├ F, B and U of every layer ┤ …
#include "tools/lab/training/times.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/interference.hpp"
#include "sim/lower/passes.hpp"
#include "tools/study/run/layout.hpp"

namespace stageline::lab {
namespace {

__extension__ using Wide = __int128;

constexpr std::int64_t most_ops = 1'000'000;  // of a device, messages not counted

// The parts prepared before a step is simulated.
struct Prepared {
  Layout layout;
  Costs costs;
  WeightRule weights = WeightRule::flush;
};

Prepared prepare(const Case& asked) {
  if (asked.program) {
    throw UsageError(
        "a given program has the length it has and cannot be made as long as a training; "
        "name its --schedule instead");
  }
  Prepared prepared;
  prepared.layout = checked_layout(asked);
  prepared.costs = costs_of(asked, prepared.layout);
  prepared.weights = program_of(asked, prepared.layout, prepared.costs, 1).settings.weights;
  return prepared;
}

[[noreturn]] void refuse_length(std::int64_t steps, int microbatches, std::int64_t ops,
                                const std::string& where) {
  throw UsageError(fmt::format(
      "{} steps of {} micro-batch{} through the pipeline make {} ops {}, and at most {} a device "
      "are simulated as one program (messages not counted); pipeline fewer steps",
      steps, microbatches, microbatches == 1 ? "" : "es", ops, where, most_ops));
}

// Checks the length before any op is written: at least a forward and a backward of every stage.
void check_length(std::int64_t steps, int microbatches, const Prepared& prepared,
                  std::size_t devices) {
  const Wide ops = Wide{2} * steps * microbatches * prepared.layout.sequence_chunks *
                   prepared.layout.placement.stages();
  const auto each = static_cast<Wide>(devices);
  if (ops <= most_ops * each) return;
  constexpr Wide shown = std::numeric_limits<std::int64_t>::max();
  refuse_length(steps, microbatches, static_cast<std::int64_t>(std::min(ops / each, shown)),
                "a device on average, updates not counted");
}

// The order of `steps` optimizer steps: as many steps of the case, or of a stream one step of as
// many mini-batches. An order that was written for a flush repeats by its own steps.
Case stream_of(const Case& asked, std::int64_t steps, WeightRule weights) {
  Case stream = asked;
  if (updates_by_step(weights)) {
    stream.steps = static_cast<int>(steps);
  } else if (asked.spec.scheduler->synchrony == Synchrony::asynchronous) {
    stream.microbatches = static_cast<int>(steps);
    stream.steps = 1;
  } else {
    if (steps % asked.microbatches != 0) {
      throw UsageError(fmt::format(
          "{} orders {} micro-batches at a time, each a step with --weights {}, so the number of pipelined steps must be a multiple of {}, not {}",
          asked.spec.scheduler->name, asked.microbatches, name(weights), asked.microbatches,
          steps));
    }
    stream.steps = static_cast<int>(steps / asked.microbatches);
  }
  return stream;
}

TrainingProgram stream_program(const Case& asked, std::int64_t steps, Prepared prepared) {
  const int microbatches = updates_by_step(prepared.weights) ? asked.microbatches : 1;
  check_length(steps, microbatches, prepared, asked.cluster.devices.size());
  TrainingProgram made;
  made.asked = stream_of(asked, steps, prepared.weights);
  made.costs = std::move(prepared.costs);
  made.partition = prepared.layout.plan.partition;
  made.program =
      complete(program_of(made.asked, prepared.layout, made.costs, made.asked.steps), made.costs);
  for (std::size_t device = 0; device < made.program.ops.size(); ++device) {
    const std::vector<Op>& list = made.program.ops[device];
    const std::int64_t ops = std::count_if(
        list.begin(), list.end(), [](Op op) { return lane_of(op.kind) == LaneKind::compute; });
    if (ops > most_ops) {
      refuse_length(steps, microbatches, ops,
                    fmt::format("on device {}", made.program.devices[device]));
    }
  }
  validate(made.program);
  made.graph = compile(made.program, made.costs);
  made.times = simulate_together(made.graph, {made.costs.slowdown, made.costs.network.host});
  made.timeline = timeline_of(made.program, made.graph, made.times);
  if (updates_by_step(prepared.weights)) {
    check_staleness(spelled(asked.spec), prepared.weights,
                    versions_of(made.program, made.timeline));
  }
  return made;
}

// One step without the pipeline, and without the ops that the schedule leaves out.
Time alone(const Case& asked, const Prepared& prepared, int microbatches) {
  const Program program = program_of(asked, prepared.layout, prepared.costs, 1);
  return time_alone(asked, program, prepared.layout.plan.partition, microbatches, 1);
}

void check_steps(std::int64_t steps) {
  if (steps < 1) {
    throw UsageError(fmt::format("a training has at least 1 step (this one has {})", steps));
  }
}

}  // namespace

TrainingProgram training_program(const Case& asked, std::int64_t steps) {
  check_steps(steps);
  return stream_program(asked, steps, prepare(asked));
}

int microbatches_of_step(const Case& asked) {
  return updates_by_step(prepare(asked).weights) ? asked.microbatches : 1;
}

bool steps_gather(const TrainingProgram& training) {
  return updates_by_step(training.program.settings.weights);
}

std::vector<Time> step_ends_of(const TrainingProgram& training) {
  const Program& program = training.program;
  std::vector<std::uint32_t> group;  // micro-batches of an update, by stage
  for (int stage = 0; stage < program.stages(); ++stage) {
    group.push_back(static_cast<std::uint32_t>(microbatches_per_update(program, stage)));
  }
  const std::uint32_t all = program.total_microbatches();
  std::vector<Time> ends(all);
  for (std::uint32_t task = 0; task < training.graph.tasks(); ++task) {
    const Op op = training.graph.op[task];
    if (op.kind != OpKind::update) continue;
    const Time end = end_of(training.graph, training.times, task);
    const std::uint64_t from = std::uint64_t{op.microbatch} * group[op.stage];
    const std::uint64_t to = std::min<std::uint64_t>(from + group[op.stage], all);
    for (std::uint64_t m = from; m < to; ++m) ends[m] = std::max(ends[m], end);
  }
  const int in_step =
      steps_gather(training) ? program.microbatches : program.settings.sequence_chunks;
  std::vector<Time> by_step;
  Time last{};
  for (std::uint32_t m = 0; m < all; ++m) {
    last = std::max(last, ends[m]);
    if ((m + 1) % static_cast<std::uint32_t>(in_step) == 0) by_step.push_back(last);
  }
  return by_step;
}

Time one_device_step(const Case& asked, int microbatches) {
  return alone(asked, prepare(asked), microbatches);
}

std::vector<Time> hybrid_step_ends(const Case& asked, std::int64_t steps, std::int64_t pipelined) {
  check_steps(steps);
  if (pipelined < 0 || pipelined > steps) {
    throw UsageError(
        fmt::format("{} of {} steps cannot be pipelined; give 0 to {}", pipelined, steps, steps));
  }
  Prepared prepared = prepare(asked);
  const Time plain =
      alone(asked, prepared, updates_by_step(prepared.weights) ? asked.microbatches : 1);
  std::vector<Time> ends;
  Time now{};
  if (pipelined > 0) {
    const TrainingProgram training = stream_program(asked, pipelined, std::move(prepared));
    ends = step_ends_of(training);
    now = makespan(training.times);  // later steps wait until the pipeline is empty
  }
  const std::int64_t others = steps - pipelined;
  constexpr Wide most = std::numeric_limits<std::int64_t>::max();
  if (static_cast<Wide>(plain.count()) * others + now.count() > most) {
    throw UsageError(
        fmt::format("{} steps of {} on one device would last longer than 106 days, "
                    "the most that picoseconds in 64 bits can hold; train fewer",
                    others, print(plain)));
  }
  ends.reserve(as_size(steps));
  for (std::int64_t step = 0; step < others; ++step) ends.push_back(now += plain);
  return ends;
}

}  // namespace stageline::lab
