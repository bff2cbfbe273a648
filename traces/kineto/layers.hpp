// Divides a profile of one device into layers, so that a pipeline can be planned from it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/model.hpp"
#include "traces/kineto/names.hpp"
#include "traces/timelines.hpp"

namespace stageline {

/// The forward of one layer or module on the thread that runs the model. Nanoseconds.
struct ModuleCall {
  std::string name;
  std::int64_t start = 0;
  std::int64_t end = 0;
};

/// The calls that are layers, by start: none of them inside of another. Modules that take more than
/// `most` of all time, and each Sequential, are divided into the modules inside of them.
std::vector<ModuleCall> layer_calls(std::vector<ModuleCall> calls, double most = 0.5);

/// One layer for each module of a training run on one device (torch.profiler, with_stack=True:
/// "nn.Module: Block_0"), or for each range that a rule of `names` calls a layer. A backward is
/// what autograd's engine runs for the operators of a layer; recomputation inside of it is apart.
/// Medians over the micro-batches; notes say what is assumed and left out. `batch`, `source`: as of
/// kineto_model(). Throws TraceError where no layer has a forward and a backward, the ranks send
/// messages, or most of the work is in no layer.
Model kineto_layers(const NamedText& profile, const RangeNames* names, const std::string& name,
                    int batch, const std::string& source);

}  // namespace stageline
