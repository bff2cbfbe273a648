// How much a device may hold, as users write it: "6" stashes, "p" or "2p" of them, or "memory".
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "schedulers/parts/list_schedule.hpp"
#include "schedulers/scheduler.hpp"

namespace stageline {

/// What the knob takes.
inline constexpr const char* limit_values = "N, p, 2p, memory or none";

constexpr Knob limit_knob(const char* standard) {
  return {"limit", limit_values, standard,
          "the most a device may hold: N stashes, p or 2p of them, or the bytes its memory has "
          "room for"};
}

struct LimitChoice {
  enum class Kind : std::uint8_t { none, stashes, memory } kind = Kind::none;
  std::int64_t stashes = 0;
};

/// Throws UsageError for what is none of limit_values.
LimitChoice read_limit(const std::string& schedule, const std::string& text, int devices);

/// What a search is to make short: the longest device span, and of equal ones the makespan; or the
/// other way round.
enum class Goal : std::uint8_t { span, makespan };

/// Runs `make`, which keeps I and W apart if `split`, under the chosen limit. For `memory` that is
/// what each device has beside weights, gradients, optimizer state and workspace; where messages
/// take more than is left, less, until the simulated peak fits, and then as little less as is found
/// in 12 calls of `make`, and beside these the most stashes, the same number on all devices, that
/// are found to fit, and three fewer; by each of `others` likewise. Where there is room for the
/// stashes of all micro-batches, `make` is called once. Among programs that fit, the best by `goal`
/// as simulated (devices of unknown memory have no limit). Throws UsageError when it cannot be made
/// to fit, with what is missing.
Program under_limit(const Problem& problem, const LimitChoice& choice, bool split, Goal goal,
                    const std::function<Program(const StashLimit&)>& make,
                    const std::vector<std::function<Program(const StashLimit&)>>& others = {});

}  // namespace stageline
