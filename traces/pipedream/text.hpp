// The text of the per-layer profiles of PipeDream (Narayanan et al., SOSP 2019) and DAPPLE:
// graph.txt, one node or edge a line.
//
//   node4 -- Conv2d(64, 64, kernel_size=(3, 3)) -- forward_compute_time=46.201,
//     backward_compute_time=113.330, activation_size=1644167168.000, parameter_size=147712.000
//   <TAB>node4 -- node5
//
// (A node is one line of the file; it is broken here.) Times are milliseconds and sizes are bytes,
// both per minibatch.
#pragma once

#include <string>
#include <vector>

#include "sim/model.hpp"

namespace stageline {

struct PipedreamNode {
  std::string id;
  std::string description;  // "Conv2d(64, 64, kernel_size=(3, 3))"
  Time forward{};           // per minibatch
  Time backward{};
  Bytes activation{};  // per minibatch
  Bytes parameters{};
};

/// Nodes in the order of their numbers, in which the profiler visited them; the file lists them in
/// the order of a hash table.
struct PipedreamProfile {
  std::vector<PipedreamNode> nodes;
  std::vector<LayerEdge> edges;  // by node index, in file order
  bool has_stages = false;       // whether any node names its stage
};

/// Throws TraceError with the line on a syntax error, on duplicate names, and on edges to unknown
/// nodes. Cycles are not detected.
PipedreamProfile parse_pipedream_profile(const std::string& text, const std::string& file);

}  // namespace stageline
