// What the two dynamic programs behind pipedream_plan share: the times of one level.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "schedulers/partition/pipedream.hpp"

namespace stageline {

/// One level's constants. Prefix sums have L + 1 entries.
struct LevelTimes {
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();  // no such plan

  std::vector<std::int64_t> compute;  // ps of the layers before
  std::vector<std::int64_t> reduce;   // ps that 4 |w| of the layers before take
  std::vector<std::int64_t> move;     // by cut, ps that 2 a take; 0 where they do not count
  PipedreamCost cost = PipedreamCost::code;
  bool replicate = true;
  std::int64_t below = 1;  // devices in one of this level's machines

  // T of layers i..j on k machines, each of which needs `inner` for them.
  std::int64_t stage_time(std::int64_t inner, std::size_t i, std::size_t j, std::int64_t k) const {
    if (inner == never || k == 1) return inner;
    const std::int64_t work = inner * k;
    const std::int64_t sync = (reduce[j + 1] - reduce[i]) * (k - 1);
    return (cost == PipedreamCost::code ? work + sync : std::max(work, sync)) / (k * k);
  }
};

/// Counts what a dynamic program tries, which grows with the square of the layers.
class PlanSteps {
 public:
  explicit PlanSteps(const PipedreamQuestion& question) : question_(question) {}
  /// Throws UsageError once a plan would take many seconds.
  void add(std::size_t tried);

 private:
  const PipedreamQuestion& question_;
  std::uint64_t tried_ = 0;
};

/// Devices that all levels hold together.
int pipedream_devices(const PipedreamQuestion& question);

/// The times of level `number`, 0 the innermost. Throws UsageError when they add up to more than
/// the tables hold.
LevelTimes level_times(const PipedreamQuestion& question, std::size_t number);

/// Throws UsageError unless question.replicas are the devices of its one level, and at most as many
/// stages as layers.
void check_fixed_replicas(const PipedreamQuestion& question);

/// pipedream_plan where question.replicas is not empty, as check_fixed_replicas wants them.
PipedreamPlan pipedream_fixed_plan(const PipedreamQuestion& question);

/// pipedream_plan where question.rates is not empty.
PipedreamPlan pipedream_unequal_plan(const PipedreamQuestion& question);

}  // namespace stageline
