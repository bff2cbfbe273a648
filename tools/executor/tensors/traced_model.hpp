// Which built-in model a trace is of: what to run where the trace says how long it takes.
#pragma once

#include <string>

#include "cost_models/shapes/shapes.hpp"
#include "sim/model.hpp"

namespace stageline::executor {

struct TracedModel {
  std::string spelled;  // "resnet20,width=4", as parse_shape reads it
  ModelShape shape;
};

/// `asked`: --model; empty: what the trace says that it is of. `trace`: as typed, and opened.
/// Throws UsageError when that is no built-in model, or when the trace's layers are not the model's
/// (their number, or the bytes of their weights).
TracedModel traced_model(const std::string& asked, const std::string& trace, const Model& model);

}  // namespace stageline::executor
