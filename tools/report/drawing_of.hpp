// The picture of a result: its run, with the words around it.
#pragma once

#include "tools/inputs/setting.hpp"
#include "tools/report/timeline/drawing.hpp"
#include "tools/study/outcome.hpp"

namespace stageline {

/// With title, subtitle and footnotes, as every picture of an outcome has them.
Drawing drawing_of(const Setting& setting, const Case& asked, const Outcome& outcome);

}  // namespace stageline
