// An outcome in the units of those who train language models, as text.
#pragma once

#include <string>

#include "tools/study/training_rates.hpp"

namespace stageline {

/// "975", "6.442k", "1.012M", "70.55B", "15T": four digits, and the unit of a count.
std::string count_text(double count);

/// "$2.531M", "$812.50".
std::string dollars_text(double dollars);

/// Of a number of days: "31.2 hours", "42.0 days", from two years on "14.1 years".
std::string days_text(double days);

/// A line each, with a name before it, on tokens, FLOPs, communication and the training that the
/// budget asks for; only those that are known. Empty of a model without tokens and FLOPs.
std::string training_lines(const Case& asked, const Outcome& outcome, const TrainingRates& rates,
                           const TrainingBudget& budget);

/// "6.442k tokens/s a GPU · MFU 39.3 %", as far as it is known.
std::string rates_words(const TrainingRates& rates);

}  // namespace stageline
