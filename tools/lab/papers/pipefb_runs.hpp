// Simulates PipeFB and its baseline over nodes and host bandwidth.
#pragma once

#include <string>
#include <vector>

#include "sim/base/units.hpp"

namespace stageline::lab {

/// Nodes of the baseline; PipeFB has this many up to twice as many.
inline constexpr int pipefb_base_nodes = 8;

/// One point: PipeFB on `nodes` against PipeDream + data transfer on pipefb_base_nodes.
struct PipefbRun {
  int nodes = 0;
  double copy_over_forward = 0;  // D / F of a baseline stage
  double ratio = 0;              // of steady steps: the baseline's over PipeFB's
  Bytes peak{};                  // of PipeFB's fullest device
  Bytes baseline_peak{};
};

/// One F-node and one B-node for each node of the baseline. Here and below, `transfer` is none,
/// blocking, half or full, as pipedream spells it; layers are equal, B = 2F, and weights take no
/// memory and no time to send.
PipefbRun doubled_run(const std::string& transfer, double copy_over_forward);

/// For each D/F of `copies` (ascending, from 0): all node counts.
std::vector<PipefbRun> pipefb_runs(const std::string& transfer, const std::vector<double>& copies);

}  // namespace stageline::lab
