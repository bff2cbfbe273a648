// Settings that differ in the trace alone.
#pragma once

#include "tools/inputs/setting.hpp"

namespace stageline {

/// What read_setting() returns, with the ranks of `alike`, whose request differs in nothing but the
/// size of a micro-batch, sequence parallelism, the cut and the schedule: routes through a cluster
/// of a thousand devices take much longer to find than a trace to price.
Setting read_setting_alike(const SettingRequest& request, const Setting& alike);

}  // namespace stageline
