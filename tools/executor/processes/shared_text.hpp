// A text that rank 0 has and all processes of a run need.
//
// Includes ATen: for the files of this folder and its neighbours only.
#pragma once

#include <atomic>
#include <string>

#include "tools/executor/processes/peers.hpp"

namespace stageline::executor {

/// Called by all processes, while no other listener takes deliveries: returns rank 0's text. Throws
/// Stopped once `stop` is true, and PeerFailure when another process fails.
std::string shared_text(Peers& peers, const std::string& mine, const std::atomic<bool>* stop);

}  // namespace stageline::executor
