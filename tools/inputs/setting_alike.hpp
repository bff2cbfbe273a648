// Settings that differ in the trace alone, or in all but the trace.
#pragma once

#include "tools/inputs/setting.hpp"

namespace stageline {

/// What read_setting() returns, with the ranks of `alike`, whose request differs in nothing but the
/// size of a micro-batch, sequence parallelism, the cut and the schedule: routes through a cluster
/// of a thousand devices take much longer to find than a trace to price.
Setting read_setting_alike(const SettingRequest& request, const Setting& alike);

/// What read_setting() returns, with that model, whose request differs in nothing that
/// decides the trace: in links, memories, devices, what is slow, rules of collectives, the
/// schedule.
Setting read_setting_of(const SettingRequest& request, const Model& model);

}  // namespace stageline
