// The costs of a trace as text and as JSON: one trace as a table with bars, or two side by side.
// Pure functions; the command prints their results.
#pragma once

#include <string>
#include <vector>

#include "cost_models/breakdown.hpp"

namespace stageline::report {

struct CostsOptions {
  CostsBy by = CostsBy::layer;
  int top = 0;  // the most expensive rows shown; 0: all up to 64 rows, else 32
  bool colour = false;
  bool quiet = false;  // no heading and no notes
  int width = 0;       // the most columns of a line of a table; 0: any
};

/// A heading, a row per layer (or kind) and their total, the cost of splitting B into I and W, the
/// check against the whole model where that was measured, notes. `sizes`: all batch sizes of the
/// trace. Throws UsageError when the layers' sum exceeds the limit.
std::string costs_report(const Model& model, const std::vector<int>& sizes,
                         const CostsOptions& options);

/// The ratios first / second of each layer's times, and the layers that differ most; the first is
/// called TRACE, the second TRACE2. `adjustments`: notes on how they were made comparable. Throws
/// UsageError when they have no layer in common.
std::string against_report(const Model& first, const Model& second,
                           const std::vector<std::string>& adjustments,
                           const CostsOptions& options);

/// The same numbers as JSON, with all rows; keys in tools/report/json/README.md.
std::string costs_json(const Model& model, const std::vector<int>& sizes, CostsBy by);
std::string against_json(const Model& first, const Model& second,
                         const std::vector<std::string>& adjustments, CostsBy by);

}  // namespace stageline::report
