// Many schedules on one setting: a row for each, and the rankings.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tools/compare/shared_case.hpp"
#include "tools/inputs/setting.hpp"
#include "tools/study/figures/ranking.hpp"
#include "tools/study/figures/training_rates.hpp"
#include "tools/study/study.hpp"

namespace stageline {

/// An outcome, or the reason why there is none.
struct Row {
  SharedCase asked;
  std::string schedule;
  std::optional<Outcome> outcome;
  std::string why_not;
  BudgetFigures figures{};  // of the outcome, for the budget of the comparison
};

/// Whether its updates are synchronous: as they ran, else as the schedule is known.
Synchrony block_of(const Row& row);

/// What tells rows of a schedule and a number of devices apart.
struct RowDifferences {
  bool cuts = false;            // as they were asked for
  bool recomputations = false;  // as they were asked for
  bool any() const { return cuts || recomputations; }
};
RowDifferences differences_of(const std::vector<Row>& rows);

/// The schedule of a row with an outcome, with what is its own where rows differ in it: "1f1b
/// (blocks)", "1f1b (blocks, full)".
std::string row_name(const Row& row, RowDifferences differences);
/// The part in brackets: "blocks, full"; empty where rows do not differ in it.
std::string own_of_row(const Row& row, RowDifferences differences);

/// Whether the rows differ in their cuts, as these were asked for.
bool cuts_differ(const std::vector<Row>& rows);

/// What outcomes hold: what ran when, too, or facts alone, as drop_spans() leaves them.
enum class Keep : std::uint8_t { spans, facts };

/// A row for each number of devices, within it each schedule and, within that, each cut and for
/// each cut each recomputation. A case
/// that cannot be run is a row; an error that every row shares is bad input, and thrown as
/// UsageError. Outcomes are without task graphs; a sweep has many rows, and takes facts alone. Up
/// to `workers` rows are simulated at a time (0: one a processor core), fewer where they are large;
/// the rows are the same with any number. `progress` is called behind each row by one thread at a
/// time, with the rows that are done and all. Once `stop` is set, only the rows that are done are
/// returned; throws CalledOff (tools/base/check_point.hpp) where none of them has an outcome.
/// `budget`: what Row::figures are for.
std::vector<Row> compare(const SettingRequest& request, const Setting& setting,
                         const std::vector<ScheduleSpec>& schedules, int workers = 0,
                         const std::function<void(std::size_t, std::size_t)>& progress = {},
                         Keep keep = Keep::spans, const std::atomic<bool>* stop = nullptr,
                         const TrainingBudget& budget = {});

/// The rows with outcomes of one kind, ranked; all numbers are indices into the comparison.
struct RankedRows {
  Synchrony synchrony = Synchrony::synchronous;
  std::vector<std::size_t> rows;           // fastest first, those that do not fit last
  std::optional<std::size_t> fastest;      // that fits
  std::optional<std::size_t> recommended;  // as rank() recommends
  std::string sentence;                    // both, and the reason
};
/// `tie`: into the rows.
RankedRows ranked(const std::vector<Row>& rows, Synchrony synchrony, double within = default_within,
                  const std::optional<Tie>& tie = {});

/// "1%" as a share of 1, from 0 to 100 %. Throws UsageError, which begins with `what`.
double parse_within(const std::string& text, const std::string& what);

}  // namespace stageline
