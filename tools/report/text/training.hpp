// An outcome in the units of those who train language models, as text.
#pragma once

#include <string>

#include "tools/study/figures/energy.hpp"
#include "tools/study/figures/training_rates.hpp"

namespace stageline::report {

/// A number of days in the largest unit of which there are two or more: "73.8 seconds",
/// "31.2 hours", "42.0 days", "14.1 years".
std::string days_text(double days);

/// A line each, with a name before it, on tokens, FLOPs, communication and the training that the
/// budget asks for; only those that are known. Empty of a model without tokens and FLOPs.
std::string training_lines(const Case& asked, const Outcome& outcome, const TrainingRates& rates,
                           const TrainingBudget& budget);

/// "energy  1.234 kJ, $0.0021 a step · …": joules and dollars a step, and those of a million
/// samples or a billion tokens, as far as they are known; with the end of the line.
std::string energy_line(const Case& asked, const StepEnergy& energy);

/// "6.442k tokens/s a GPU · MFU 39.3 %", as far as it is known.
std::string rates_words(const TrainingRates& rates);

}  // namespace stageline::report
