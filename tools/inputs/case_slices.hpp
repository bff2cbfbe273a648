// Slices of a case's sequences, where its schedule or its program cuts them.
#pragma once

#include "tools/inputs/setting.hpp"

namespace stageline {

/// How many a sequence is cut into; 1: none.
int slices_in(const Case& asked);

/// Sets Case::slice, the kinds where slices differ, and their lengths where these are not equal:
/// as the schedule's knob `slices` says. Where there cannot be such slices, Case::slices_refused
/// says why, and lay_out() throws it.
void price_slices(const SettingRequest& request, const Setting& setting, Case& asked);

}  // namespace stageline
