// Edges, topological order and total time of a model.
#include "sim/model.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/graph.hpp"

namespace stageline {

std::string_view name(Origin origin) {
  switch (origin) {
    case Origin::measured:
      return "measured";
    case Origin::estimated:
      return "estimated";
    case Origin::synthetic:
      return "synthetic";
  }
  return "";
}

std::string_view name(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return "all_reduce";
    case CollectiveKind::reduce_scatter:
      return "reduce_scatter";
    case CollectiveKind::all_gather:
      return "all_gather";
    case CollectiveKind::all_to_all:
      return "all_to_all";
    case CollectiveKind::broadcast:
      return "broadcast";
  }
  return "";
}

std::string_view name(Dimension dimension) {
  switch (dimension) {
    case Dimension::tensor:
      return "tp";
    case Dimension::context:
      return "cp";
    case Dimension::expert:
      return "ep";
    case Dimension::data:
      return "dp";
    case Dimension::pipeline:
      return "pp";
    case Dimension::expert_tensor:
      return "etp";
  }
  return "";
}

std::vector<LayerEdge> edges_of(const Model& model) {
  std::vector<LayerEdge> edges = model.edges;
  if (edges.empty()) {
    for (int i = 1; i < static_cast<int>(model.layers.size()); ++i) edges.push_back({i - 1, i});
  }
  std::sort(edges.begin(), edges.end());
  return edges;
}

Model in_topological_order(Model model, const std::string& file) {
  if (model.edges.empty()) return model;
  const int layers = static_cast<int>(model.layers.size());
  std::vector<std::pair<int, int>> edges;
  for (const LayerEdge& edge : model.edges) {
    for (const int end : {edge.from, edge.to}) {
      if (end < 0 || end >= layers) {
        throw TraceError(file, "/edges",
                         fmt::format("an edge names layer {}, but there are layers 0 to {} only",
                                     end, layers - 1));
      }
    }
    edges.emplace_back(edge.from, edge.to);
  }
  const GraphOrder order = topological_order(layers, edges);
  if (!order.cycle.empty()) {
    std::string names;
    for (const int layer : order.cycle) {
      names += fmt::format("\"{}\" → ", nth(model.layers, layer).name);
    }
    names += fmt::format("\"{}\"", nth(model.layers, order.cycle.front()).name);
    throw TraceError(file, "/edges",
                     fmt::format("the layers feed each other in a circle: {}; "
                                 "a layer graph must have no cycle",
                                 names));
  }
  std::vector<int> place(model.layers.size());
  std::vector<Layer> sorted;
  for (const int layer : order.order) {
    nth(place, layer) = static_cast<int>(sorted.size());
    sorted.push_back(std::move(nth(model.layers, layer)));
  }
  model.layers = std::move(sorted);
  for (LayerEdge& edge : model.edges) {
    edge = {nth(place, edge.from), nth(place, edge.to)};
  }
  std::sort(model.edges.begin(), model.edges.end());
  return model;
}

Time forward_backward(const Model& model) {
  __extension__ using Wide = __int128;
  Wide sum = 0;
  for (const Layer& layer : model.layers) {
    sum += Wide{layer.forward.count()} + layer.backward.count();
  }
  if (sum > longest_run.count()) {
    throw UsageError(fmt::format(
        "the layers of \"{}\" take {:.3g} s together, and at most {:.3g} s (53 days) can be added "
        "up; check the unit of its times",
        model.name, static_cast<double>(sum) / 1e12, to_seconds(longest_run)));
  }
  return Time{static_cast<std::int64_t>(sum)};
}

}  // namespace stageline
