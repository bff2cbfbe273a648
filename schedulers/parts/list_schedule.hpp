// A priority rule run forward in virtual time and frozen into a program: whenever a device is free
// it takes, of the ops whose inputs have arrived, the one of the least rank; weight gradients fill
// what is left. A limit on what each device holds is kept (schedulers/parts/stash_bank.hpp): F
// counts from its start, I and W free their parts when they end.
//
// Each stage takes its micro-batches in order, forwards and backwards. Messages leave a device one
// after another, as in the simulator; that links may be shared is not looked at: without shared
// links and updates the times are the simulator's own, to the picosecond.
//
// Source: list scheduling, Graham 1966, doi 10.1002/j.1538-7305.1966.tb01709.x.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "schedulers/parts/stash_bank.hpp"
#include "sim/problem.hpp"

namespace stageline {

/// The rank of an op; the smaller goes first.
using Rank = std::function<std::int64_t(OpKind, int stage, std::uint32_t microbatch)>;

/// The compute ops of one step, by device, in their order.
using StepLists = std::vector<std::vector<Op>>;

/// How a device chooses. Kinds are F and I, or F and B where `split` is off.
struct ListRules {
  Rank rank;
  bool split = true;  // I and W apart; off: B
  /// By device, F and I (or B) of one step in the order to do them in; empty: by rank alone. A
  /// device waits for what is next in its plan (doing W meanwhile) unless it is past
  /// `loose_from`, or all devices are stuck: then it does what is ready.
  StepLists plan;
  std::vector<std::size_t> loose_from;  // by device, position in its plan; empty: never
  std::vector<int> ahead;  // by device, most forwards whose I has not started; empty: any
  /// By stage, most forwards whose I has not started, at least 1; empty: any.
  std::vector<std::uint32_t> in_flight;
  /// By device, so many forwards before its first I, if the limit allows; empty: 0.
  std::vector<int> warm_up;
  /// When the next F or I is known to arrive in t, a W starts only if t ≥ fill/100 of its time: 0
  /// never waits, 100 never delays an F or I.
  int fill = 0;
  /// W's wait up to so long, though, that this device's idle time stays at or below that of the
  /// device that has idled longest. Only where `fill` lets them wait.
  bool even_idle = false;
};

/// One step, and when it is done.
struct ListOutcome {
  StepLists ops;
  Time span{};      // longest device span, first start to last end
  Time makespan{};  // of compute
};

/// Compute ops of one step (updates and messages are added by the passes). Throws UsageError when a
/// limit is too small, with the smallest that works. Stages have one device each.
/// O(ops · (log devices + stages on a device)); with a limit, times the stages on a device.
ListOutcome list_schedule(const Problem& problem, const ListRules& rules, const StashLimit& limit);

/// The blank program with a step's lists, repeated for each of its steps.
Program freeze(Program program, const StepLists& step);

}  // namespace stageline
