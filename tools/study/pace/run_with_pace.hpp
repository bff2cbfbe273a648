// The shortest run of a case that shows the pace of its outcome, and that run with other times.
#pragma once

#include "tools/study/case.hpp"
#include "tools/study/outcome.hpp"
#include "tools/study/pace/pace.hpp"
#include "tools/study/run/layout.hpp"
#include "tools/study/run/run.hpp"

namespace stageline {

/// The share by which the step of that run may differ from the outcome's.
inline constexpr double same_step = 1e-6;

/// `nominal`: the case's outcome. Where no run that is tried shows its step, the longest of them.
/// Throws what simulating the case throws.
Run run_with_pace(const Case& asked, const Layout& layout, const Outcome& nominal);

/// The pace of the same program where its tasks take what `graph` says, alone; links and devices
/// that are shared serve them anew.
Pace pace_with(const Program& program, TaskGraph graph, const Costs& costs);

}  // namespace stageline
