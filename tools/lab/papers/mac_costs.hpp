// Costs that count only multiply-accumulates, as papers about systolic arrays do.
#pragma once

#include <string>

#include "sim/model.hpp"

namespace stageline::lab {

/// The convolutional and linear layers of a built-in model in their order, as a chain: each pass of
/// one image takes a picosecond per multiply-accumulate. No bytes. Throws UsageError for an unknown
/// model.
Model mac_model(const std::string& shape);

}  // namespace stageline::lab
