#include "schedulers/parts/stash_limit.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "schedulers/parts/memory_trial.hpp"
#include "sim/errors.hpp"
#include "sim/index.hpp"
#include "sim/numbers.hpp"

namespace stageline {
namespace {

constexpr int most_tries = 12;
constexpr int most_lowered = 4;  // of them by so many bytes, then to the smallest limit

// Beside stashes and messages.
Bytes standing(const Problem& problem, int device) {
  Bytes sum{};
  Bytes workspace{};
  for (std::size_t s = 0; s < problem.placement.stage.size(); ++s) {
    if (problem.placement.stage[s].replicas[0] != device) continue;
    const StageCosts& costs = problem.costs.stage[s];
    sum += costs.weights + costs.gradients + costs.optimizer_state;
    workspace = std::max({workspace, costs.workspace, costs.backward_workspace.value_or(Bytes{}),
                          costs.input_grad_workspace.value_or(Bytes{}),
                          costs.weight_grad_workspace.value_or(Bytes{})});
  }
  return sum + workspace;
}

void check_room(const Problem& problem, const StashLimit& limit, bool split, int device) {
  const auto d = as_size(device);
  const std::int64_t lacks = smallest_limit(problem, limit.unit, split, device) - limit.most[d];
  if (lacks <= 0) return;
  const Bytes memory = problem.memory[d].value_or(Bytes{});
  throw UsageError(fmt::format(
      "limit=memory: {} has {}, too little for its weights, gradients, optimizer state, workspace "
      "and messages beside one micro-batch's stash; the smallest that works is about {}",
      problem.devices[d], print(memory), print(memory + Bytes{lacks})));
}

// The limits that are tried, in bytes by device; negative: none.
class MemoryLimits {
 public:
  MemoryLimits(const Problem& problem, bool split) : problem_(problem), split_(split) {
    for (std::size_t d = 0; d < problem.devices.size(); ++d) {
      const auto device = static_cast<int>(d);
      limit_.most.push_back(-1);
      least_.push_back(smallest_limit(problem, limit_.unit, split, device));
      if (d >= problem.memory.size() || !problem.memory[d]) continue;
      limit_.most[d] = (*problem.memory[d] - standing(problem, device)).count;
      check_room(problem, limit_, split, device);
    }
  }

  const StashLimit& limit() const { return limit_; }
  bool is_limited() const {
    return std::any_of(limit_.most.begin(), limit_.most.end(), [](auto most) { return most >= 0; });
  }

  /// Where none has fitted yet. `over`: by device, what the last peak exceeds the memory by. Takes
  /// twice as much off each time, since messages may keep the peak where it is, and at last all.
  /// Throws where a device is at the smallest limit.
  void lower(const std::vector<Bytes>& over) {
    exceeds_ = limit_.most;
    for (std::size_t d = 0; d < over.size(); ++d) {
      std::int64_t& most = limit_.most[d];
      if (over[d] == Bytes{}) continue;
      if (most <= least_[d]) {
        StashLimit lacking = limit_;
        lacking.most[d] -= over[d].count;
        check_room(problem_, lacking, split_, static_cast<int>(d));
      }
      const bool takes_all =
          lowered_ >= most_lowered || over[d].count > (most - least_[d]) >> lowered_;
      most = takes_all ? least_[d] : most - (over[d].count << lowered_);
    }
    ++lowered_;
  }

  /// Goes halfway between the last limit that fits and the last that does not. `fits`: of the limit
  /// just tried. False: they are no more than a micro-batch's stash apart.
  bool halve(bool fits) {
    (fits ? fits_ : exceeds_) = limit_.most;
    if (exceeds_.empty()) return false;
    bool is_apart = false;
    for (std::size_t d = 0; d < limit_.most.size(); ++d) {
      const std::int64_t between = exceeds_[d] - fits_[d];
      limit_.most[d] = fits_[d] + between / 2;
      is_apart = is_apart || between > std::max<std::int64_t>(least_[d], 1);
    }
    return is_apart;
  }

 private:
  const Problem& problem_;
  bool split_;
  StashLimit limit_{StashLimit::Unit::bytes, {}};
  std::vector<std::int64_t> least_;
  std::vector<std::int64_t> fits_;     // empty: none yet
  std::vector<std::int64_t> exceeds_;  // likewise
  int lowered_ = 0;                    // times
};

// First the limit is lowered by what the peak exceeds the memory, until a program fits. It may then
// be lower than necessary, since fewer stashes also mean fewer messages that wait: the limits
// between it and the last that did not fit are bisected, and the fastest program that fits is kept.
Program by_memory(const Problem& problem, bool split,
                  const std::function<Program(const StashLimit&)>& make) {
  MemoryLimits limits(problem, split);
  if (!limits.is_limited()) return make({});
  std::optional<Program> best;
  std::pair<Time, Time> fastest;
  for (int i = 0; i < most_tries; ++i) {
    Program program = make(limits.limit());
    const MemoryTrial trial = try_memory(problem, program);
    const std::pair<Time, Time> times{trial.span, trial.makespan};
    if (trial.fits() && (!best || times < fastest)) {
      best = std::move(program);
      fastest = times;
    }
    if (!best) {
      limits.lower(trial.over);
    } else if (!limits.halve(trial.fits())) {
      break;
    }
  }
  if (best) return *std::move(best);
  // Not seen: one device after another would have to be too full.
  throw UsageError(
      fmt::format("limit=memory: after {} tries the messages under way still take more than the "
                  "devices' memory "
                  "has beside the stashes; give a limit in stashes, such as limit=p",
                  most_tries));
}

}  // namespace

LimitChoice read_limit(const std::string& schedule, const std::string& text, int devices) {
  if (text == "none") return {};
  if (text == "p") return {LimitChoice::Kind::stashes, devices};
  if (text == "2p") return {LimitChoice::Kind::stashes, 2 * std::int64_t{devices}};
  if (text == "memory") return {LimitChoice::Kind::memory, 0};
  const int stashes = parse_number<int>(text).value_or(0);
  if (stashes >= 1) return {LimitChoice::Kind::stashes, stashes};
  throw UsageError(fmt::format(
      "{}: limit is a whole number of stashes from 1, p, 2p, memory or none (it is \"{}\")",
      schedule, text));
}

Program under_limit(const Problem& problem, const LimitChoice& choice, bool split,
                    const std::function<Program(const StashLimit&)>& make) {
  switch (choice.kind) {
    case LimitChoice::Kind::none:
      return make({});
    case LimitChoice::Kind::stashes:
      return make(stash_limit(problem, choice.stashes));
    case LimitChoice::Kind::memory:
      return by_memory(problem, split, make);
  }
  return {};
}

}  // namespace stageline
