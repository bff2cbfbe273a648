// Where the stages of an encoder end that has devices of its own.
#pragma once

#include <string>

#include "schedulers/partition/partitioner.hpp"
#include "sim/placement.hpp"
#include "tools/study/case.hpp"

namespace stageline {

/// Throws UsageError, which begins with `schedule`, where the case has an encoder and stage s is
/// not on device s alone.
void check_encoder_places(const Case& asked, const std::string& schedule,
                          const Placement& placement, int devices);

/// The cut of the case's partition for its encoder and for the model behind it, each on its own
/// devices; or the one that it gives, layer by layer, if a stage ends with the encoder. Throws
/// UsageError.
PartitionPlan cut_behind_encoder(const Case& asked, const PartitionRequest& request);

}  // namespace stageline
