// PipeFB and its baseline simulated over nodes and host bandwidth.
#pragma once

#include <string>
#include <vector>

#include "sim/units.hpp"

namespace stageline {

/// Nodes of the baseline; PipeFB has as many to twice as many.
inline constexpr int pipefb_base_nodes = 8;

/// One point: PipeFB on `nodes` against PipeDream + data transfer on pipefb_base_nodes.
struct PipefbRun {
  int nodes = 0;
  double copy_over_forward = 0;  // D / F of a baseline stage
  double ratio = 0;              // of steady steps, baseline's over PipeFB's
  Bytes peak{};                  // of the fullest device
  Bytes baseline_peak{};
};

/// `transfer`: none, blocking, half or full, as pipedream spells it. For each D/F (ascending, from
/// 0) all node counts. Layers are equal, B = 2F, weights take no memory and no time to send.
/// One F-node and one B-node for each node of the baseline.
PipefbRun doubled_run(const std::string& transfer, double copy_over_forward);

std::vector<PipefbRun> pipefb_runs(const std::string& transfer, const std::vector<double>& copies);

}  // namespace stageline
