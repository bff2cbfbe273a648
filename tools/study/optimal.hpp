// The shortest order of a step under a limit of memory, and the proof: bound, search, gap.
#pragma once

#include <string>

#include "schedulers/scheduler.hpp"
#include "schedulers/search/order_search.hpp"
#include "tools/study/case.hpp"
#include "tools/study/outcome.hpp"

namespace stageline {

struct Optimal {
  Case asked;       // with the order as its program
  Outcome outcome;  // of that
  bool for_span = true;
  std::string limit;  // in words: "4 stashes", "the devices' memory"; empty: none
  /// What is to be short, compute alone: the longest device span, or the makespan.
  Time value{};
  Time bound{};             // no order under the limit is shorter
  std::string found_by;     // in words
  std::string bound_by;     // in words
  std::int64_t states = 0;  // that branch and bound has looked at
  bool is_stopped = false;  // by `stop`, before it was proved

  bool is_proved() const { return value <= bound; }
  /// How far the value may be from the optimum, as a share of the bound.
  double gap() const;
};

/// The schedule of the case is zb_auto, whose knobs are the question: limit, goal, placement,
/// chunks. First the bound in closed form and zb_auto's own order, then branch and bound until it
/// has proved the best one or `stop` says so. The same on every machine where it was not stopped.
/// Throws UsageError for what changes the ops of a step (recomputation, copies to the host), and
/// what study() throws.
Optimal optimal(const Case& asked, const BranchStop& stop);

/// "27.00 ms, optimal: no order under 4 stashes is shorter", or with the bound and the gap.
std::string in_words(const Optimal& found);

}  // namespace stageline
