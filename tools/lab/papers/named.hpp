// The papers' networks, devices and cuts as values: traces, clusters, layer counts.
#pragma once

#include <cstddef>
#include <string>

#include "cost_models/shapes/shapes.hpp"
#include "sim/cluster.hpp"
#include "sim/model.hpp"

namespace stageline::lab {

/// A trace by its name on the command line: "resnet56-cpu", "model:resnet56@gtx1060,batch=128".
/// Throws as open_trace() does.
Model trace_named(const std::string& text);

/// The first `devices` devices of a bundled cluster.
Cluster cluster_named(const std::string& name, int devices);

/// The number of layers up to and including the `convolutions`-th convolutional or linear one, as
/// the stale-weights paper counts. Throws UsageError when there are fewer.
std::size_t layers_before(const ModelShape& shape, int convolutions);

}  // namespace stageline::lab
