// Where a comparison leaves gains untried that `stageline plan` would look for.
#pragma once

#include <string>
#include <vector>

#include "tools/compare/comparison.hpp"

namespace stageline::cli {

/// "…; `stageline plan …` tries them": where no row fits, where the recommended synchronous row
/// idles a tenth of the step or more or its fullest device has less than a tenth of its memory
/// left, and the trace can be priced for other micro-batches. Empty otherwise, of sweeps, given
/// programs, synthetic traces and unequal lengths. `typed`: the setting as the user typed it.
std::string plan_hint(const SettingRequest& request, const Setting& setting,
                      const std::vector<Row>& rows, const RankedRows& order,
                      const std::string& typed);

}  // namespace stageline::cli
