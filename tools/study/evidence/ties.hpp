// Which rows of an advice differ by less than the simulator can tell.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "sim/base/units.hpp"
#include "tools/study/evidence/evidence.hpp"

namespace stageline {

/// Rows that are predicted to differ by less than this share tie: a smaller lead is worth nothing.
/// There are 1,581 pairs of published dense runs of one source, software, model, batch and number
/// of GPUs whose degrees, schedule or micro-batch differ. Those that are predicted to differ by
/// less came out in that order in 57 %, and the one predicted to be faster was no faster on the
/// mean; of those that differ by once to twice as much 71 % came out so. 2026-11-30
/// (tests/evidence/published/ties.cpp; of experts there are few pairs).
inline constexpr double tie_width = 0.03;
inline constexpr double in_order_of_ties = 0.57;

/// As tie_width, of rows of one run that differ in their cut, or in what is recomputed or
/// offloaded, alone: the same costs decide between these. Assumed.
inline constexpr double tie_width_of_run = 0.01;

/// A row that fits, with a range: of a language model.
struct AdvisedRow {
  std::string name;      // "zb_h1", "row 2"
  std::string schedule;  // "zb_auto:limit=2p"
  double time = 0;       // seconds a sample
  Bytes peak{};          // of the fullest device; 0: unknown
  std::string run{};     // its degrees, micro-batches and schedule, where rows differ in more
};

/// Whether published runs were held against the simulator under this schedule ("1f1b:chunks=2").
bool was_held(const std::string& schedule);

/// Places of the rows that differ from the first, the fastest, by less than the simulator can tell:
/// it is one of them, and the first. None where there are no rows.
std::vector<std::size_t> rows_that_tie(std::span<const AdvisedRow> rows);

/// Which of the rows that tie to take: that with the least time × memory, so that it saves a larger
/// share of memory than it is slower; of equal ones that whose schedule was held against runs. The
/// first where the memory of one of them is unknown. `ties`: as rows_that_tie() has them, one at
/// least.
std::size_t best_of_ties(std::span<const AdvisedRow> rows, std::span<const std::size_t> ties);

/// Notes on advice, the fastest row first: which rows tie with it, which of them has the least time
/// × memory, and which schedules no published run was held against. `advised`: the row that is
/// recommended.
std::vector<std::string> notes_on_advice(std::span<const AdvisedRow> rows,
                                         const std::string& advised);

}  // namespace stageline
