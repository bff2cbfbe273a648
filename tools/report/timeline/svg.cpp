// Composes the page of the space-time diagram.
#include "tools/report/timeline/svg.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "sim/errors.hpp"
#include "tools/report/timeline/svg_page.hpp"

namespace stageline {

std::string text_at(double x, double y, std::string_view classes, double size,
                    std::string_view text) {
  return fmt::format("<text class=\"{}\" x=\"{}\" y=\"{}\" font-size=\"{}\">{}</text>\n", classes,
                     svg_number(x), svg_number(y), svg_number(size), xml_escaped(text));
}

std::string line_at(double x1, double y1, double x2, double y2, std::string_view classes) {
  return fmt::format("<path class=\"{}\" d=\"M{} {}L{} {}\"/>\n", classes, svg_number(x1),
                     svg_number(y1), svg_number(x2), svg_number(y2));
}

Fragment legend(const std::vector<LegendEntry>& entries, const Frame& frame, double top) {
  constexpr double size = 11;
  constexpr double line = 18;
  Fragment result;
  double x = frame.left;
  double y = top;
  for (const auto& [classes, words] : entries) {
    const double width = 18 + text_width(words, size) + 14;
    if (x > frame.left && x + width - 14 > frame.width - frame.margin) {
      x = frame.left;
      y += line;
    }
    result.text +=
        fmt::format("<rect class=\"{} swatch\" x=\"{}\" y=\"{}\" width=\"13\" height=\"10\"/>\n",
                    classes, svg_number(x), svg_number(y + 2));
    result.text += text_at(x + 18, y + 11, "t", size, words);
    x += width;
  }
  result.bottom = y + line;
  return result;
}

std::string time_grid(const Frame& frame, double top, double bottom) {
  std::string out;
  for (std::int64_t i = 0; i <= frame.scale.end.count() / frame.axis.step; ++i) {
    const double x = frame.scale.x(Time{i * frame.axis.step});
    out += line_at(x, top, x, bottom, "grid");
  }
  return out;
}

Fragment time_labels(const Frame& frame, double top) {
  Fragment result;
  result.text = line_at(frame.left, top, frame.right, top, "axis");
  for (std::int64_t i = 0; i <= frame.scale.end.count() / frame.axis.step; ++i) {
    const double x = frame.scale.x(Time{i * frame.axis.step});
    result.text += line_at(x, top, x, top + 4, "axis");
    result.text += text_at(x, top + 16, "d n", 11, tick_label(frame.axis, i * frame.axis.step));
  }
  result.text += text_at(frame.right + 16, top + 16, "d", 11, "time, " + frame.axis.unit_name);
  result.bottom = top + 22;
  return result;
}

namespace {

void check(const Drawing& drawing, const SvgOptions& options) {
  const Timeline& timeline = drawing.timeline;
  if (options.width < 400 || options.width > 10'000) {
    throw UsageError(
        fmt::format("the width of a drawing must be 400 to 10000 px, but is {}", options.width));
  }
  if (timeline.devices.empty() || timeline.lanes.size() != timeline.devices.size() * lane_kinds ||
      makespan(timeline) <= Time{}) {
    std::size_t spans = 0;
    for (const auto& lane : timeline.lanes) spans += lane.size();
    throw UsageError(fmt::format(
        "there is nothing to draw: a drawing needs a timeline with at least one span longer than "
        "0, but this one has {} devices, {} lanes and {} spans that end by {}",
        timeline.devices.size(), timeline.lanes.size(), spans, print(makespan(timeline))));
  }
}

Frame frame_of(const Drawing& drawing, const SvgOptions& options) {
  Frame frame;
  frame.width = options.width;
  frame.margin = 18;
  double names = 0;
  for (const std::string& device : drawing.timeline.devices) {
    names = std::max(names, text_width(shortened(device, 16), 12));
  }
  frame.left = frame.margin + names + 46;
  frame.right =
      frame.width - frame.margin - (has_memory(drawing) || has_stale_weights(drawing) ? 84 : 62);
  frame.scale = {makespan(drawing.timeline), frame.left, frame.right - frame.left};
  frame.axis = time_axis(frame.scale.end, std::max(2, static_cast<int>(frame.scale.width / 70)));
  return frame;
}

}  // namespace

std::string svg(const Drawing& drawing, const SvgOptions& options) {
  check(drawing, options);
  const Frame frame = frame_of(drawing, options);
  const double text_width_available = frame.width - 2 * frame.margin;
  const Rows rows = rows_of(drawing, frame.scale);

  std::string body;
  double y = 14;
  if (!drawing.title.empty()) {
    for (const std::string& line : wrapped(drawing.title, text_width_available, 17)) {
      body += text_at(frame.margin, y + 17, "t h", 17, line);
      y += 22;
    }
  }
  for (const std::string& line : wrapped(drawing.subtitle, text_width_available, 12)) {
    body += text_at(frame.margin, y + 13, "d", 12, line);
    y += 17;
  }
  const Fragment key = legend(legend_of(rows), frame, y + 8);
  body += key.text;

  const Fragment diagram = draw_rows(rows, drawing, frame, key.bottom + 14);
  const Fragment axis = time_labels(frame, diagram.bottom + 5);
  body += diagram.text + axis.text;
  y = axis.bottom;

  std::vector<std::string> notes = drawing.footnotes;
  const auto add = [&](const std::vector<std::string>& more) {
    notes.insert(notes.end(), more.begin(), more.end());
  };
  add(diagram.notes);
  if (has_memory(drawing)) {
    const Fragment memory = draw_memory(drawing, frame, y + 14);
    const Fragment again = time_labels(frame, memory.bottom + 5);
    body += memory.text + again.text;
    add(memory.notes);
    y = again.bottom;
  }
  if (has_weights(drawing)) {
    const Fragment weights = draw_weights(drawing, frame, y + 14);
    body += weights.text;
    add(weights.notes);
    y = weights.bottom;
    if (has_stale_weights(drawing)) {
      const Fragment again = time_labels(frame, y + 5);
      body += again.text;
      y = again.bottom;
    }
  }
  y += 10;
  for (const std::string& note : notes) {
    for (const std::string& line : wrapped(note, text_width_available, 10)) {
      body += text_at(frame.margin, y + 10, "d", 10, line);
      y += 14;
    }
  }
  const std::string height = svg_number(y + 12);

  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg class=\"stageline\" xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
      "viewBox=\"0 0 {0} {1}\" role=\"img\">\n"
      "<title>{2}</title>\n"
      "<desc>Space-time diagram of {3} device{4} over {5}: {6} spans, one row a "
      "device{7}{10}.</desc>\n"
      "{8}<rect class=\"bg\" width=\"{0}\" height=\"{1}\"/>\n{9}</svg>\n",
      options.width, height,
      xml_escaped(drawing.title.empty() ? std::string("Space-time diagram") : drawing.title),
      drawing.timeline.devices.size(), drawing.timeline.devices.size() == 1 ? "" : "s",
      xml_escaped(brief(frame.scale.end)), rows.spans,
      has_memory(drawing) ? ", memory by device below" : "", style_sheet(options.theme), body,
      has_weights(drawing) ? ", weight versions by stage below" : "");
}

}  // namespace stageline
