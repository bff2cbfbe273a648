// Charts of results, as SVG and as plain text: curves over one axis, and maps over two.
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

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/report/svg/options.hpp"

namespace stageline::report {

/// One axis of a chart. Linear unless `log`. `from` and `to` widen it: it contains at least these
/// and every point. Without `from`, a linear y axis of values above 0 begins at 0.
struct ChartAxis {
  std::string label;  // "devices"
  std::string unit;   // "ms", "×", or empty
  bool log = false;
  bool whole = false;  // counts: only whole numbers are labelled; powers of two where `log`
  std::optional<double> from;
  std::optional<double> to;
};

/// How far a value may be off, as a whisker in SVG.
struct ChartRange {
  double low = 0;
  double high = 0;
};
/// A footnote on the whiskers of predicted steps.
inline constexpr const char* whisker_words =
    "Whiskers: 80 % of the published runs of the class lie within.";

/// Without `y` the curve has a gap at that x. `open`: drawn hollow, in text as a small letter; a
/// footnote should explain the meaning. `label`: beside the marker in SVG,
/// at the nearest place where it covers no other, with a line from its point where that is far.
struct ChartPoint {
  double x = 0;
  std::optional<double> y;
  bool open = false;
  std::string label{};
  bool marked = false;  // with a ring around its marker, and a bold label, in SVG
  std::optional<ChartRange> x_range{};
  std::optional<ChartRange> y_range{};
};

/// How consecutive points are joined.
enum class SeriesStyle : std::uint8_t {
  line,
  step,    // a value holds until the next x
  points,  // not at all
  dashed,  // for published numbers beside our own
};

/// In SVG, two series of one `ink` have the same colour and marker. A `faint` series is thin and
/// grey, behind the others, and without a name at its curve.
struct Series {
  std::string name;
  SeriesStyle style = SeriesStyle::line;
  std::vector<ChartPoint> points;
  std::optional<std::size_t> ink = std::nullopt;  // default: the number of the series
  bool faint = false;
  bool few_markers = false;  // in SVG only points with a label have a marker
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
  std::vector<Series> series;             // at most 36
  std::vector<ReferenceLine> horizontal;  // at values of y
  std::vector<ReferenceLine> vertical;    // at values of x
  std::vector<std::string> footnotes;
  bool key_above = false;  // in SVG the names are above the plot, whatever room is beside it
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

/// A value over two axes, a cell per pair. All cells have the same size, whatever their distance on
/// the axes, and nothing is interpolated between them.
struct Region {
  std::string title;
  std::string subtitle;
  ChartAxis x;  // label and unit; log, whole, from and to do not apply
  ChartAxis y;
  std::vector<double> xs;                                  // ascending
  std::vector<double> ys;                                  // ascending
  std::vector<std::vector<std::optional<double>>> values;  // [y][x]; empty: infeasible
  std::string value_label;
  std::string value_unit;
  std::optional<RegionBand> band;
  std::vector<RegionMark> marks;  // at most 36
  std::vector<std::string> footnotes;
};

/// A self-contained SVG 1.1 document without scripts. Each series has a colour that people with any
/// common form of colour blindness can distinguish, and a marker shape of its own; names are at the
/// ends of the curves, or in a legend where there is no room for that. Each marker has a tooltip,
/// except on curves of many points, which have few markers. The bytes depend only on the arguments.
/// Throws UsageError when there is no point with a y, for a number that is not finite (or not above
/// 0 on a log axis), for more than 36 series, and for a width out of range.
std::string chart_svg(const Chart& chart, const SvgOptions& options = {});

/// Makes all but the `most` best series faint where there are over two more of them, and names
/// these in a footnote. The best are the highest at the greatest x at which any series has a value.
void highlight_best(Chart& chart, std::size_t most);

/// The same as text: one capital letter per series at each of its points, Latin and then Greek;
/// points that share a place are drawn side by side while there is room, else as '*'. `columns` (at
/// least 30) bounds the width of every line but the title's; `rows` (at least 4) is the height of
/// the plot without the axis. Throws UsageError as chart_svg does.
std::string chart_text(const Chart& chart, int columns, int rows);

/// The map: cells shaded from the least to the greatest value, those in the band hatched and
/// outlined, with a scale beside it. Throws UsageError when no cell has a value, for a number that
/// is not finite, for axes that do not ascend, for `values` of another size than the axes, for a
/// band with low > high, for marks outside of the axes or more than 36, and for a bad width.
std::string region_svg(const Region& region, const SvgOptions& options = {});

/// The same as text: '#' in the band, '.' below, '+' above, blank where infeasible; digits 0 to 9
/// from the least to the greatest value where there is no band; capital letters are marks. At most
/// `columns` (at least 30) wide and `rows` (at least 2) high without the axis; larger maps leave
/// cells out, and note it. Throws UsageError as region_svg does.
std::string region_text(const Region& region, int columns, int rows);

}  // namespace stageline::report
