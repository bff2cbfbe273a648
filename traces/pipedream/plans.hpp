// Plans for PipeDream's runtime and for torchgpipe, read as a cut.
#pragma once

#include <string>

namespace stageline {

/// Ranges of layers as --partition takes them, "0-2,3-5,6-7": of torchgpipe's balance, "[3, 3, 2]",
/// and of the module_to_stage_map of a PipeDream configuration, whose last module is the loss and
/// no layer. Empty where the text is neither. Throws TraceError for a stage without layers, and for
/// modules that are not in the order of the stages.
std::string ranges_of_plan(const std::string& text, const std::string& file);

}  // namespace stageline
