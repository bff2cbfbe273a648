// Each op has a time in a round that repeats every period (F, B, S and T of one micro-batch), and a
// device does its ops in the order of these times. They never decrease from an op to those that
// wait for it, and `Turn` orders equal ones likewise, so no program can deadlock, whatever its
// costs. With R the end of F on the last device, f and b the steps from device to device:
//
//      F on device d    R - F - (p-1-d)·f        one barrier: b = B, f = period - B
//      S                R                        two: f and b as F and B, so that f + b = period
//      T                one barrier R + period + S + B, two R + period + S
//      B on device d    R + period + S + (p-1-d)·b, or with two barriers R + 2·period + (p-1-d)·b
//
// f + b = period is why a device nearer to the head holds one micro-batch less. With one barrier T
// stands a period behind S, where the sums of all shares are there; no rule of the program says so.
#include "schedulers/parts/spread_vocabulary.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "schedulers/parts/list_schedule.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"

namespace stageline {
namespace {

// The order of ops at the same time: first those that others may wait for.
enum class Turn : std::uint8_t { forward, scores, gradient, loss, loss_back, weights, backward };

struct TimedOp {
  std::int64_t at = 0;  // picoseconds
  Turn turn{};
  Op op{};
  auto key() const { return std::make_tuple(at, turn, op.microbatch); }
};

// The longest of each pass, in picoseconds, and the steps from device to device.
struct SpreadRound {
  std::int64_t forward = 0;
  std::int64_t backward = 0;
  std::int64_t scores = 0;  // S
  std::int64_t period = 0;
  std::int64_t down = 0;  // of F
  std::int64_t up = 0;    // of B
};

SpreadRound round_of(const Costs& costs, int devices, bool two, bool recompute) {
  SpreadRound round;
  std::int64_t rest = 0;  // T
  for (int d = 0; d < devices; ++d) {
    const StageCosts& stage = nth(costs.stage, d);
    const StageCosts& share = nth(costs.stage, devices + d);
    const Time back = stage.backward + (recompute ? stage.recompute : Time{});
    const Time scores = two ? share.forward : share.forward + share.input_grad;
    const Time gradients = two ? share.backward : share.weight_grad;
    round.forward = std::max<std::int64_t>(round.forward, stage.forward.count());
    round.backward = std::max<std::int64_t>(round.backward, back.count());
    round.scores = std::max<std::int64_t>(round.scores, scores.count());
    rest = std::max<std::int64_t>(rest, gradients.count());
  }
  const std::int64_t both = round.forward + round.backward;
  round.period = both + round.scores + rest;
  round.up = round.backward;
  if (two && both > 0) {
    round.up =
        static_cast<std::int64_t>(static_cast<double>(round.period) *
                                  static_cast<double>(round.backward) / static_cast<double>(both));
    round.up = std::min(round.up, round.period);
  }
  round.down = round.period - round.up;
  return round;
}

class SpreadStep {
 public:
  SpreadStep(const Problem& problem, bool two, bool recompute)
      : devices_(static_cast<int>(problem.devices.size())),
        two_(two),
        recompute_(recompute),
        round_(round_of(problem.costs, devices_, two, recompute)),
        slots_(problem.devices.size()) {
    for (int m = 0; m < problem.microbatches; ++m) {
      for (int d = 0; d < devices_; ++d) add(d, static_cast<std::uint32_t>(m));
      if (two_) add_loss(static_cast<std::uint32_t>(m));
    }
  }

  StepLists lists() {
    StepLists lists;
    for (std::vector<TimedOp>& slots : slots_) {
      std::sort(slots.begin(), slots.end(),
                [](const TimedOp& a, const TimedOp& b) { return a.key() < b.key(); });
      std::vector<Op>& list = lists.emplace_back();
      for (const TimedOp& slot : slots) {
        if (recompute_ && slot.turn == Turn::backward) {
          list.push_back(op_of(OpKind::recompute, slot.op.stage, slot.op.microbatch));
        }
        list.push_back(slot.op);
      }
    }
    return lists;
  }

 private:
  // The end of the micro-batch's F on the last device.
  std::int64_t at_head(std::uint32_t m) const {
    return m * round_.period + (devices_ - 1) * round_.down + round_.forward;
  }

  void put(int device, std::int64_t at, Turn turn, OpKind kind, int stage, std::uint32_t m) {
    nth(slots_, device).push_back({at, turn, op_of(kind, stage, m)});
  }

  void add(int d, std::uint32_t m) {
    const std::int64_t head = at_head(m);
    const int share = devices_ + d;
    const int behind = devices_ - 1 - d;
    put(d, m * round_.period + d * round_.down, Turn::forward, OpKind::forward, d, m);
    put(d, head, Turn::scores, OpKind::forward, share, m);
    const std::int64_t summed = head + round_.period + round_.scores;
    if (two_) {
      put(d, summed, Turn::weights, OpKind::backward, share, m);
      put(d, head + 2 * round_.period + behind * round_.up, Turn::backward, OpKind::backward, d, m);
      return;
    }
    put(d, head, Turn::gradient, OpKind::input_grad, share, m);
    put(d, summed + round_.backward, Turn::weights, OpKind::weight_grad, share, m);
    put(d, summed + behind * round_.up, Turn::backward, OpKind::backward, d, m);
  }

  void add_loss(std::uint32_t m) {
    const std::int64_t at = at_head(m) + round_.period;
    put(devices_ - 1, at, Turn::loss, OpKind::forward, 2 * devices_, m);
    put(devices_ - 1, at, Turn::loss_back, OpKind::backward, 2 * devices_, m);
  }

  int devices_;
  bool two_;
  bool recompute_;
  SpreadRound round_;
  std::vector<std::vector<TimedOp>> slots_;  // by device
};

}  // namespace

VocabularyBarriers vocabulary_barriers(const Knobs& knobs) {
  const auto knob = knobs.find(std::string(vocabulary_knob.name));
  if (knob == knobs.end() || knob->second == vocabulary_knob.fallback) {
    return VocabularyBarriers::whole;
  }
  return knob->second == "one_barrier" ? VocabularyBarriers::one : VocabularyBarriers::two;
}

Placement spread_placement(int devices, VocabularyBarriers barriers) {
  const bool two = barriers == VocabularyBarriers::two;
  const std::int64_t stages = 2 * std::int64_t{devices} + (two ? 1 : 0);
  if (stages > max_stages) {
    throw UsageError(fmt::format(
        "a vocabulary over {} devices makes {} stages, and the most is {}; take fewer devices",
        devices, stages, max_stages));
  }
  Placement placement = straight_placement(devices);
  for (int d = 0; d < devices; ++d) placement.stage.push_back(nth(placement.stage, d));
  if (two) placement.stage.push_back(nth(placement.stage, devices - 1));
  return placement;
}

std::vector<StageEdge> spread_edges(int devices, VocabularyBarriers barriers) {
  std::vector<StageEdge> edges = chain_edges(devices);
  const auto add = [&](int from, int to) {
    edges.push_back({static_cast<std::uint16_t>(from), static_cast<std::uint16_t>(to)});
  };
  for (int d = 0; d < devices; ++d) add(devices - 1, devices + d);
  if (barriers == VocabularyBarriers::two) {
    for (int d = 0; d < devices; ++d) add(devices + d, 2 * devices);
  }
  return edges;
}

Program spread_order(const Problem& problem, Program program, bool recompute) {
  const VocabularyBarriers barriers = vocabulary_barriers(problem.knobs);
  const int devices = static_cast<int>(problem.devices.size());
  if (program.edges != spread_edges(devices, barriers)) {
    throw UsageError(fmt::format(
        "vocabulary={} takes a pipeline of {} stages with a share of the head on each device behind "
        "the last stage, and the stages of this model are connected otherwise; take "
        "vocabulary=whole",
        problem.knobs.at(std::string(vocabulary_knob.name)), devices));
  }
  SpreadStep step(problem, barriers == VocabularyBarriers::two, recompute);
  return freeze(std::move(program), step.lists());
}

}  // namespace stageline
