// Settings that differ in the trace alone, or in all but the trace.
#pragma once

#include "tools/inputs/setting.hpp"

namespace stageline {

/// Same as read_setting(), but reuses the ranks of `alike`. Its request may differ only in the size
/// of a micro-batch, sequence parallelism, the cut and the schedule. Routes through a cluster of a
/// thousand devices take much longer to find than a trace to price.
Setting read_setting_alike(const SettingRequest& request, const Setting& alike);

/// Same as read_setting(), but reuses `model`. Its request may differ only in what does not decide
/// the trace: links, memories, devices, what is slow, rules of
/// collectives, the schedule.
Setting read_setting_of(const SettingRequest& request, const Model& model);

}  // namespace stageline
