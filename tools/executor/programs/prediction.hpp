// The simulation that a real run is compared with, and whose program it runs.
#pragma once

#include "tools/inputs/setting.hpp"
#include "tools/study/study.hpp"

namespace stageline::executor {

struct Prediction {
  Case asked;
  Outcome outcome;
};

/// Predicts a pipeline on `devices` devices, or all replicas of one together. With several
/// replicas, schedule and cut are those of one pipeline on its share of the devices, --microbatches
/// are each replica's, and the gradients are reduced among them. `imitated`: lanes that wait do not
/// slow each other. Throws UsageError where the replicas do not divide the devices, and as study()
/// and replicated().
Prediction predict(const SettingRequest& question, const Setting& setting,
                   const ScheduleSpec& schedule, int devices, int replicas, bool imitated);

}  // namespace stageline::executor
