// Distributions of the step under scenarios: table and chart.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/compare/uncertainty.hpp"
#include "tools/report/charts/chart.hpp"
#include "tools/report/text/sheet.hpp"

namespace stageline {

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

/// That shared links kept the nominal order, and how far off that is.
inline constexpr std::string_view nothing_frozen =
    "--freeze has no effect: no links are shared, so that no transfer waits for another";
std::string frozen_note(const std::string& schedule, const ScenarioSteps& steps);
/// That the scenarios vary about another step than `step`, that of the schedule; empty where they
/// do not (within 1 %).
std::string other_step_note(const std::string& schedule, const ScenarioSteps& steps, Time step);
/// That fewer scenarios than `asked` were finished.
std::string interrupted_note(const ScenarioSteps& steps, std::int64_t asked);

/// The share of the steps that take at most so long, a curve a schedule: the first `most` of the
/// order.
Chart uncertainty_chart(const std::vector<UncertainRow>& rows,
                        const std::vector<std::size_t>& order, std::size_t most);

}  // namespace stageline
