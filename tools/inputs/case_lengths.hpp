// What micro-batches of sequences of unequal lengths take.
#pragma once

#include <functional>

#include "sim/model.hpp"
#include "tools/inputs/setting.hpp"

namespace stageline {

/// Gives the case the lengths of the request, or of its program, in the order of the request. Each
/// distinct one is priced once; where the trace has no kernels, what a micro-batch takes is in
/// proportion to its tokens. Throws UsageError.
void take_lengths(const SettingRequest& request, const Setting& setting, Case& asked);

/// What a micro-batch takes, of those that the request's lengths may become in any order: of each
/// layer no more time and bytes than any of them, and the mean of the given ones.
struct LengthsRange {
  Model least;
  Model mean;
};
/// Both are the setting's model where the request has no lengths. Throws UsageError.
LengthsRange range_of_lengths(const SettingRequest& request, const Setting& setting);

}  // namespace stageline
