// The cut that is best for a schedule on these links and memories, found by simulation.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tools/study/case.hpp"
#include "tools/study/verdict.hpp"

namespace stageline::planner {

/// Cuts as --partition takes them ("0-5,6-11,12-"), distinct, the most promising first, at most
/// `most`: by dynamic programming over the stages with the micro-batches that each has in flight
/// under the schedule (simulated once with equal costs), its memory, and the messages on its edges:
/// the shortest slowest stage, the lightest first stage, the lightest last one, the least memory,
/// the fewest bytes sent; and what the plain partitioners say ("balanced", "blocks" where the model
/// has them). In a model with blocks, `whole_blocks` keeps them whole. `asked.partition` is
/// ignored. Throws UsageError where no cut has so many stages.
std::vector<std::string> promising_cuts(const Case& asked, int most, bool whole_blocks = false);

struct SearchedCut {
  std::string partition;  // as --partition takes it
  Verdict verdict;
  Verdict first;      // of `balanced`, with whole blocks of `blocks`; where that cannot run, of the
                      // first cut that can; the same as `verdict` where nothing better was found
  std::string plain;  // which of the two `first` is of; empty: of neither
  int simulated = 0;  // cuts
  bool all = false;   // every cut was simulated: the best there is
};

/// Simulates the promising cuts, then moves boundaries by one layer (of two neighbouring stages, or
/// of several at once) as long as that makes the step shorter, or what is missing less, and at most
/// `most` cuts are simulated; every cut where there are no more than that. A cut that fits goes
/// before one that does not (of those the one that lacks less), then the shorter step, then the
/// lower fullest peak, then the cut that was found first. Never worse than any of the promising
/// cuts. The same with any number of threads. Throws what promising_cuts() throws, and what the
/// simulation of the first cut throws where none can run.
SearchedCut search_cut(const Case& asked, Judge& judge, int most = 400, bool whole_blocks = false);

/// Whether the text of --partition is "simulated", with its options behind a colon
/// ("simulated:most=1000", "simulated:blocks").
bool is_simulated(const std::string& partition);

/// Returns a case whose `partition` is_simulated() with the cut that the search found, others as
/// they are. A case whose schedule cuts the model itself is returned as it is, for study() to
/// refuse. One that no cut lets run comes with a plain cut, for study() to say why. Throws
/// UsageError for a given program, and for options that it does not know.
Case with_searched_cut(Case asked);

}  // namespace stageline::planner
