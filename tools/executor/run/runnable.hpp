// Which programs can be run, and on what.
//
// Includes ATen: for the files of this folder only.
#pragma once

#include <vector>

#include "sim/costs.hpp"
#include "sim/task_graph.hpp"
#include "tools/executor/devices/accelerators.hpp"
#include "tools/executor/run/job.hpp"

namespace stageline::executor {

class Peers;

/// The program as compile() lowers it; the links of a training take no time. In the executor a SEND
/// runs beside the computing, and its sender does not wait for the receiver: throws UsageError for
/// messages that block, and as compile() does.
TaskGraph lowered(const Job& job, const Costs& costs);

/// Throws UsageError where the program cannot run on these devices, or by these processes (null:
/// one process).
void check_runnable(const Job& job, const std::vector<Accelerator>& devices, const Peers* peers);

}  // namespace stageline::executor
