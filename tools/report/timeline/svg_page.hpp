// The parts of the page, from above: header, legend, rows, axis, memory, weights, footnotes.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/index.hpp"
#include "tools/report/svg/text.hpp"
#include "tools/report/svg/theme.hpp"
#include "tools/report/timeline/drawing.hpp"
#include "tools/report/timeline/svg_boxes.hpp"
#include "tools/report/timeline/svg_marks.hpp"
#include "tools/report/timeline/svg_numbers.hpp"

namespace stageline::report {

/// The page layout, in px. The columns: names and tick labels, the plot, numbers.
struct Frame {
  double width = 0;   // of the page
  double margin = 0;  // at the left and right of the page
  double left = 0;    // left edge of the plot
  double right = 0;   // right edge of the plot
  TimeScale scale;    // of the plot
  Axis axis;          // of time
  double names = 0;   // px for a name beside the numbers of a panel
};

/// A part of the page and where it ends.
struct Fragment {
  std::string text;
  double bottom = 0;               // px
  std::vector<std::string> notes;  // footnotes
};

/// A <text> element; `text` is escaped here. `y` is the base line.
std::string text_at(double x, double y, std::string_view classes, double size,
                    std::string_view text);
/// The ground of the page, to the height in px as text; nothing of a plain picture.
std::string page_ground(const SvgOptions& options, const std::string& height);

std::string line_at(double x1, double y1, double x2, double y2, std::string_view classes);

/// Lines of text from `top` on, each broken at blanks to fit between `left` and `right`. `pitch` is
/// the distance of base lines, in px.
struct TextBlock {
  double left = 0;
  double right = 0;
  double size = 10;
  double pitch = 14;
};
Fragment paragraph(std::string_view text, const TextBlock& block, std::string_view classes,
                   double top);

/// A swatch and a text for each entry, in as many lines as needed.
struct LegendEntry {
  LegendEntry(std::string_view swatch, std::string_view label,
              StageMark on_swatch = StageMark::none)
      : classes(swatch), words(label), mark(on_swatch) {}

  std::string classes;  // CSS
  std::string words;
  StageMark mark;         // upon the swatch
  bool is_arrow = false;  // in place of a swatch
};
Fragment legend(const std::vector<LegendEntry>& entries, const Frame& frame, double top);

/// Faint lines at the ticks, and the axis itself with its labels.
std::string time_grid(const Frame& frame, double top, double bottom);
Fragment time_labels(const Frame& frame, double top);

/// The contents of the rows as boxes, before they are drawn.
struct Rows {
  std::vector<Boxes> lanes;               // devices × lane_kinds
  std::vector<Boxes> idle;                // by device
  std::vector<int> stages;                // by device, how many stages it computes
  std::array<bool, tones> drawn{};        // tones in use
  std::array<bool, lane_kinds> in_use{};  // lanes in which an op of any device takes time
  std::size_t spans = 0;                  // number of spans in the window
  std::size_t merged = 0;                 // spans merged with others
  double narrow = 1;                      // px; narrower spans are merged
  StageMark mark = StageMark::none;
  bool directions = false;  // whether pale tones are those of a second direction, not of a stage
  bool broken = false;      // whether the run ends behind the axis, which others have set
};
inline std::size_t lane_index(std::size_t device, int lane) {
  return device * lane_kinds + as_size(lane);
}
/// `most_boxes` bounds the size of the document: narrower boxes are merged until there are no more.
Rows rows_of(const Drawing& drawing, const TimeScale& scale, std::size_t most_boxes);
/// What is drawn in any of them.
std::vector<LegendEntry> legend_of(const std::vector<Rows>& runs);
Fragment draw_rows(const Rows& rows, const Drawing& drawing, const Frame& frame, OpNumbers numbers,
                   double top);

/// Geometry of a row, in px.
struct RowLayout {
  double row = 26;
  double gap = 8;
  double strip = 5;
  double strip_gap = 2;
};
RowLayout row_layout(std::size_t devices);

/// Where the rows are, in px.
struct RowPlaces {
  double height = 0;         // of the boxes of a compute lane
  double pitch = 0;          // from row to row
  double bottom = 0;         // of the last row
  std::vector<double> tops;  // by device; 0 of one without a row
};
RowPlaces row_places(const Rows& rows, const Drawing& drawing, double top);

/// The devices with a row, from the top.
std::vector<std::size_t> devices_drawn(const Drawing& drawing);
/// The name of a device, shortened to `room` px of the column of names, at 12 px.
std::string name_in(const std::string& device, double room);

/// How the boxes of a row are labelled.
struct LabelRule {
  const SpanNumbers* numbers = nullptr;
  const TimeScale* scale = nullptr;
  int device = 0;
  bool with_stage = false;  // where there is room
  double size = 11;         // px, the largest
  double top = 0;           // px, of the row
  double height = 0;        // px
};
/// The labels of one compute lane. Of ops of one kind whose boxes are about as wide, all have a
/// number, at one size of at least 6 px; where not all have room, every eighth micro-batch has;
/// where these have not, none. Stages are beside the numbers where all of them have room for both.
std::string labels(const Boxes& boxes, const Spans& spans, const LabelRule& rule);

/// Whether there are curves to draw; draws them: a panel as wide as the timeline for each of few
/// devices, else a grid of small panels, each with a time axis of its own. The scale goes up to
/// `least_top` at least, so that several runs can share one.
bool has_memory(const Drawing& drawing);
/// Whether the panels of devices are a grid, and whether the lowest panels share the plot's axis.
bool has_memory_grid(const Drawing& drawing, const TimeScale& scale);
bool needs_memory_axis(const Drawing& drawing, const TimeScale& scale);
Bytes memory_top(const Drawing& drawing, const TimeScale& scale);
Fragment draw_memory(const Drawing& drawing, const Frame& frame, double top, Bytes least_top = {});

/// The same memory stacked by category, a panel per device: the reserve below all, the peak marked
/// with its op; limits are those of the whole memory. Of many devices, those that peak highest.
Bytes category_top(const Drawing& drawing, const TimeScale& scale);
Fragment draw_categories(const Drawing& drawing, const Frame& frame, double top,
                         Bytes least_top = {});

/// Whether weight versions are known, and whether some are stale; draws them: a band per stage,
/// strips for many stages, and one line where all is fresh.
bool has_weights(const Drawing& drawing);
bool has_stale_weights(const Drawing& drawing);
Fragment draw_weights(const Drawing& drawing, const Frame& frame, double top);

}  // namespace stageline::report
