// The kernels of a language model's layers, as text and JSON.
#pragma once

#include <string>
#include <vector>

#include "cost_models/transformers/kernel_times.hpp"
#include "sim/model.hpp"

namespace stageline::report {

/// A heading and notes (unless `quiet`), and a row a kernel of each layer that differs, in order:
/// pass, extents, FLOPs, bytes, time without its launch, rate, and share of the peak of its data
/// type; and a row for what launches and waits for the CPU add. `width`: the most columns of a
/// line; 0: any.
std::string kernels_report(const Model& model, const std::vector<LayerKernelTimes>& layers,
                           int width, bool quiet);

/// The same numbers; keys in tools/report/json/README.md.
std::string kernels_json(const Model& model, const std::vector<LayerKernelTimes>& layers);

}  // namespace stageline::report
