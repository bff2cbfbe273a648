#include "schedulers/parts/stash_bank.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"

namespace stageline {
namespace {

std::int64_t held_by(const StageCosts& stage, StashLimit::Unit unit, bool split) {
  if (unit == StashLimit::Unit::stashes) return 1;
  return (split ? stage.stash_split() : stage.stash()).count;
}

void check_limit(const Problem& problem, const StashLimit& limit, bool split, int device) {
  const std::int64_t most = nth(limit.most, device);
  const std::int64_t least = smallest_limit(problem, limit.unit, split, device);
  if (most >= least) return;
  const std::string& name = nth(problem.devices, device);
  if (limit.unit == StashLimit::Unit::stashes) {
    throw UsageError(fmt::format(
        "limit={} is too small for {}, which holds a stash of each of its stages before the first "
        "backward; the smallest that works is {}",
        most, name, least));
  }
  throw UsageError(fmt::format(
      "{} of memory for stashes are too little for {}, which holds one micro-batch of each of its "
      "stages before the first backward; the smallest that works is {}",
      print(Bytes{most}), name, print(Bytes{least})));
}

}  // namespace

StashLimit stash_limit(const Problem& problem, std::int64_t stashes) {
  return {StashLimit::Unit::stashes, std::vector<std::int64_t>(problem.devices.size(), stashes)};
}

std::int64_t smallest_limit(const Problem& problem, StashLimit::Unit unit, bool split, int device) {
  std::int64_t sum = 0;
  for (std::size_t s = 0; s < problem.placement.stage.size(); ++s) {
    if (problem.placement.stage[s].replicas[0] != device) continue;
    sum += held_by(problem.costs.stage[s], unit, split);
  }
  return sum;
}

StashBank::StashBank(const Problem& problem, const StashLimit& limit, bool split)
    : count_(static_cast<std::uint32_t>(problem.microbatches)), devices_(problem.devices.size()) {
  const bool parts = split && limit.unit == StashLimit::Unit::bytes;
  for (std::size_t s = 0; s < problem.placement.stage.size(); ++s) {
    Stage stage;
    stage.device = problem.placement.stage[s].replicas[0];
    const StageCosts& costs = problem.costs.stage[s];
    stage.holds = held_by(costs, limit.unit, split);
    stage.backward_frees = !split  ? stage.holds
                           : parts ? stage.holds - costs.stash_after_input_grad().count
                                   : 0;
    stage.weight_frees = stage.holds - stage.backward_frees;
    nth(devices_, stage.device).stages.push_back(static_cast<int>(s));
    stages_.push_back(stage);
  }
  for (std::size_t d = 0; d < std::min(devices_.size(), limit.most.size()); ++d) {
    if (limit.most[d] < 0) continue;
    check_limit(problem, limit, split, static_cast<int>(d));
    devices_[d].limited = true;
    devices_[d].limit = limit.most[d];
    devices_[d].held.assign(count_, 0);
  }
}

bool StashBank::fits(int stage) const {
  const Stage& chosen = at(stage);
  const Device& here = nth(devices_, chosen.device);
  if (!here.limited) return true;
  const std::int64_t free = here.limit - here.used - chosen.holds;
  if (free < 0 || here.stages.size() == 1) return free >= 0;
  // Between two stages' next micro-batches all lack the same: the first of each stretch decides.
  const auto next = [&](int i) { return at(i).forwards + (i == stage ? 1 : 0); };
  for (const int j : here.stages) {
    const std::uint32_t waiting = next(j);
    if (waiting >= count_) continue;
    std::int64_t lacks = 0;
    for (const int i : here.stages) {
      if (next(i) <= waiting) lacks += at(i).holds;
    }
    std::int64_t comes_free = at(j).older;
    if (j == stage) comes_free += here.held[chosen.forwards];
    if (chosen.forwards < waiting) comes_free += chosen.holds;
    if (free + comes_free < lacks) return false;
  }
  return true;
}

void StashBank::forward(int stage) {
  Stage& chosen = at(stage);
  Device& here = nth(devices_, chosen.device);
  const std::uint32_t m = chosen.forwards++;
  if (!here.limited) return;
  here.used += chosen.holds;
  here.held[m] += chosen.holds;
  for (const int j : here.stages) {
    if (j != stage && m < at(j).forwards) at(j).older += chosen.holds;
  }
  chosen.older += here.held[m];
}

void StashBank::backward(int stage, std::uint32_t microbatch) {
  release(stage, microbatch, at(stage).backward_frees);
}

void StashBank::weight(int stage, std::uint32_t microbatch) {
  release(stage, microbatch, at(stage).weight_frees);
}

void StashBank::release(int stage, std::uint32_t microbatch, std::int64_t amount) {
  Device& here = nth(devices_, at(stage).device);
  if (!here.limited || amount == 0) return;
  here.used -= amount;
  here.held[microbatch] -= amount;
  for (const int j : here.stages) {
    if (microbatch < at(j).forwards) at(j).older -= amount;
  }
}

}  // namespace stageline
