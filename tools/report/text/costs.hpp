// The costs of a trace as text and as JSON: one trace as a table with bars, or two side by side.
// Pure functions; the command prints what they give.
#pragma once

#include <string>
#include <vector>

#include "cost_models/breakdown.hpp"

namespace stageline {

struct CostsOptions {
  CostsBy by = CostsBy::layer;
  int top = 0;  // rows shown, the most expensive; 0: all up to 64, else the 32 most expensive
  bool colour = false;
  bool quiet = false;  // no heading and no notes
};

/// A heading, a row a layer (or kind) and their total, what running I and W apart costs, the check
/// against the whole model where that was measured, notes. `sizes`: all batch sizes of the trace.
/// Throws UsageError when the layers add up to too much.
std::string costs_report(const Model& model, const std::vector<int>& sizes,
                         const CostsOptions& options);

/// The ratios first / second of each layer's times, and which layers differ most; the first is
/// called TRACE, the second TRACE2. `said`: notes on how they were made comparable. Throws
/// UsageError when they have no layer in common.
std::string against_report(const Model& first, const Model& second,
                           const std::vector<std::string>& said, const CostsOptions& options);

/// The same numbers for programs, and all rows; keys in tools/README.md.
std::string costs_json(const Model& model, const std::vector<int>& sizes, CostsBy by);
std::string against_json(const Model& first, const Model& second,
                         const std::vector<std::string>& said, CostsBy by);

}  // namespace stageline
