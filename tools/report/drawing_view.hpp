// The words by which a question says what a picture shows: what numbers count, and which rows.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tools/report/timeline/drawing.hpp"
#include "tools/study/outcome.hpp"

namespace stageline::report {

/// "" (micro-batches and stages from 0), "from-1", "by-direction" or "versions". Throws UsageError
/// for another word, and for from-1 where an outcome numbers chunks of sequences.
OpNumbers op_numbers(const std::string& word, std::span<const Outcome> outcomes);

/// The same with these rows from the top, each "DEVICE" or "DEVICE=NAME" ("gpu3=last stage"); of no
/// rows, all devices. Throws UsageError for a device that the drawing has not, or that is there
/// twice.
Drawing with_rows(Drawing drawing, const std::vector<std::string>& rows);

}  // namespace stageline::report
