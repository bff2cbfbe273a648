#include "tools/study/figures/staleness_facts.hpp"

#include <algorithm>

#include "sim/base/index.hpp"
#include "sim/op.hpp"

namespace stageline {
namespace {

bool ends_backward(OpKind kind) {
  return kind == OpKind::backward || kind == OpKind::weight_grad || kind == OpKind::input_grad;
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

}  // namespace

std::vector<int> live_microbatches(const Program& program, const Timeline& timeline) {
  struct Life {
    Time start = Time::max();
    Time end{};
  };
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
  for (const std::vector<Life>& stage : lives) {
    // At one moment first those end that began before, then others begin, and last those end that
    // take no time.
    struct Change {
      Time at;
      int turn;
      int change;
    };
    std::vector<Change> changes;
    for (const Life& life : stage) {
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
    most.push_back(peak);
  }
  return most;
}

StreamFacts stream_facts(const Outcome& outcome) {
  if (outcome.facts) return outcome.facts->stream.value();
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

}  // namespace stageline
