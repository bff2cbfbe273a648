// The coverage counters that libFuzzer looks at: it clears and reads those of all code at every
// execution, of which a target reaches a few percent.
#pragma once

namespace stageline::fuzz {

/// Adds a page of counters once a counter of it is written.
void watch_counters_by_page();
/// Adds all at once: features have the same numbers in every process, as a merge needs.
void watch_all_counters();

}  // namespace stageline::fuzz
