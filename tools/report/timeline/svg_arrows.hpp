// Draws arrows between the boxes of a space-time diagram.
#pragma once

#include <string>
#include <vector>

#include "tools/report/svg/options.hpp"
#include "tools/report/timeline/arrows.hpp"
#include "tools/report/timeline/drawing.hpp"
#include "tools/report/timeline/svg_page.hpp"

namespace stageline::report {

/// The most arrows of one run in a picture. At 1000 px and eight rows they are then about 4 px
/// apart on each edge between two rows: closer ones are a hatch. Chosen by eye, not measured.
inline constexpr std::size_t most_arrows = 250;

/// Arrows of one run with both ends in the picture, and notes on the others.
struct DrawnArrows {
  std::vector<Arrow> arrows;
  std::vector<std::string> notes;
};

/// Throws UsageError for more than `most_arrows`, and for a micro-batch that the run has not.
DrawnArrows arrows_in(const Drawing& drawing, const TimeScale& scale, const ArrowChoice& choice);

/// What the arrows mean, an entry for each kind that is drawn.
std::vector<LegendEntry> arrow_legend(const std::vector<DrawnArrows>& runs);

/// Lines from the right edge of the sender's box to the left edge of the receiver's, each with a
/// tooltip. Arrows within a row are arcs above it.
std::string arrows_text(const DrawnArrows& drawn, const Drawing& drawing, const Frame& frame,
                        const RowPlaces& rows);

/// One arrow in a legend, `width` px long.
std::string arrow_swatch(const std::string& classes, double x, double y, double width);

/// The <style> element of arrows, beside style_sheet().
std::string arrow_style(Theme theme);

}  // namespace stageline::report
