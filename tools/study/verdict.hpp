// What a search must know of a case, without all that a reader wants to see.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/study/case.hpp"
#include "tools/study/evidence/evidence.hpp"
#include "tools/study/figures/ranking.hpp"
#include "tools/study/outcome.hpp"

namespace stageline {

/// The same numbers, to the picosecond and byte, as study() gives for the case.
struct Verdict {
  Time step{};            // Outcome::step_time
  double throughput = 0;  // Outcome::throughput
  double bubble = 0;      // Outcome::bubble_fraction
  Fit fit = Fit::unknown;
  std::vector<Bytes> peak;         // by device; empty: unknown
  std::optional<MemoryNeed> need;  // tightest()
  Intervals intervals{};           // of the step and of the fullest device

  Bytes fullest() const;  // the highest of `peak`; 0: unknown
};

/// Judges cases, and keeps what they share: the orders of schedules that do not depend on costs
/// (`begins_alike` and the same settings), compiled, by schedule, knobs, shape and micro-batches.
/// Threads may call it at the same time; the answer does not depend on what is kept.
class Judge {
 public:
  Judge();
  ~Judge();
  Judge(const Judge&) = delete;
  Judge& operator=(const Judge&) = delete;

  /// Throws what study() throws.
  Verdict verdict(const Case& asked);

 private:
  Verdict judged(const Case& asked);

  struct Kept;
  std::unique_ptr<Kept> kept_;
};

}  // namespace stageline
