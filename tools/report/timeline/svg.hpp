// The space-time diagram as a picture for print or a web page.
//
//          forward [#]  backward [=]  idle [ ]
//   gpu0  |##|##|##|##|      |====|====|====|====|   21 %
//   gpu1     |##|##|##|====|====|##|====|====|       21 %
//         0        10        20        30   time (ms)
//   memory
//   gpu0  __/--\_____/--\__ . . . . . . . . . limit  3.2 GB at 12 ms
//   weights
//   stage 0   ====  ====  ====   2 held, a histogram of staleness
//         #####################
#pragma once

#include <string>

#include "tools/report/svg/options.hpp"
#include "tools/report/timeline/drawing.hpp"

namespace stageline::report {

/// A self-contained SVG 1.1 document without scripts: one row per device, spans coloured by kind,
/// messages and copies as strips below, idle time behind, then memory by device, where asked for
/// memory by category, then weight versions by stage. A lane in which no op takes time has no
/// strip. In a window, shares of idle time and peaks of memory are those within it; an axis may end
/// after the run. The bytes depend only on the arguments. Spans too narrow to see are merged into
/// stacks of shares, and a footnote notes it; the document stays under about 2 MB. Throws
/// UsageError when there is nothing to draw, for a window without a part of the run, and when the
/// width is out of range.
std::string svg(const Drawing& drawing, const SvgOptions& options = {},
                const DrawingView& view = {});

/// The same for several runs on one time axis, with one legend and one scale of memory.
std::string svg(const Drawings& drawings, const SvgOptions& options = {},
                const DrawingView& view = {});

}  // namespace stageline::report
