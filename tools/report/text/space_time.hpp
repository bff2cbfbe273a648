// The space-time diagram as text, for people: a row for each kind of op of a device.
#pragma once

#include <string>
#include <vector>

#include "sim/text/figure.hpp"
#include "sim/timeline.hpp"

namespace stageline::report {

/// The columns in front of the diagram, " 0 F|", of up to 100 devices.
inline constexpr int space_time_margin = 5;

/// Two rows per device, or three where the timeline has weight gradients: F for forwards; B for
/// backwards, input gradients, recomputes and updates; W for weight gradients. A box begins with
/// the number of its micro-batch, and goes on in "─"; of a number of several digits only the last
/// is shown where the box does not go on behind it. '~' is a recompute, '^' an update, '.' in the
/// last row of a device is idle time. The ops of an overlapped pair are in their rows at once. A
/// column shows the op that runs at its middle; tick and columns are those of figure(). No trailing
/// blanks. Of more than 24 devices the first and the last eight are drawn, unless `full`.
std::string space_time(const Timeline& timeline, const FigureOptions& options = {},
                       bool full = true);

/// The legend of what occurs in timelines, one line.
std::string space_time_legend(const std::vector<const Timeline*>& timelines);

}  // namespace stageline::report
