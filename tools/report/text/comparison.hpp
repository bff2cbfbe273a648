// The table of a comparison: a row per schedule, with the columns and rows that a reader asked for.
#pragma once

#include <string>
#include <vector>

#include "tools/compare/comparison.hpp"
#include "tools/compare/rank_by.hpp"
#include "tools/compare/uncertainty.hpp"
#include "tools/report/text/sheet.hpp"
#include "tools/study/figures/training_rates.hpp"

namespace stageline::report {

struct ComparisonView {
  int width = 0;                       // the most columns of a line; 0: any
  std::size_t top = 0;                 // the best rows that are shown; 0: all
  bool sweep = false;                  // of numbers of devices, which are a column then
  std::vector<std::string> columns{};  // titles, beside those that name a row; empty: all that fit
  bool known_only = false;  // of `columns`, without those of language models that no row can fill
  TrainingBudget budget{};  // what GPU-hours and cost are of
  RankBy by{};              // the order; its columns are shown
  /// Those of the rows, with --jitter and the like; else empty.
  const std::vector<Uncertainty>* uncertain = nullptr;
  bool cuts = false;            // several are compared, so that rows name theirs
  bool recomputations = false;  // as cuts
};

/// The titles of all columns, in their order.
std::vector<std::string> comparison_columns();

/// The titles of the columns that are left out where a line is short, in the order in which they
/// are.
std::vector<std::string> comparison_columns_left_out();

/// A comma list of titles, with '-' or '_' for a blank and in any case, or "all", as titles in the
/// order of the list. Throws UsageError for an empty list and for an unknown title, with the
/// nearest.
std::vector<std::string> parse_comparison_columns(const std::string& list);

/// The table of `order`. Of language models, tokens/s and what follows from it are in the place of
/// throughput and speed-up, and versions and staleness are shown where rows differ from plain
/// training. Energy and cost are shown where rows are ranked by one of them, the cost of a step
/// where no tokens are asked for; a quantile and the share of scenarios in which a row is the best,
/// where there are scenarios. With the table, a line each on rows and columns that were left out.
/// Columns that were asked for are never left out; where they are wider than a line, the table is
/// broken into bands.
std::string comparison_table(const std::vector<Row>& rows, const RankedRows& order,
                             const ComparisonView& view);

/// All columns that any row of `order` can fill, with the figures behind the cells; `shown` are
/// those that the table has at any width.
Sheet comparison_sheet(const std::vector<Row>& rows, const std::vector<std::size_t>& order,
                       const ComparisonView& view);

}  // namespace stageline::report
