// The cheapest change after which a candidate fits into memory, found by simulation.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/planner/candidate.hpp"
#include "tools/planner/changes.hpp"
#include "tools/planner/evaluator.hpp"

namespace stageline::planner {

/// A candidate after one or two changes, as simulated, and without the copies to the host that it
/// had, where that pays.
struct ChangedCandidate {
  Candidate candidate;
  Verdict verdict;
  std::vector<ChangeKind> changes;  // up to three, ascending
  std::size_t from = 0;             // into FitQuestion::from
  /// Time of all devices a sample, in seconds: what it costs. On as many devices it grows as the
  /// step does.
  double cost = 0;
  double cost_of_from = 0;  // of the candidate that was changed

  bool fits() const { return verdict.fit != Fit::no; }
};

struct FitQuestion {
  std::vector<Candidate> from;  // that do not fit, the most promising first
  ChangeLimits limits;
  int workers = 0;  // 0: one a core; changes no result
};

struct CheapestChange {
  /// The cheapest first; of each pair of kinds of changes the cheapest one.
  std::vector<ChangedCandidate> fitting;
  std::optional<ChangedCandidate> nearest;  // nothing fits: the one that lacks least
  std::vector<ChangeKind> tried;            // kinds of which a change was simulated
  int simulated = 0;                        // candidates
  int refused = 0;                          // candidates that no simulation can run
  std::string why_not;                      // the first of those
  bool cut_short = false;                   // there were more changes than are simulated
};

/// Simulates the single changes of all candidates, then pairs of those that lower the peak: such
/// as, by what each does alone, are cheaper than the best that fits and come near to fitting. No
/// single change that fits is cheaper than the first found. At equal cost, fewer changes win, then
/// fewer devices, then the lower peak, then the order of single_changes(). Stages that need not be
/// recomputed or offloaded are left out. The work is bounded by the sizes of the cases, so that the
/// answer is the same with any number of threads, on any machine.
CheapestChange cheapest_change(Evaluator& evaluator, const FitQuestion& question);

/// Peak over limit where memory is tightest; 0 where that is unknown, very high where it grows.
double fullness(const Verdict& verdict);

}  // namespace stageline::planner
