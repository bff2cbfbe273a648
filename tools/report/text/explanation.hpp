// Why a run takes as long as it does, as text and JSON.
#pragma once

#include <string>
#include <vector>

#include "tools/answers/explained.hpp"

namespace stageline::report {

struct ExplanationView {
  int width = 0;
  bool quiet = false;
};

/// Heading (unless quiet), what was measured and predicted, the parts of the step with bars, the
/// likeliest causes of what is not explained, and what to change first.
std::string explanation_text(const answers::Explanation& found, const ExplanationView& view);

/// Notes of the setting, and on how the measured value was read.
std::vector<std::string> explanation_notes(const answers::Explanation& found);

/// Keys in tools/report/json/README.md.
std::string explanation_json(const answers::Explanation& found);

}  // namespace stageline::report
