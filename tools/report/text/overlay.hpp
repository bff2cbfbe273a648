// Reports an overlay: tables, JSON, one picture.
#pragma once

#include <string>

#include "tools/compare/overlay.hpp"
#include "tools/report/text/sheet.hpp"
#include "tools/report/timeline/svg.hpp"

namespace stageline::report {

/// Step times, idle time of each device, medians by stage and kind, and the `top` ops that differ
/// most, with their difference as a share of the second side's step. `width`: the most columns of a
/// line of a table; 0: any.
std::string overlay_text(const Overlay& overlay, int top, int width = 0);

/// "step: model 66.00 ms, measured 70.00 ms: +4.000 ms (+6.1 %)"
std::string overlay_sentence(const Overlay& overlay);

/// All ops that both have, with the figures behind the cells.
Sheet overlay_sheet(const Overlay& overlay);

/// The same as JSON, with every op; the keys are documented in tools/report/json/README.md.
std::string overlay_json(const Overlay& overlay);

/// Both timelines, aligned at the start of their steps, a device's two rows together.
std::string overlay_svg(const Overlay& overlay, const SvgOptions& options = {});

}  // namespace stageline::report
