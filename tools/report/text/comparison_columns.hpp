// The columns of a comparison: how the figures of the table are spelled in one, and which are
// shown.
#pragma once

#include <string>
#include <vector>

#include "tools/base/table.hpp"
#include "tools/report/figure_table.hpp"
#include "tools/report/text/comparison.hpp"
#include "tools/report/text/sheet.hpp"

namespace stageline::report {

/// The facts of the rows in `order`, which all have outcomes.
std::vector<FigureFacts> comparison_facts(const std::vector<Row>& rows,
                                          const std::vector<std::size_t>& order,
                                          const ComparisonView& view);

std::string cell_of(const FigureRow& figure, const FigureFacts& row);
CellFigure exact_of(const FigureRow& figure, const FigureFacts& row);

/// With the title as the view names it: "p99", "mean".
Column column_of(const FigureRow& figure, const ComparisonView& view);

/// Whether the table shows it where no columns are asked for.
bool is_shown_unasked(const FigureRow& figure, const std::vector<FigureFacts>& rows,
                      const ComparisonView& view);
/// Whether any row can fill it.
bool is_known(const FigureRow& figure, const std::vector<FigureFacts>& rows);

}  // namespace stageline::report
