// Writes results as JSON. The keys are documented in tools/report/json/README.md and stable.
#pragma once

#include <string>
#include <vector>

#include "tools/compare/comparison.hpp"
#include "tools/inputs/setting.hpp"
#include "tools/study/study.hpp"

namespace stageline {

/// One result as a JSON object, times in seconds (`…_s`) and as exact integers of picoseconds
/// (`…_ps`); `timeline`: with every span.
std::string outcome_json(const Setting& setting, const Case& asked, const Outcome& outcome,
                         bool timeline);

/// The object of a case without an answer: `schedule`, `devices` and the reason as `error`.
std::string unanswered_json(const Case& asked, const std::string& reason);

/// An array of the same objects; a row without an outcome has "schedule", "devices" and "error".
std::string rows_json(const Setting& setting, const std::vector<Row>& rows);

}  // namespace stageline
