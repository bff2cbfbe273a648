// Charts of results, as pictures and as plain text: curves over one axis, and maps over two.
//
//   speed-up, ×
//   3 ┤              A
//     │      A       B        A, B: series; · joins their points; a small letter: an open point
//   2 ┤A  ·  B
//     │B                      a Region is a map of cells instead: # in the band, . below, + above
//   1 ┼┬─────┬───────┬
//      2     3       4
//                devices
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/report/svg/options.hpp"

namespace stageline {

/// One direction of a chart. Linear unless `log`. `from` and `to` widen it: it holds at least
/// these, and every point. Without `from`, a linear y axis of values above 0 begins at 0.
struct ChartAxis {
  std::string label;  // "devices"
  std::string unit;   // "ms", "×", or empty
  bool log = false;
  bool whole = false;  // counts: only whole numbers are labelled; powers of two where `log`
  std::optional<double> from;
  std::optional<double> to;
};

/// Without `y` there is nothing at that x: the curve has a gap. `open`: drawn hollow, in text as a
/// small letter; a footnote should say what it means.
struct ChartPoint {
  double x = 0;
  std::optional<double> y;
  bool open = false;
};

/// How the points are joined, in their order.
enum class SeriesStyle : std::uint8_t {
  line,
  step,    // a value holds until the next x
  points,  // not at all
  dashed,  // for published numbers beside our own
};

struct Series {
  std::string name;
  SeriesStyle style = SeriesStyle::line;
  std::vector<ChartPoint> points;
};

/// A line across the whole chart, at a value of the axis it crosses.
struct ReferenceLine {
  double at = 0;
  std::string label;
};

struct Chart {
  std::string title;
  std::string subtitle;
  ChartAxis x;
  ChartAxis y;
  std::vector<Series> series;             // at most 26
  std::vector<ReferenceLine> horizontal;  // at values of y
  std::vector<ReferenceLine> vertical;    // at values of x
  std::vector<std::string> footnotes;
};

/// Cells whose value is in [low, high].
struct RegionBand {
  double low = 0;
  double high = 0;
  std::string label;  // "published: 1.48 to 2.27"
};

/// A point of interest in a region, in values of its axes.
struct RegionMark {
  double x = 0;
  double y = 0;
  std::string label;
};

/// A value over two axes, a cell for each pair. Cells are equally large, whatever their distance
/// on the axes, and nothing is interpolated between them.
struct Region {
  std::string title;
  std::string subtitle;
  ChartAxis x;  // label and unit; log, whole, from and to do not apply
  ChartAxis y;
  std::vector<double> xs;                                  // ascending
  std::vector<double> ys;                                  // ascending
  std::vector<std::vector<std::optional<double>>> values;  // [y][x]; nothing: not possible there
  std::string value_label;
  std::string value_unit;
  std::optional<RegionBand> band;
  std::vector<RegionMark> marks;  // at most 26
  std::vector<std::string> footnotes;
};

/// A self-contained SVG 1.1 document without scripts. Each series has a colour, which people with
/// any common form of colour blindness tell apart, and a marker of its own shape; names stand at
/// the ends of the curves, or in a legend where there is no room for that. Each marker has a
/// tooltip, except on curves of many points, which are drawn with few markers. The bytes depend on
/// the arguments alone. Throws UsageError when there is no point with a y, for a number that is not
/// finite (or not above 0 on a log axis), for more than 26 series, and for a width out of range.
std::string chart_svg(const Chart& chart, const SvgOptions& options = {});

/// The same as text: a capital letter a series at each of its points; points that share a place
/// stand side by side while there is room, else as '*'. `columns` (at least 30) bounds the width of
/// every line but the title's; `rows` (at least 4) are those of the plot, without the axis. Throws
/// UsageError as chart_svg does.
std::string chart_text(const Chart& chart, int columns, int rows);

/// The map: cells shaded from the least to the greatest value, those in the band hatched and
/// outlined, with a scale beside. Throws UsageError when no cell has a value, for a number that is
/// not finite, for axes that do not ascend, for `values` of another size than the axes, for a band
/// with low > high, for marks outside of the axes or more than 26, and for a width out of range.
std::string region_svg(const Region& region, const SvgOptions& options = {});

/// The same as text: '#' in the band, '.' below, '+' above, blank where nothing is possible; digits
/// 0 to 9 from the least to the greatest value where there is no band; capital letters are marks.
/// At most `columns` (at least 30) wide and `rows` (at least 2) high without the axis; larger maps
/// leave cells out, and say so. Throws UsageError as region_svg does.
std::string region_text(const Region& region, int columns, int rows);

}  // namespace stageline
