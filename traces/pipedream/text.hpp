// The text of the per-layer profiles of PipeDream (Narayanan et al., SOSP 2019) and DAPPLE:
// graph.txt, one node or edge a line.
//
//   node4 -- Conv2d(64, 64, kernel_size=(3, 3)) -- forward_compute_time=46.201,
//     backward_compute_time=113.330, activation_size=1644167168.000, parameter_size=147712.000
//   <TAB>node4 -- node5
//
// (A node stands on one line; it is broken here.) Times are milliseconds and sizes bytes a
// minibatch.
#pragma once

#include <string>
#include <vector>

#include "sim/model.hpp"

namespace stageline {

struct PipedreamNode {
  std::string id;
  std::string description;  // "Conv2d(64, 64, kernel_size=(3, 3))"
  Time forward{};           // of one minibatch
  Time backward{};
  Bytes activation{};  // likewise
  Bytes parameters{};
};

/// Nodes in the order of their numbers, which is that in which the profiler met them; in the file
/// they stand in the order of a hash table.
struct PipedreamProfile {
  std::vector<PipedreamNode> nodes;
  std::vector<LayerEdge> edges;  // by index of node, in the order of the file
  bool has_stages = false;       // whether a node names its stage
};

/// Throws TraceError with the line on whatever breaks the grammar, on names that stand twice, and
/// on edges to nowhere. Cycles are not looked for.
PipedreamProfile parse_pipedream_profile(const std::string& text, const std::string& file);

}  // namespace stageline
