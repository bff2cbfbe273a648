// The tokens to train on and the price of a device as the user gives them.
#pragma once

#include <string>
#include <string_view>

#include "sim/model.hpp"
#include "tools/study/figures/training_rates.hpp"

namespace stageline {

/// "15T", "300B", "1.5e12": thousands (k), millions (M), billions (B) and trillions (T). Throws
/// UsageError, which begins with `what`, unless it is above 0 and at most 10^18.
double parse_tokens(std::string_view text, const std::string& what);

/// Throws UsageError, which begins with `what`, unless the price is above 0 and at most 10^6
/// dollars an hour.
double checked_price(double dollars, const std::string& what);

/// Throws UsageError, which begins with `what`, where a budget of tokens is asked of a model whose
/// trace does not say how many tokens a micro-batch has.
void check_budget(const TrainingBudget& budget, const Model& model, const std::string& what);

}  // namespace stageline
