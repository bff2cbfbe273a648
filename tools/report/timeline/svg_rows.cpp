// Draws the rows of the space-time diagram: compute as boxes, messages and copies as strips.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "sim/base/index.hpp"
#include "tools/report/timeline/svg_page.hpp"

namespace stageline::report {
namespace {

constexpr std::size_t most_tooltips = 2'000;    // more spans than that get none
constexpr std::size_t most_rectangles = 4'000;  // more boxes than that are drawn as paths
constexpr double largest_label = 11;            // px
constexpr double edged = 3.5;                   // px; narrower boxes have no edge line

constexpr int compute_lane = static_cast<int>(LaneKind::compute);

// Distinct stages in a compute lane, ascending.
std::vector<std::uint16_t> stages_in(const Spans& spans) {
  std::vector<std::uint16_t> stages;
  stages.reserve(spans.size());
  for (const Span& span : spans) stages.push_back(span.op.stage);
  std::sort(stages.begin(), stages.end());
  stages.erase(std::unique(stages.begin(), stages.end()), stages.end());
  return stages;
}

// By span, how many stages the device has before the span's own.
std::vector<int> ranks_in(const Spans& spans) {
  const std::vector<std::uint16_t> stages = stages_in(spans);
  std::vector<int> ranks;
  ranks.reserve(spans.size());
  for (const Span& span : spans) {
    const auto at = std::lower_bound(stages.begin(), stages.end(), span.op.stage);
    ranks.push_back(static_cast<int>(at - stages.begin()));
  }
  return ranks;
}

// The pieces of every lane; the idle intervals follow the last lane.
struct Pieces {
  std::vector<std::vector<Piece>> lanes;
  std::vector<std::vector<Piece>> idle;
};

// What is outside of the window becomes empty, and has no box.
Pieces pieces_of(const Drawing& drawing, const TimeScale& scale) {
  const std::size_t devices = drawing.timeline.devices.size();
  Pieces pieces{std::vector<std::vector<Piece>>(devices * lane_kinds),
                std::vector<std::vector<Piece>>(devices)};
  const std::vector<int> directions = directions_of(drawing.timeline);
  for (std::size_t device = 0; device < devices; ++device) {
    const auto stages = stages_in(drawing.timeline.lanes[lane_index(device, compute_lane)]);
    for (int lane = 0; lane < lane_kinds; ++lane) {
      for (const Span& span : drawing.timeline.lanes[lane_index(device, lane)]) {
        const auto at = std::lower_bound(stages.begin(), stages.end(), span.op.stage);
        const bool numbered =
            as_size(span.op.microbatch) < directions.size() && span.op.kind != OpKind::update;
        const bool pale = numbered ? directions[as_size(span.op.microbatch)] % 2 == 1
                                   : (at - stages.begin()) % 2 == 1;
        pieces.lanes[lane_index(device, lane)].push_back(
            {scale.nearest(span.start), scale.nearest(span.end),
             static_cast<int>(tone_of(span.op.kind, pale))});
      }
    }
  }
  for (const IdleInterval& idle : drawing.idle) {
    if (idle.device < 0 || as_size(idle.device) >= devices) continue;
    nth(pieces.idle, idle.device)
        .push_back({scale.nearest(idle.start), scale.nearest(idle.end),
                    static_cast<int>(tone_of(idle.kind))});
  }
  return pieces;
}

// The share of [from, to] in which the compute lane is idle; 1 where that is empty.
double idle_share(const Spans& compute, Time from, Time to) {
  if (to <= from) return 1;
  Time busy{};
  Time until = from;
  for (const Span& span : compute) {
    const Time end = std::min(span.end, to);
    const Time start = std::max(span.start, until);
    if (end > start) busy += end - start;
    until = std::max(until, end);
  }
  return 1 - static_cast<double>(busy.count()) / static_cast<double>((to - from).count());
}

// The end of the time whose idle share a row shows: of the run, or of the row's own run, and within
// the window.
Time end_of_row(const Drawing& drawing, std::size_t device, const TimeScale& scale) {
  const Time end = drawing.ends.empty() ? makespan(drawing.timeline) : drawing.ends[device];
  return std::min(end, scale.end);
}

std::string rectangle(const Box& box, double top, double height, std::string_view classes,
                      const std::string& tooltip) {
  const std::string shape = fmt::format(
      "<rect class=\"{}{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"", classes,
      box.piece >= 0 && box.width >= edged ? " e" : "", svg_number(box.x),
      svg_number(top + box.top * height), svg_number(box.width), svg_number(box.height * height));
  return shape + (tooltip.empty() ? "/>\n" : fmt::format("><title>{}</title></rect>\n", tooltip));
}

// A double zigzag near the right end of a row whose run goes on.
std::string break_mark(double right, double top, double height) {
  std::string out;
  for (const double x : {right - 9, right - 4}) {
    out += fmt::format("<path class=\"c axis break\" d=\"M{} {}l4 {}l-4 {}l4 {}\"/>\n",
                       svg_number(x), svg_number(top - 1), svg_number((height + 2) / 3),
                       svg_number((height + 2) / 3), svg_number((height + 2) / 3));
  }
  return out;
}

// One path per tone: a third of the bytes of rectangles.
std::string paths(const Boxes& boxes, double top, double height) {
  std::array<std::string, std::size_t{2} * tones> data;  // without and with an edge
  for (const Box& box : boxes.boxes) {
    const bool edge = box.piece >= 0 && box.width >= edged;
    const std::string width = svg_number(box.width);
    data[2 * as_size(box.tone) + (edge ? 1 : 0)] +=
        fmt::format("M{} {}h{}v{}h-{}z", svg_number(box.x), svg_number(top + box.top * height),
                    width, svg_number(box.height * height), width);
  }
  std::string out;
  for (std::size_t i = 0; i < data.size(); ++i) {
    if (data[i].empty()) continue;
    out += fmt::format("<path class=\"{}{}\" d=\"{}\"/>\n", css_class(static_cast<Tone>(i / 2)),
                       i % 2 == 1 ? " e" : "", data[i]);
  }
  return out;
}

std::string tooltip_of(const Span& span, const std::string& device) {
  return xml_escaped(fmt::format("{} on {}: {} to {}, {}", print(span.op), device,
                                 brief(span.start), brief(span.end), brief(span.end - span.start)));
}

// Notches where some device has more than two stages and every box has room; else bars.
StageMark mark_of(const Rows& rows, const Drawing& drawing) {
  bool any = false;
  bool room = true;
  for (const std::size_t device : devices_drawn(drawing)) {
    const std::size_t lane = lane_index(device, compute_lane);
    any = any || has_bars(rows.lanes[lane]);
    room = room && have_room_for_notches(rows.lanes[lane], ranks_in(drawing.timeline.lanes[lane]));
  }
  if (!any) return StageMark::none;
  const bool many =
      std::any_of(rows.stages.begin(), rows.stages.end(), [](int n) { return n > 2; });
  return many && room && !rows.directions && rows.merged == 0 ? StageMark::notches : StageMark::bar;
}

// The marks on a device's boxes.
std::string marks_of(const Rows& rows, const Drawing& drawing, std::size_t device, double top,
                     double height) {
  const std::size_t lane = lane_index(device, compute_lane);
  switch (rows.mark) {
    case StageMark::none:
      return "";
    case StageMark::bar:
      return bars(rows.lanes[lane], top, height);
    case StageMark::notches:
      return notches(rows.lanes[lane], ranks_in(drawing.timeline.lanes[lane]), top, height);
  }
  return "";  // unreachable; g++ requires it
}

// The footnote about stages, and about the marks that tell them apart.
std::string stage_note(const Rows& rows) {
  const bool barred = rows.mark == StageMark::bar;
  std::string note =
      "Devices with several stages: large figures count micro-batches, small ones, where they fit, "
      "stages; ";
  if (rows.directions) {
    return note + "micro-batches of the other direction are paler" +
           (barred ? " and have a bar." : ".");
  }
  note += "every second stage of a device is paler";
  if (rows.mark == StageMark::notches) return note + ", and notches count its stages from 0.";
  return note + (barred ? " and has a bar." : ".");
}

}  // namespace

Rows rows_of(const Drawing& drawing, const TimeScale& scale, std::size_t most_boxes) {
  const Pieces pieces = pieces_of(drawing, scale);
  const RowLayout layout = row_layout(devices_drawn(drawing).size());
  // Half a pixel is fine enough for stacks in merged cells; strips show any tone that is present.
  const auto steps_of = [](double height) {
    return std::max(12, static_cast<int>(std::ceil(2 * height)));
  };
  Rows rows;
  rows.directions = !directions_of(drawing.timeline).empty();
  for (std::size_t i = 0; i < pieces.lanes.size(); ++i) {
    for (const Span& span : drawing.timeline.lanes[i]) {
      if (span.start <= scale.end && span.end >= scale.start) ++rows.spans;
    }
    const bool takes_time = std::any_of(pieces.lanes[i].begin(), pieces.lanes[i].end(),
                                        [](const Piece& piece) { return piece.end > piece.start; });
    if (takes_time) rows.in_use[i % lane_kinds] = true;
    if (i % lane_kinds == 0) {
      rows.stages.push_back(static_cast<int>(stages_in(drawing.timeline.lanes[i]).size()));
    }
  }
  for (;; rows.narrow *= 1.25) {
    std::size_t count = 0;
    rows.merged = 0;
    rows.lanes.clear();
    rows.idle.clear();
    for (std::size_t i = 0; i < pieces.lanes.size(); ++i) {
      const double height = i % lane_kinds == 0 ? layout.row : layout.strip;
      rows.lanes.push_back(boxes_of(pieces.lanes[i], scale, rows.narrow, steps_of(height)));
      rows.merged += rows.lanes.back().merged;
      count += rows.lanes.back().boxes.size();
    }
    for (const auto& lane : pieces.idle) {
      rows.idle.push_back(boxes_of(lane, scale, rows.narrow, steps_of(layout.row)));
      count += rows.idle.back().boxes.size();
    }
    if (count <= most_boxes || rows.narrow > scale.width) break;
  }
  for (const auto* all : {&rows.lanes, &rows.idle}) {
    for (const Boxes& boxes : *all) {
      for (const Box& box : boxes.boxes) nth(rows.drawn, box.tone) = true;
    }
  }
  rows.mark = mark_of(rows, drawing);
  return rows;
}

std::string name_in(const std::string& device, double room) {
  constexpr std::size_t most_characters = 16;
  constexpr double rounding = 0.5;  // px: of the sums that made the room
  for (std::size_t characters = most_characters; characters > 1; --characters) {
    std::string name = shortened(device, characters);
    if (text_width(name, 12) <= room + rounding) return name;
  }
  return shortened(device, 1);
}

std::vector<LegendEntry> legend_of(const std::vector<Rows>& runs) {
  std::vector<LegendEntry> entries;
  const auto drawn_in = [](const Rows& rows, Tone tone) {
    return nth(rows.drawn, tone) || (tone < Tone::pale_forward && nth(rows.drawn, pale_of(tone)));
  };
  bool idle = false;
  const auto any_pale = [&](bool directions, bool barred) {
    return std::any_of(runs.begin(), runs.end(), [&](const Rows& rows) {
      return rows.directions == directions && (rows.mark == StageMark::bar) == barred &&
             std::any_of(rows.drawn.begin() + static_cast<int>(Tone::pale_forward),
                         rows.drawn.begin() + static_cast<int>(Tone::pale_update) + 1,
                         [](bool drawn) { return drawn; });
    });
  };
  for (int i = 0; i < tones; ++i) {
    const Tone tone = static_cast<Tone>(i);
    if (tone >= Tone::pale_forward && tone <= Tone::pale_update) continue;
    const bool drawn = std::any_of(runs.begin(), runs.end(),
                                   [&](const Rows& rows) { return drawn_in(rows, tone); });
    if (tone == Tone::activation) {
      for (const bool directions : {false, true}) {
        const std::string of = directions ? "the other direction" : "every second stage";
        if (any_pale(directions, true)) {
          entries.emplace_back("pf", "paler, with a bar: " + of, StageMark::bar);
        }
        if (any_pale(directions, false)) entries.emplace_back("pf", "paler: " + of);
      }
      if (std::any_of(runs.begin(), runs.end(),
                      [](const Rows& rows) { return rows.mark == StageMark::notches; })) {
        entries.emplace_back("pf", "notches count the stages of a device from 0",
                             StageMark::notches);
      }
    }
    if (!drawn) continue;
    idle = idle || tone >= Tone::fill;
    entries.emplace_back(css_class(tone), words(tone));
  }
  if (!idle) entries.emplace_back("row", "idle");
  return entries;
}

Fragment draw_rows(const Rows& rows, const Drawing& drawing, const Frame& frame, OpNumbers counted,
                   double top) {
  const Timeline& timeline = drawing.timeline;
  const std::vector<std::size_t> drawn = devices_drawn(drawing);
  const std::size_t devices = drawn.size();
  const SpanNumbers numbers(drawing, counted);
  const RowLayout layout = row_layout(devices);
  const RowPlaces places = row_places(rows, drawing, top);
  const double pitch = places.pitch;
  std::size_t boxes = 0;
  for (const Boxes& lane : rows.lanes) boxes += lane.boxes.size();
  const bool as_paths = boxes > most_rectangles;
  const bool tooltips = !as_paths && rows.spans < most_tooltips;
  // Names on every row, or on every second, fourth, ... where rows are too low for text.
  const double name_size = std::min(12.0, std::max(9.0, pitch - 2));
  std::size_t every = 1;
  while (static_cast<double>(every) * pitch < name_size + 1) every *= 2;

  const double bottom = places.bottom;
  std::string ground;
  std::string front;
  for (std::size_t place = 0; place < devices; ++place) {
    const std::size_t device = drawn[place];
    const double y = places.tops[device];
    const Time end = rows.broken ? makespan(timeline) : end_of_row(drawing, device, frame.scale);
    const double width = std::max(0.0, frame.scale.x(frame.scale.nearest(end)) - frame.left);
    ground += fmt::format("<rect class=\"row\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n",
                          svg_number(frame.left), svg_number(y), svg_number(width),
                          svg_number(layout.row));
    ground += paths(rows.idle[device], y, layout.row);
    double lane_top = y;
    for (int lane = 0; lane < lane_kinds; ++lane) {
      if (!nth(rows.in_use, lane) && lane != compute_lane) continue;
      const Boxes& lane_boxes = rows.lanes[lane_index(device, lane)];
      const auto& spans = timeline.lanes[lane_index(device, lane)];
      const double height = lane == compute_lane ? layout.row : layout.strip;
      if (as_paths) {
        front += paths(lane_boxes, lane_top, height);
      } else {
        for (const Box& box : lane_boxes.boxes) {
          const bool one = tooltips && box.piece >= 0;
          front += rectangle(
              box, lane_top, height, css_class(static_cast<Tone>(box.tone)),
              one ? tooltip_of(nth(spans, box.piece), timeline.devices[device]) : std::string{});
        }
      }
      if (lane != compute_lane && layout.strip >= 5) {
        front += text_at(frame.left - 6, lane_top + layout.strip, "d r", 7,
                         name(static_cast<LaneKind>(lane)));
      }
      lane_top += height + layout.strip_gap;
    }
    front += marks_of(rows, drawing, device, y, layout.row);
    const LabelRule rule{
        &numbers, &frame.scale, static_cast<int>(device), rows.stages[device] > 1, largest_label,
        y,        layout.row};
    front += labels(rows.lanes[lane_index(device, compute_lane)],
                    timeline.lanes[lane_index(device, compute_lane)], rule);
    if (rows.broken) front += break_mark(frame.right, y, layout.row);
    if (place % every != 0) continue;
    const double base = y + layout.row / 2 + 0.36 * name_size;
    front += text_at(frame.margin, base, "t", name_size,
                     name_in(timeline.devices[device], frame.left - frame.margin - 6));
    const double share =
        idle_share(timeline.lanes[lane_index(device, compute_lane)], frame.scale.start, end);
    front += text_at(frame.right + 8, base, "d", std::min(name_size, 11.0),
                     fmt::format("{:.1f} %", 100 * share));
  }
  front += text_at(frame.right + 8, top - 6, "d", 10, "idle");

  Fragment result;
  result.text =
      "<g>\n" + ground + "</g>\n" + time_grid(frame, top, bottom) + "<g>\n" + front + "</g>\n";
  result.bottom = bottom;
  if (rows.merged > 0) {
    result.notes.push_back(
        fmt::format("{} of {} spans are narrower than {} px and drawn merged: "
                    "the height of a colour is the share of time that its ops take there.",
                    rows.merged, rows.spans, svg_number(rows.narrow)));
  }
  if (!numbers.note().empty()) result.notes.push_back(numbers.note());
  if (rows.broken) {
    result.notes.push_back(fmt::format(
        "Broken rows go on to {}: the run takes more than twice as long as the others, and does not "
        "set the axis.",
        brief(makespan(timeline))));
  }
  if (counted != OpNumbers::versions &&
      std::any_of(rows.stages.begin(), rows.stages.end(), [](int n) { return n > 1; })) {
    result.notes.push_back(stage_note(rows));
  }
  return result;
}

}  // namespace stageline::report
