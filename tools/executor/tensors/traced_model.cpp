// Finds the built-in model that a trace is of.
#include "tools/executor/tensors/traced_model.hpp"

#include <fmt/format.h>

#include "cost_models/roofline.hpp"
#include "sim/base/errors.hpp"

namespace stageline::executor {
namespace {

ModelShape shape_called(const std::string& name, bool asked, const Model& model) {
  try {
    return parse_shape(name);
  } catch (const UsageError& error) {
    if (asked) throw;
    throw UsageError(fmt::format(
        "the trace is of \"{}\", which is no built-in model; say with --model which one to run "
        "({})",
        model.name, error.what()));
  }
}

bool is_size_of(Bytes bytes, std::int64_t elements) {
  for (const std::int64_t each : {2, 4, 8}) {
    if (bytes.count == elements * each) return true;
  }
  return false;
}

}  // namespace

TracedModel traced_model(const std::string& asked, const std::string& trace, const Model& model) {
  TracedModel result;
  const bool priced = trace.rfind("model:", 0) == 0;
  result.spelled = !asked.empty() ? asked : priced ? shape_of_spec(trace) : model.name;
  result.shape = shape_called(result.spelled, !asked.empty(), model);
  const ModelShape& shape = result.shape;
  if (shape.layers.size() != model.layers.size()) {
    throw UsageError(
        fmt::format("{} has {} layers, but the trace of {} has {}; say with --model which model "
                    "the trace is of, with its options",
                    shape.name, shape.layers.size(), model.name, model.layers.size()));
  }
  for (std::size_t i = 0; i < shape.layers.size(); ++i) {
    if (is_size_of(model.layers[i].weights, shape.layers[i].weights)) continue;
    throw UsageError(fmt::format(
        "layer {} of {} has {} weights, but {} of them in the trace; say with --model which model "
        "the trace is of, with its options, like resnet20,width=4",
        shape.layers[i].name, result.spelled, shape.layers[i].weights,
        print(model.layers[i].weights)));
  }
  return result;
}

}  // namespace stageline::executor
