// Distributions of the step under scenarios: table and chart.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/compare/uncertainty.hpp"
#include "tools/report/charts/chart.hpp"
#include "tools/report/text/sheet.hpp"

namespace stageline::report {

/// A row a schedule in the given order: nominal step, mean, quantiles, loss, share of being best,
/// and what is critical most. `width`: the most columns of a line.
std::string uncertainty_table(const std::vector<UncertainRow>& rows,
                              const std::vector<std::size_t>& order, int width);

/// The same with the figures behind the cells.
Sheet uncertainty_sheet(const std::vector<UncertainRow>& rows,
                        const std::vector<std::size_t>& order);

/// The winner by the quantile (nothing: the mean), and how sure that is, as one sentence.
std::string uncertainty_sentence(const std::vector<UncertainRow>& rows,
                                 const std::vector<std::size_t>& order,
                                 std::optional<double> share);

/// The share of the steps that take at most so long, a curve a schedule: the first `most` of the
/// order.
Chart uncertainty_chart(const std::vector<UncertainRow>& rows,
                        const std::vector<std::size_t>& order, std::size_t most);

}  // namespace stageline::report
