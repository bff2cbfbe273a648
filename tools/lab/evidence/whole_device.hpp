// Which of a case's two traces prices it.
#pragma once

#include "sim/model.hpp"
#include "sim/placement.hpp"

namespace stageline::lab {

/// Whether the passes of one device, in whatever role, are of layers that take over three quarters
/// of the model's F and B: nearer to all of it than to a half.
bool has_whole_device(const Model& model, const Partition& partition, const Placement& placement);

}  // namespace stageline::lab
