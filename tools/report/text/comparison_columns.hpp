// The columns of a comparison: title, definition, words and figure of each.
#pragma once

#include <string>
#include <vector>

#include "tools/base/table.hpp"
#include "tools/report/text/comparison.hpp"
#include "tools/report/text/sheet.hpp"
#include "tools/study/figures/energy.hpp"
#include "tools/study/figures/training_rates.hpp"

namespace stageline {

/// What the cells of a row show.
struct ComparisonFacts {
  const Outcome* outcome;
  TrainingRates rates;
  bool tokens;  // whether the trace counts tokens
  std::string cut;
  StepEnergy energy;
  RankBy by;
  const Uncertainty* uncertain = nullptr;  // null: no scenarios

  bool is_language() const { return tokens || rates.model_flops; }
};

/// `drop` of the column decides which are left out where a line is short: what follows from others
/// or seldom differs goes first.
struct ComparisonColumn {
  Column column;
  const char* definition;
  std::string (*cell)(const ComparisonFacts&);
  CellFigure (*figure)(const ComparisonFacts&) = nullptr;  // null: of names
  /// Shown unasked where this holds of any row; null: always.
  bool (*matters)(const ComparisonFacts&) = nullptr;
  bool language = false;  // known of language models alone
  bool seldom = false;    // known of some rows, or with some flags, alone
};

/// In the order of the table.
const std::vector<ComparisonColumn>& all_comparison_columns();

/// The facts of the rows in `order`, which all have outcomes.
std::vector<ComparisonFacts> comparison_facts(const std::vector<Row>& rows,
                                              const std::vector<std::size_t>& order,
                                              const ComparisonView& view);

/// The title of a column, as the view names it: "p99", "mean".
std::string comparison_title(const ComparisonColumn& column, const ComparisonView& view);

/// Whether the table shows it where no columns are asked for.
bool is_shown_unasked(const ComparisonColumn& column, const std::vector<ComparisonFacts>& rows,
                      const ComparisonView& view);
/// Whether any row can fill it.
bool is_known(const ComparisonColumn& column, const std::vector<ComparisonFacts>& rows);

}  // namespace stageline
