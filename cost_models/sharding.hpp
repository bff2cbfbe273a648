// Whether a model is divided by the degrees of a run.
#pragma once

#include "sim/degrees.hpp"
#include "sim/model.hpp"

namespace stageline {

/// Throws UsageError, which names both degrees, unless the layers are those of one rank of the
/// tensor-, context- and expert-parallel degrees, and of the tensor degree of experts.
void check_sharding(const Model& model, const Degrees& degrees);

}  // namespace stageline
