// Opens traces, clusters and cuts by the papers' names.
#include "tools/lab/papers/named.hpp"

#include <fmt/core.h>

#include "sim/base/errors.hpp"
#include "tools/inputs/inputs.hpp"

namespace stageline::lab {

Model trace_named(const std::string& text) {
  TraceRequest request;
  request.text = text;
  return open_trace(request);
}

Cluster cluster_named(const std::string& name, int devices) {
  ClusterRequest request;
  request.cluster = name;
  return cluster_of(choose_cluster(request), devices);
}

std::size_t layers_before(const ModelShape& shape, int convolutions) {
  int seen = 0;
  for (std::size_t i = 0; i < shape.layers.size(); ++i) {
    const std::string& kind = shape.layers[i].kind;
    seen += kind == "conv" || kind == "linear" ? 1 : 0;
    if (seen == convolutions) return i + 1;
  }
  throw UsageError(fmt::format("{} has {} convolutional and linear layers, not {}", shape.name,
                               seen, convolutions));
}

}  // namespace stageline::lab
