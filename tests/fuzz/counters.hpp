// The coverage counters that libFuzzer looks at: it clears and reads those of all code at every
// execution, of which a target reaches a few percent.
#pragma once

namespace stageline::fuzz {

/// Adds a counter, with its neighbours, once it has been written: a call behind each execution
/// does.
void guard_counters();
void watch_written_counters();
/// Adds all at once: features have the same numbers in every process, as a merge needs.
void watch_all_counters();

}  // namespace stageline::fuzz
