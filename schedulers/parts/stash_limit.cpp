#include "schedulers/parts/stash_limit.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "schedulers/parts/memory_trial.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/base/numbers.hpp"

namespace stageline {
namespace {

constexpr int most_tries = 12;
constexpr std::int64_t most_fewer = 3;
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

  /// Whether a device has no room for the stashes of all micro-batches.
  bool binds() const {
    for (std::size_t d = 0; d < limit_.most.size(); ++d) {
      if (limit_.most[d] >= 0 && limit_.most[d] / problem_.microbatches < least_[d]) return true;
    }
    return false;
  }

  /// As many micro-batches' stashes as each device has room for.
  std::int64_t stashes() const {
    std::int64_t most = problem_.microbatches;
    for (std::size_t d = 0; d < limit_.most.size(); ++d) {
      if (limit_.most[d] < 0) continue;
      most = std::min(most, limit_.most[d] / std::max<std::int64_t>(least_[d], 1));
    }
    return most;
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

// The best program so far of those that fit.
class BestFitting {
 public:
  BestFitting(const Problem& problem, Goal goal) : problem_(problem), goal_(goal) {}

  /// By device, what its peak exceeds the memory by.
  MemoryTrial offer(Program program) {
    MemoryTrial trial = try_memory(problem_, program);
    std::pair<Time, Time> times{trial.span, trial.makespan};
    if (goal_ == Goal::makespan) std::swap(times.first, times.second);
    if (trial.fits() && (!program_ || times < times_)) {
      program_ = std::move(program);
      times_ = times;
    }
    return trial;
  }

  std::optional<Program>& program() { return program_; }

 private:
  const Problem& problem_;
  Goal goal_;
  std::optional<Program> program_;
  std::pair<Time, Time> times_;
};

// The most stashes, as many on all devices, whose program fits, and the next fewer, which may take
// less time. A limit in bytes that messages have lowered may leave one device fewer than another
// has without need. `likely`: how many there is room for; most often it is the answer, or next to
// it, and each try is a search.
void offer_equal_stashes(const Problem& problem, std::int64_t likely,
                         const std::function<Program(const StashLimit&)>& make, BestFitting& best) {
  const auto devices = std::max<std::int64_t>(static_cast<std::int64_t>(problem.devices.size()), 1);
  const std::int64_t chunks = (problem.placement.stages() + devices - 1) / devices;
  const std::int64_t all = problem.microbatches * chunks;
  std::set<std::int64_t> offered;
  // Whether as many are too many; also empty: too few for this schedule.
  const auto exceeds = [&](std::int64_t stashes) -> std::optional<bool> {
    offered.insert(stashes);
    try {
      return !best.offer(make(stash_limit(problem, stashes))).fits();
    } catch (const UsageError&) {
      return std::nullopt;
    }
  };
  std::int64_t fits = 0;  // no more than fit, or too few
  std::int64_t too_many = all + 1;
  std::int64_t step = 1;
  std::int64_t stashes = std::clamp<std::int64_t>(likely, 1, all);
  while (fits + 1 < too_many) {
    (exceeds(stashes).value_or(false) ? too_many : fits) = stashes;
    if (too_many > all) {
      stashes = std::min(fits + step, all);
    } else if (fits == 0) {
      stashes = std::max<std::int64_t>(too_many - step, 1);
    } else {
      stashes = fits + (too_many - fits) / 2;
    }
    step *= 2;
  }
  // Where there is room for more than keeps all devices busy, far fewer may take less time.
  for (std::int64_t half = all / 2; half > devices; half /= 2) {
    if (half < fits && offered.count(half) == 0) exceeds(half);
  }
  for (std::int64_t fewer = 1; fewer <= most_fewer && fits > fewer; ++fewer) {
    if (offered.count(fits - fewer) > 0) continue;
    if (!exceeds(fits - fewer).has_value()) return;
  }
}

// First the limit is lowered by what the peak exceeds the memory, until a program fits. It may then
// be lower than necessary, since fewer stashes also mean fewer messages that wait: the limits
// between it and the last that did not fit are bisected, then equal numbers of stashes are tried:
// also where the first limit fits at once, since a search may find less with more room.
void offer_by_memory(const Problem& problem, bool split,
                     const std::function<Program(const StashLimit&)>& make, BestFitting& best) {
  MemoryLimits limits(problem, split);
  const std::int64_t likely = limits.stashes();
  std::optional<UsageError> lacking;
  bool fitted = false;
  try {
    for (int i = 0; i < most_tries; ++i) {
      const MemoryTrial trial = best.offer(make(limits.limit()));
      if (i == 0 && trial.fits()) {
        if (!limits.binds()) return;
        break;
      }
      fitted = fitted || trial.fits();
      if (!fitted) {
        limits.lower(trial.over);
      } else if (!limits.halve(trial.fits())) {
        break;
      }
    }
  } catch (const UsageError& error) {
    lacking = error;
  }
  offer_equal_stashes(problem, likely, make, best);
  if (!best.program() && lacking) throw UsageError(*lacking);
}

// The fastest program that fits.
Program by_memory(const Problem& problem, bool split, Goal goal,
                  const std::function<Program(const StashLimit&)>& make,
                  const std::vector<std::function<Program(const StashLimit&)>>& others) {
  if (!MemoryLimits(problem, split).is_limited()) return make({});
  BestFitting best(problem, goal);
  std::optional<UsageError> lacking;
  const auto offer = [&](const std::function<Program(const StashLimit&)>& each) {
    try {
      offer_by_memory(problem, split, each, best);
    } catch (const UsageError& error) {
      if (!lacking) lacking = error;
    }
  };
  offer(make);
  for (const auto& each : others) offer(each);
  if (best.program()) return *std::move(best.program());
  if (lacking) throw UsageError(*lacking);
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

Program under_limit(const Problem& problem, const LimitChoice& choice, bool split, Goal goal,
                    const std::function<Program(const StashLimit&)>& make,
                    const std::vector<std::function<Program(const StashLimit&)>>& others) {
  switch (choice.kind) {
    case LimitChoice::Kind::none:
      return make({});
    case LimitChoice::Kind::stashes:
      return make(stash_limit(problem, choice.stashes));
    case LimitChoice::Kind::memory:
      return by_memory(problem, split, goal, make, others);
  }
  return {};
}

}  // namespace stageline
