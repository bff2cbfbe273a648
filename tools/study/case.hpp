// The input of study().
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "schedulers/scheduler.hpp"
#include "sim/cluster.hpp"
#include "sim/model.hpp"
#include "sim/program.hpp"

namespace stageline {

/// One schedule of one model on one cluster, after all names are resolved.
struct Case {
  Model model;                         // one micro-batch
  Cluster cluster;                     // exactly the devices to use
  ScheduleSpec spec;                   // ignored with a given program
  std::optional<Program> program;      // --program
  std::string partition = "balanced";  // --partition
  std::optional<WeightRule> weights;   // --weights
  std::optional<Messages> messages;    // --messages
  int microbatches = 0;                // per step
  int steps = 0;  // 0: one, or for asynchronous schedules enough to run steadily
};

}  // namespace stageline
