// What a reader of the numbers must know: rules that are rebuilt, copies that cost nothing, steps
// that are means.
#pragma once

#include <string>
#include <vector>

#include "tools/study/case.hpp"
#include "tools/study/outcome.hpp"

namespace stageline {

/// That rules of the schedule, or of its knobs as they are set, are rebuilt. Empty: none is, or the
/// program was given.
std::string rebuilt_note(const Case& asked);

/// Whether it offloads, and every device that does copies over no link.
bool offloads_for_free(const Outcome& outcome);

/// All notes on an outcome, one sentence each.
std::vector<std::string> stream_notes(const Case& asked, const Outcome& outcome);

/// What is left out of the costs of a schedule that cuts sequences; empty for others.
std::string chunks_note(const ScheduleSpec& spec);

}  // namespace stageline
