// Chooses the arrows of a picture, and draws each as a line with a halo and a head.
#include "tools/report/timeline/svg_arrows.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"

namespace stageline::report {
namespace {

struct ArrowPaint {
  const char* classes;  // CSS
  const char* words;    // in the legend
  const char* light;
  const char* dark;
  const char* dashes;  // so that a grey print tells them apart
};
// By cargo: darker than the boxes in the light theme and paler in the dark one, so that a line can
// be seen on a box of its own hue.
constexpr std::array<ArrowPaint, cargoes> paints{{
    {"aa", "arrow: activation", "#0b4a7a", "#c4e6ff", "none"},
    {"ag", "arrow: gradient", "#8a2f00", "#ffc9a6", "4 2"},
    {"at", "arrow: stash", "#4a6214", "#dcefa8", "1.5 1.5"},
    {"aw", "arrow: weights, to their first reader", "#4b2e63", "#dcc6ee", "6 1.5 1.5 1.5"},
}};

constexpr double head_length = 5;   // px
constexpr double head_width = 4.4;  // px
constexpr double inset = 0.25;      // of the row's height: where on the edge of its box an end lies
constexpr double arc_height = 9;    // px, of the control points above the row

struct Point {
  double x = 0;
  double y = 0;
};

std::string coordinates(Point point) { return svg_number(point.x) + " " + svg_number(point.y); }

// A triangle with its tip at `tip`, for a line that comes from `before`.
std::string head_path(Point before, Point tip) {
  const double length = std::max(std::hypot(tip.x - before.x, tip.y - before.y), 1e-9);
  const Point along{(tip.x - before.x) / length, (tip.y - before.y) / length};
  const Point base{tip.x - head_length * along.x, tip.y - head_length * along.y};
  const double half = head_width / 2;
  return "M" + coordinates(tip) + "L" +
         coordinates({base.x - half * along.y, base.y + half * along.x}) + "L" +
         coordinates({base.x + half * along.y, base.y - half * along.x}) + "z";
}

std::string drawn_path(std::string_view classes, const std::string& title, const std::string& line,
                       const std::string& head) {
  return fmt::format(
      "<g class=\"arrow {}\">{}<path class=\"halo\" d=\"{}\"/><path class=\"line\" d=\"{}\"/>"
      "<path class=\"head\" d=\"{}\"/></g>\n",
      classes, title, line, line, head);
}

// From row to row straight, within a row as an arc above it, which is a loop between neighbours.
std::string arrow_path(const Arrow& arrow, const std::string& title, const Frame& frame,
                       const RowPlaces& rows) {
  const double from_top = nth(rows.tops, arrow.from.device);
  const double to_top = nth(rows.tops, arrow.to.device);
  Point from{frame.scale.x(arrow.from.at), from_top};
  Point to{frame.scale.x(arrow.to.at), to_top};
  const char* const classes = nth(paints, arrow.cargo).classes;
  if (arrow.from.device == arrow.to.device) {
    const double room = to.x - from.x;
    const double inward = room >= 12 ? std::min(20.0, room / 3) : -5;
    const Point leaves{from.x + inward, from.y - arc_height};
    const Point arrives{to.x - inward, to.y - arc_height};
    return drawn_path(classes, title,
                      "M" + coordinates(from) + "C" + coordinates(leaves) + " " +
                          coordinates(arrives) + " " + coordinates(to),
                      head_path(arrives, to));
  }
  const bool down = to_top > from_top;
  from.y += rows.height * (down ? 1 - inset : inset);
  to.y += rows.height * (down ? inset : 1 - inset);
  return drawn_path(classes, title, "M" + coordinates(from) + "L" + coordinates(to),
                    head_path(from, to));
}

std::string colours_of_arrows(bool dark) {
  std::string css =
      fmt::format(".stageline .arrow .halo{{stroke:{}}}", dark ? "#14171c" : "#ffffff");
  for (const ArrowPaint& paint : paints) {
    const char* const colour = dark ? paint.dark : paint.light;
    css += fmt::format(".stageline .{0} .line{{stroke:{1}}}.stageline .{0} .head{{fill:{1}}}",
                       paint.classes, colour);
  }
  return css;
}

}  // namespace

DrawnArrows arrows_in(const Drawing& drawing, const TimeScale& scale, const ArrowChoice& choice) {
  DrawnArrows drawn;
  if (!choice.any()) return drawn;
  const std::string& run = drawing.program.schedule;
  const std::uint32_t microbatches = drawing.program.total_microbatches();
  if (choice.microbatch && *choice.microbatch >= microbatches) {
    throw UsageError(fmt::format(
        "arrows: messages:{} is of no micro-batch that {} has: its {} count from 0 to {}",
        *choice.microbatch, run, microbatches, std::int64_t{microbatches} - 1));
  }
  const std::vector<std::size_t> devices = devices_drawn(drawing);
  std::size_t outside = 0;
  const auto seen = [&](const ArrowEnd& end) {
    return end.at >= scale.start && end.at <= scale.end &&
           std::find(devices.begin(), devices.end(), as_size(end.device)) != devices.end();
  };
  const auto add = [&](const std::vector<Arrow>& found) {
    for (const Arrow& arrow : found) {
      if (arrow.cargo != Cargo::weights && choice.microbatch &&
          arrow.from.op.microbatch != *choice.microbatch) {
        continue;
      }
      const bool leaves = seen(arrow.from);
      const bool arrives = seen(arrow.to);
      if (leaves && arrives) drawn.arrows.push_back(arrow);
      if (leaves != arrives) ++outside;
    }
  };
  if (choice.messages) add(message_arrows(drawing.program, drawing.timeline));
  const std::size_t messages = drawn.arrows.size();
  if (choice.weights) {
    add(version_arrows(drawing.program, drawing.timeline));
    if (drawn.arrows.size() == messages) {
      drawn.notes.emplace_back(
          "No arrows of weights: no op drawn reads a version of the weights that an update drawn "
          "has made.");
    }
  }
  if (drawn.arrows.size() > most_arrows) {
    throw UsageError(fmt::format(
        "arrows: {} has {} in the part drawn ({} of messages, {} of weights), and more than {} "
        "cannot be told apart; draw those of one micro-batch (messages:0), or a part of the run "
        "(from and to of the picture)",
        run, drawn.arrows.size(), messages, drawn.arrows.size() - messages, most_arrows));
  }
  if (messages > 0) {
    drawn.notes.emplace_back(
        "Arrows of messages go from the end of the op that makes what is sent to the start of the op "
        "that takes it first.");
  }
  if (drawn.arrows.size() > messages) {
    drawn.notes.emplace_back(
        "Arrows of weights go from the end of the update that makes a version to the start of the "
        "first op that reads it on a device.");
  }
  if (outside > 0) {
    drawn.notes.push_back(fmt::format("{} arrow{} with one end outside of the picture {} left out.",
                                      outside, outside == 1 ? "" : "s",
                                      outside == 1 ? "is" : "are"));
  }
  return drawn;
}

std::vector<LegendEntry> arrow_legend(const std::vector<DrawnArrows>& runs) {
  std::vector<LegendEntry> entries;
  for (int cargo = 0; cargo < cargoes; ++cargo) {
    const bool any = std::any_of(runs.begin(), runs.end(), [&](const DrawnArrows& run) {
      return std::any_of(run.arrows.begin(), run.arrows.end(), [&](const Arrow& arrow) {
        return arrow.cargo == static_cast<Cargo>(cargo);
      });
    });
    if (!any) continue;
    entries.emplace_back(nth(paints, cargo).classes, nth(paints, cargo).words);
    entries.back().is_arrow = true;
  }
  return entries;
}

std::string arrows_text(const DrawnArrows& drawn, const Drawing& drawing, const Frame& frame,
                        const RowPlaces& rows) {
  if (drawn.arrows.empty()) return "";
  std::string out = "<g>\n";
  const auto name = [&](const ArrowEnd& end) {
    return fmt::format("{} on {}", print(end.op), nth(drawing.timeline.devices, end.device));
  };
  for (const Arrow& arrow : drawn.arrows) {
    const std::string title =
        fmt::format("<title>{}</title>",
                    xml_escaped(fmt::format("{} to {}, {} later", name(arrow.from), name(arrow.to),
                                            brief(arrow.to.at - arrow.from.at))));
    out += arrow_path(arrow, title, frame, rows);
  }
  return out + "</g>\n";
}

std::string arrow_swatch(const std::string& classes, double x, double y, double width) {
  const Point from{x, y};
  const Point to{x + width, y};
  return drawn_path(classes, "", "M" + coordinates(from) + "L" + coordinates(to),
                    head_path(from, to));
}

std::string arrow_style(Theme theme) {
  std::string css =
      ".stageline .arrow path{fill:none}.stageline .arrow .line{stroke-width:1.2}"
      ".stageline .arrow .halo{stroke-width:3;stroke-opacity:.7}";
  for (const ArrowPaint& paint : paints) {
    css += fmt::format(".stageline .{} .line{{stroke-dasharray:{}}}", paint.classes, paint.dashes);
  }
  css += colours_of_arrows(theme == Theme::dark);
  if (theme == Theme::automatic) {
    css += "@media (prefers-color-scheme:dark){" + colours_of_arrows(true) + "}";
  }
  return "<style>" + css + "</style>\n";
}

}  // namespace stageline::report
