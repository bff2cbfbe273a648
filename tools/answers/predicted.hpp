// The simulation that a real run is compared with, and whose program it runs.
#pragma once

#include "tools/answers/question.hpp"
#include "tools/study/outcome.hpp"

namespace stageline::answers {

/// One pipeline on `devices` devices, or all replicas of it together: schedule
/// and cut are those of one pipeline on its share of the devices, micro-batches are each replica's,
/// and the gradients are reduced among the replicas.
struct PredictionQuestion : SettingQuestion {
  int devices = 1;
  int replicas = 1;
  bool imitated = false;  // lanes that wait do not slow each other
};

struct PredictionAnswer {
  Setting setting;
  Case asked;
  Outcome outcome;
};

/// Throws UsageError where the replicas do not divide the devices, and as study() and replicated().
PredictionAnswer answer(const PredictionQuestion& question);

}  // namespace stageline::answers
