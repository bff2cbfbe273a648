#include "tools/study/figures/run_figures.hpp"

#include <algorithm>

#include "sim/base/index.hpp"
#include "sim/op.hpp"
#include "sim/op_time.hpp"
#include "tools/study/pace/stash_gap.hpp"

namespace stageline {
namespace {

bool any_op(const Program& program, bool (*holds)(Op)) {
  return std::any_of(program.ops.begin(), program.ops.end(), [&](const std::vector<Op>& list) {
    return std::any_of(list.begin(), list.end(), holds);
  });
}

std::vector<std::int64_t> repeats_by_stage(const Outcome& outcome) {
  std::vector<std::int64_t> repeats(
      as_size(std::max(outcome.plan.partition.stages, outcome.program.stages())));
  for (const std::vector<Op>& list : outcome.program.ops) {
    for (const Op op : list) {
      if (op.kind == OpKind::recompute) ++nth(repeats, op.stage);
    }
  }
  return repeats;
}

Time recomputed(const Spans& lane) {
  Time sum{};
  bool in_pair = false;  // as the second op
  for (const Span& span : lane) {
    const bool overlaps = in_pair || span.op.overlapped != 0;
    in_pair = !in_pair && span.op.overlapped != 0;
    if (span.op.kind == OpKind::recompute && !overlaps) sum += span.end - span.start;
  }
  return sum;
}

double recompute_share(const Outcome& outcome) {
  if (outcome.step_time == Time{}) return 0;
  double seconds = 0;
  for (int device = 0; device < outcome.devices; ++device) {
    seconds += to_seconds(recomputed(outcome.timeline.lane(device, LaneKind::compute)));
  }
  return seconds / outcome.program.steps / (outcome.devices * to_seconds(outcome.step_time));
}

// The blocking collectives that are part of one op of that kind.
Time blocking_of(const BlockingTimes& times, OpKind kind) {
  switch (class_of(kind)) {
    case OpClass::forward:
      return times.forward;
    case OpClass::backward:
      if (kind == OpKind::backward) return times.backward;
      return kind == OpKind::input_grad ? times.input_grad : times.weight_grad;
    case OpClass::recompute:
      return times.recompute;
    case OpClass::update:
      return times.update;
    case OpClass::reduction:
    case OpClass::message:
    case OpClass::copy:
      return Time{};
  }
  return Time{};
}

bool has_collectives(const StageCosts& stage) {
  return stage.blocking != BlockingTimes{} || stage.hidden != BlockingTimes{};
}

// What the pair of the op and the next one hides of its transfers; 0 of an op by itself.
Time hidden_behind(const Outcome& outcome, std::size_t device, std::size_t at) {
  const std::vector<Op>& list = outcome.program.ops[device];
  if (!list[at].overlapped || !is_pair(list, at)) return Time{};
  const auto half = [&](Op op) {
    return pair_half_on(outcome.costs, outcome.program.placement, op, static_cast<int>(device));
  };
  return hidden_in_pair(outcome.costs, half(list[at]), half(list[at + 1]));
}

// Seconds of all devices in the collectives inside ops: what they block, and what others hide.
struct CollectiveSeconds {
  double blocking = 0;
  double hidden = 0;
};

CollectiveSeconds collective_seconds(const Outcome& outcome) {
  CollectiveSeconds seconds;
  for (std::size_t device = 0; device < outcome.program.ops.size(); ++device) {
    const std::vector<Op>& list = outcome.program.ops[device];
    for (std::size_t i = 0; i < list.size(); ++i) {
      const StageCosts& stage = outcome.costs.of(list[i]);
      const double in_pair = to_seconds(hidden_behind(outcome, device, i));
      seconds.blocking += to_seconds(blocking_of(stage.blocking, list[i].kind)) - in_pair;
      seconds.hidden += to_seconds(blocking_of(stage.hidden, list[i].kind)) + in_pair;
    }
  }
  return seconds;
}

GroupShares blocking_of_busiest(const Outcome& outcome) {
  GroupShares shares{};
  const std::vector<DeviceMetrics>& devices = outcome.metrics.device;
  if (devices.empty()) return shares;
  const auto busiest = std::max_element(
      devices.begin(), devices.end(),
      [](const DeviceMetrics& a, const DeviceMetrics& b) { return a.busy < b.busy; });
  const auto device = static_cast<std::size_t>(busiest - devices.begin());
  const double run = outcome.program.steps * to_seconds(outcome.step_time);
  const std::vector<Op>& list = outcome.program.ops[device];
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto& times = outcome.costs.of(list[i]).blocking_by;
    for (std::size_t g = 0; g < times.size(); ++g) {
      shares[g] += to_seconds(blocking_of(times[g], list[i].kind)) / run;
    }
    nth(shares, hidden_in_pairs) -= to_seconds(hidden_behind(outcome, device, i)) / run;
  }
  // Rounding may leave less than nothing of what is hidden whole.
  for (double& share : shares) share = std::max(share, 0.0);
  return shares;
}

StageFigures stage_figures(const StageCosts& costs) {
  StageFigures figures{costs.forward, costs.input_grad, costs.weight_grad, costs.backward,
                       costs.update,  costs.blocking,   costs.hidden,      std::nullopt,
                       costs.weights, costs.stash()};
  if (costs.reduction) {
    figures.reduction = {alone(*costs.reduction), costs.reduction->head_start,
                         costs.reduction->bytes};
  }
  return figures;
}

bool ends_backward(OpKind kind) {
  return kind == OpKind::backward || kind == OpKind::weight_grad || kind == OpKind::input_grad;
}

// A micro-batch in a stage, from the start of its F to the end of its backward.
struct Life {
  Time start = Time::max();
  Time end{};
};

int most_at_once(const std::vector<Life>& lives) {
  // At one moment first those end that began before, then others begin, and last those end that
  // take no time.
  struct Change {
    Time at;
    int turn;
    int change;
  };
  std::vector<Change> changes;
  for (const Life& life : lives) {
    if (life.start == Time::max()) continue;
    changes.push_back({life.start, 1, +1});
    changes.push_back({life.end, life.start < life.end ? 0 : 2, -1});
  }
  std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return a.at != b.at ? a.at < b.at : a.turn < b.turn;
  });
  int now = 0;
  int peak = 0;
  for (const Change& change : changes) peak = std::max(peak, now += change.change);
  return peak;
}

std::vector<int> live_microbatches(const Program& program, const Timeline& timeline) {
  std::vector<std::vector<Life>> lives(as_size(program.stages()),
                                       std::vector<Life>(as_size(program.total_microbatches())));
  for (std::size_t device = 0; device < timeline.devices.size(); ++device) {
    for (const Span& span : timeline.lane(static_cast<int>(device), LaneKind::compute)) {
      if (!counts_microbatches(span.op.kind)) continue;
      Life& life = lives[span.op.stage][span.op.microbatch];
      if (span.op.kind == OpKind::forward) life.start = span.start;
      if (ends_backward(span.op.kind)) life.end = std::max(life.end, span.end);
    }
  }
  std::vector<int> most;
  for (const std::vector<Life>& stage : lives) most.push_back(most_at_once(stage));
  return most;
}

// Everything on one device: weights, gradients, optimizer, one stash of every stage.
Bytes without_pipeline(const Costs& costs) {
  Bytes sum{};
  Bytes workspace{};
  for (const StageCosts& stage : costs.stage) {
    sum += stage.weights + stage.gradients + stage.optimizer_state + stage.stash();
    workspace = std::max(workspace, stage.workspace);
  }
  return sum + workspace;
}

StreamFacts stream_facts(const Outcome& outcome) {
  StreamFacts facts;
  facts.live = live_microbatches(outcome.program, outcome.timeline);
  Bytes all{};
  Bytes stale{};
  for (std::size_t s = 0; s < outcome.versions.size(); ++s) {
    const auto degree = static_cast<int>(outcome.versions[s].staleness_max);
    facts.degree.push_back(degree);
    all += outcome.costs.stage[s].weights;
    if (degree > 0) stale += outcome.costs.stage[s].weights;
  }
  if (all > Bytes{}) {
    facts.stale_share = static_cast<double>(stale.count) / static_cast<double>(all.count);
  }
  double peaks = 0;
  for (const DeviceMemory& device : outcome.memory.device) {
    peaks += static_cast<double>(device.peak.count);
  }
  const auto plain = static_cast<double>(without_pipeline(outcome.costs).count);
  if (plain > 0) facts.memory_increase = peaks / plain - 1;
  if (outcome.program.schedule == "stale_weights") {
    facts.cycles =
        static_cast<int>(outcome.program.total_microbatches()) + 2 * (outcome.program.stages() - 1);
  }
  return facts;
}

HostCopies host_copies(const Outcome& outcome) {
  bool offloads = false;
  for (std::size_t device = 0; device < outcome.program.ops.size(); ++device) {
    const std::vector<Op>& list = outcome.program.ops[device];
    const bool any = std::any_of(list.begin(), list.end(), [&](Op op) {
      return op.kind == OpKind::offload &&
             outcome.program.placement.stage[op.stage].stash_homes.empty();
    });
    if (any && !outcome.costs.network.to_host[device].is_free()) return HostCopies::over_links;
    offloads = offloads || any;
  }
  return offloads ? HostCopies::free : HostCopies::none;
}

}  // namespace

Figures figures_of(const Outcome& outcome) {
  Figures figures;
  const std::vector<StageCosts>& stages = outcome.costs.stage;
  figures.repeats = repeats_by_stage(outcome);
  if (std::any_of(figures.repeats.begin(), figures.repeats.end(),
                  [](std::int64_t count) { return count > 0; })) {
    figures.recompute = recompute_share(outcome);
  }
  if (outcome.step_time > Time{} && std::any_of(stages.begin(), stages.end(), has_collectives)) {
    const CollectiveSeconds seconds = collective_seconds(outcome);
    const double run = outcome.program.steps * (outcome.devices * to_seconds(outcome.step_time));
    figures.blocking = std::max(seconds.blocking / run, 0.0);
    figures.hidden = seconds.hidden / run;
    figures.blocking_by_group = blocking_of_busiest(outcome);
  }
  for (const StageCosts& stage : stages) figures.stage.push_back(stage_figures(stage));
  if (outcome.synchrony == Synchrony::asynchronous) figures.stream = stream_facts(outcome);
  figures.path = shares(outcome.critical_path);
  figures.is_apart = any_op(outcome.program, [](Op op) { return op.kind == OpKind::weight_grad; });
  figures.is_plain = is_plain(outcome.program);
  figures.has_pairs = any_op(outcome.program, [](Op op) { return op.overlapped != 0; });
  figures.pairs_hide = outcome.costs.pairs_hide();
  figures.pairs_derived = !outcome.costs.pair_overlap;
  figures.copies = host_copies(outcome);
  return figures;
}

}  // namespace stageline
