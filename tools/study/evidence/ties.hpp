// Which rows of an advice differ by less than the simulator can tell.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "sim/base/units.hpp"
#include "tools/study/evidence/evidence.hpp"

namespace stageline {

/// Two runs of one model on one machine share most of what is wrong with their predictions: the
/// ratio of their measured steps is nearer to the predicted one than either step. Of half of such
/// pairs it is within this share: 1,581 pairs of published dense runs of one source, software,
/// model, batch and number of GPUs, whose degrees, schedule or micro-batch differ, of 5 sources of
/// the same weight, 2026-11-30 (tests/evidence/published/ties.cpp; of experts there are few pairs).
/// Half of the pairs that are predicted to differ by less than a hundredth are in order: chance.
inline constexpr double pair_spread = 0.062;

/// A row that fits, with a range: of a language model.
struct AdvisedRow {
  std::string name;      // "zb_h1", "row 2"
  std::string schedule;  // "zb_auto:limit=2p"
  double time = 0;       // seconds a sample
  Bytes peak{};          // of the fullest device; 0: unknown
};

/// Whether published runs were held against the simulator under this schedule ("1f1b:chunks=2").
bool was_held(const std::string& schedule);

/// How many of the rows differ from the first, the fastest, by less than the simulator can tell: it
/// is one of them. 0 where there are no rows.
std::size_t rows_that_tie(std::span<const AdvisedRow> rows);

/// Notes on advice, the fastest row first: which rows tie with it, which of them needs the least
/// memory, and which schedules no published run was held against. `advised`: the row that is
/// recommended.
std::vector<std::string> notes_on_advice(std::span<const AdvisedRow> rows,
                                         const std::string& advised);

}  // namespace stageline
