// What the papers name, as values: a network's trace, its devices, its cut.
#pragma once

#include <cstddef>
#include <string>

#include "cost_models/shapes/shapes.hpp"
#include "sim/cluster.hpp"
#include "sim/model.hpp"

namespace stageline {

/// As on the command line: "resnet56-cpu", "model:resnet56@gtx1060,batch=128". Throws what
/// open_trace throws.
Model trace_named(const std::string& text);

/// The first `devices` of a bundled cluster.
Cluster cluster_named(const std::string& name, int devices);

/// Layers up to and including the `convolutions`-th convolutional or linear one, as the
/// stale-weights paper counts. Throws UsageError when there are not so many.
std::size_t layers_before(const ModelShape& shape, int convolutions);

}  // namespace stageline
