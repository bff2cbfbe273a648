#include "tools/study/hybrid.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

#include "sim/analysis/metrics.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tools/study/pace/bound.hpp"
#include "tools/study/run/layout.hpp"
#include "tools/study/run/run.hpp"

namespace stageline {
namespace {

__extension__ using Wide = __int128;

constexpr std::int64_t longest_stream = 1 << 14;  // micro-batches simulated, at most

[[noreturn]] void refuse_length() {
  throw UsageError(
      "the training would last longer than 106 days, the most that picoseconds in 64 bits can "
      "say; give fewer --iterations");
}

Time narrowed(Wide picoseconds) {
  if (picoseconds > std::numeric_limits<std::int64_t>::max()) refuse_length();
  return Time{static_cast<std::int64_t>(picoseconds)};
}

// time · numerator / denominator, rounded once.
Time checked(Time time, std::int64_t numerator, std::int64_t denominator = 1) {
  const std::optional<Time> result = scaled(time, numerator, denominator);
  if (!result) refuse_length();
  return *result;
}

double speed_ratio(Time a, Time b) {
  return b == Time{} ? 1 : static_cast<double>(a.count()) / static_cast<double>(b.count());
}

void check(PipelinedShare share) {
  if (share.all < 1) {
    throw UsageError(fmt::format("hybrid training needs at least 1 iteration, not {}", share.all));
  }
  if (share.pipelined < 0 || share.pipelined > share.all) {
    throw UsageError(fmt::format("{} of {} iterations cannot be pipelined; give 0 to {}",
                                 share.pipelined, share.all, share.all));
  }
}

// An asynchronous schedule as one stream of mini-batches, of any length. A mini-batch is what an
// update follows: one micro-batch, or those of a step.
struct Stream {
  Case asked;
  Layout layout;
  Costs costs;
  bool by_step = false;
  int minibatch = 1;  // micro-batches
};

Stream stream_of(const Case& asked) {
  Stream stream{asked, lay_out(asked), {}, false, 1};
  stream.costs = costs_of(asked, stream.layout);
  stream.by_step =
      updates_by_step(program_of(asked, stream.layout, stream.costs, 1).settings.weights);
  if (stream.by_step) stream.minibatch = asked.microbatches;
  return stream;
}

Program program_of(const Stream& stream, std::int64_t minibatches) {
  Case asked = stream.asked;
  const auto count = static_cast<int>(minibatches);
  if (!stream.by_step) asked.microbatches = count;
  return program_of(asked, stream.layout, stream.costs, stream.by_step ? count : 1);
}

Run run(const Stream& stream, std::int64_t minibatches) {
  return run_of(program_of(stream, minibatches), stream.costs);
}

// The makespan of a stream, and the length of a shorter one that begins and ends alike.
struct Extended {
  Time time{};
  std::int64_t alike = 0;
};

// Makespans by number of mini-batches, made when they are asked for.
struct Lengths {
  const Stream& stream;
  std::map<std::int64_t, Time> known;

  Time of(std::int64_t minibatches) {
    if (minibatches == 0) return Time{};
    const auto found = known.find(minibatches);
    if (found != known.end()) return found->second;
    const Run ran = run(stream, minibatches);
    return known[minibatches] = makespan(ran.times);
  }

  // With `period` in iterations. Where a stream of n has settled, n + c takes c periods more: two
  // such steps in a row are the evidence. The transient has no useful bound, so n doubles.
  std::optional<Extended> extended(std::int64_t minibatches, const Period& period, int devices) {
    const std::int64_t cycle = period.rounds;
    for (std::int64_t from = std::int64_t{8} * devices; from * stream.minibatch <= longest_stream;
         from *= 2) {
      for (const std::int64_t cycles : {1, 2, 3, 4, 6}) {
        const std::int64_t more = cycles * cycle;
        const Time growth = checked(period.time, cycles);
        if (minibatches <= from + 2 * more) return Extended{of(minibatches), minibatches};
        const std::int64_t start = from + (minibatches - from) % more;
        if (of(start + more) - of(start) != growth) continue;
        if (of(start + 2 * more) - of(start + more) != growth) continue;
        const Wide cycles_more = (minibatches - start) / more;
        return Extended{narrowed(of(start).count() + cycles_more * growth.count()), start};
      }
    }
    return std::nullopt;
  }
};

void check_schedule(const Case& asked) {
  if (asked.program) {
    throw UsageError(fmt::format(
        "hybrid training makes streams of any length, and {} is a program of one; take a schedule by "
        "its name",
        title(asked.spec)));
  }
  const bool flush = asked.weights && *asked.weights == WeightRule::flush;
  if (asked.spec.scheduler->synchrony == Synchrony::asynchronous && !flush) return;
  std::string others;
  for (const Scheduler* const one : schedulers()) {
    if (one->synchrony != Synchrony::asynchronous) continue;
    others += (others.empty() ? "" : ", ") + std::string(one->name);
  }
  throw UsageError(fmt::format(
      "hybrid training leaves a pipeline with stale weights for plain training, but {} {}; take an "
      "asynchronous schedule ({}){}",
      asked.spec.scheduler->name,
      flush ? "with --weights flush waits after each step" : "is synchronous and has none", others,
      flush ? " and leave --weights out" : ""));
}

// Without a pipeline, and without what the schedule leaves out (the gradient of the model's input).
Time iteration_on_one_device(const Stream& stream) {
  return time_alone(stream.asked, run(stream, 1).program, stream.layout.plan.partition,
                    stream.minibatch, 1);
}

// Until the first mini-batch is done, and from the last forward of the first stage to the end.
void measure_ends(HybridStudy& study, const Stream& stream, std::int64_t minibatches) {
  const Run ran = run(stream, minibatches);
  study.fill = microbatch_ends(ran.program, ran.graph, ran.times)[as_size(stream.minibatch) - 1];
  Time entered{};
  for (std::uint32_t task = 0; task < ran.graph.tasks(); ++task) {
    const Op op = ran.graph.op[task];
    if (op.kind != OpKind::forward || op.stage != 0) continue;
    entered = std::max(entered, end_of(ran.graph, ran.times, task));
  }
  study.drain = makespan(ran.times) - entered;
}

}  // namespace

Hybrid hybrid_of(Time nonpipelined, Time pipelined, PipelinedShare share, Time fill_and_drain) {
  check(share);
  const Wide parts = static_cast<Wide>(pipelined.count()) * share.pipelined +
                     static_cast<Wide>(nonpipelined.count()) * (share.all - share.pipelined);
  Wide total = (parts + share.all / 2) / share.all;
  if (share.pipelined > 0) total += fill_and_drain.count();
  Hybrid hybrid;
  hybrid.total = narrowed(total);
  hybrid.over_nonpipelined = speed_ratio(nonpipelined, hybrid.total);
  hybrid.over_pipelined = speed_ratio(
      narrowed(static_cast<Wide>(pipelined.count()) + fill_and_drain.count()), hybrid.total);
  return hybrid;
}

std::optional<HybridStudy> hybrid_study(const Case& asked, PipelinedShare share, int curve_steps) {
  check(share);
  check_schedule(asked);
  const std::optional<Bound> bound = bound_of(asked);
  if (!bound) return std::nullopt;

  HybridStudy study;
  const Stream stream = stream_of(asked);
  study.minibatch = stream.minibatch;
  study.nonpipelined = iteration_on_one_device(stream);
  study.period = bound->period;
  study.period.rounds *= bound->round;  // in micro-batches, and then in iterations
  const std::int64_t common = std::gcd(study.period.rounds, std::int64_t{stream.minibatch});
  study.period.rounds /= common;
  study.period.time *= stream.minibatch / common;
  const Time nonpipelined = checked(study.nonpipelined, share.all);

  Lengths lengths{stream, {}};
  const int devices = static_cast<int>(asked.cluster.devices.size());
  const auto pipelined = [&](std::int64_t iterations) {
    return lengths.extended(iterations, study.period, devices);
  };
  const std::optional<Extended> all = pipelined(share.all);
  if (!all) return std::nullopt;
  const auto point = [&](PipelinedShare at) -> std::optional<HybridPoint> {
    const std::optional<Extended> first = pipelined(at.pipelined);
    if (!first) return std::nullopt;
    HybridPoint made{at, {}};
    made.hybrid.total =
        narrowed(static_cast<Wide>(first->time.count()) +
                 static_cast<Wide>(study.nonpipelined.count()) * (at.all - at.pipelined));
    made.hybrid.over_nonpipelined = speed_ratio(nonpipelined, made.hybrid.total);
    made.hybrid.over_pipelined = speed_ratio(all->time, made.hybrid.total);
    return made;
  };
  const std::optional<HybridPoint> asked_point = point(share);
  if (!asked_point) return std::nullopt;
  study.asked = *asked_point;
  for (int step = 0; step <= curve_steps; ++step) {
    const Wide part = static_cast<Wide>(share.all) * step + curve_steps / 2;
    const auto one = point({static_cast<std::int64_t>(part / curve_steps), share.all});
    if (!one) return std::nullopt;
    study.curve.push_back(*one);
  }
  if (share.pipelined == 0) return study;

  const Extended first = *pipelined(share.pipelined);
  measure_ends(study, stream, first.alike);
  const Time steady = checked(study.period.time, share.pipelined, study.period.rounds);
  study.fill_and_drain = std::max(Time{}, first.time - steady);
  return study;
}

}  // namespace stageline
