// The encoder that stands before the model of a setting.
#pragma once

#include "sim/model.hpp"
#include "tools/inputs/setting.hpp"
#include "tools/inputs/traces.hpp"

namespace stageline {

/// Throws UsageError where the request has an encoder beside what is not modelled with one, or the
/// degrees of an encoder without one.
void check_beside_encoder(const SettingRequest& request);

/// The model behind the encoder that the request names, as with_encoder(): of one rank of its
/// degrees, in the batch that it states itself; all else as `trace` has it. Throws UsageError and
/// TraceError.
Model behind_opened_encoder(const SettingRequest& request, TraceRequest trace, Model model);

}  // namespace stageline
