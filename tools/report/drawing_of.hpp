// The picture of a result: its run, with the words around it.
#pragma once

#include <span>

#include "tools/inputs/setting.hpp"
#include "tools/report/timeline/drawing.hpp"
#include "tools/study/outcome.hpp"
#include "traces/timelines.hpp"

namespace stageline::report {

/// With title, subtitle and footnotes, as every picture of an outcome has them.
Drawing drawing_of(const Setting& setting, const Case& asked, const Outcome& outcome);

/// Several schedules of one problem: its words are in the head, those of a schedule in its heading.
/// `asked` and `outcomes` are parallel, and not empty.
Drawings drawings_of(const Setting& setting, std::span<const Case> asked,
                     std::span<const Outcome> outcomes);

/// "step 14.48 ms · bubble 34.3 %": the figures of a run beside its schedule, with the numbers of
/// steps and of chunks where these are more than one.
std::string run_words(const Outcome& outcome);

/// The picture of a run that profiles show. Throws what idle_of() throws.
Drawing drawing_of(const KinetoRun& run);

}  // namespace stageline::report
