// Composes the page of the space-time diagram.
#include "tools/report/timeline/svg.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "sim/base/errors.hpp"
#include "tools/report/svg/categories.hpp"
#include "tools/report/svg/width.hpp"
#include "tools/report/timeline/svg_arrows.hpp"
#include "tools/report/timeline/svg_page.hpp"

namespace stageline::report {
namespace {

constexpr std::size_t most_boxes = 30'000;  // keeps the document under 2 MB
constexpr double least_tick_room = 36;      // px, of the same on a phone
constexpr double tick_room = 46;            // px, of the numbers at the left of the plot

// The head of the page, and the runs below it.
struct PageContents {
  std::string title;
  std::string subtitle;
  std::vector<std::string> notes;
  std::vector<const Drawing*> runs;
  bool headings = false;  // whether each run has a heading of its own, with its rates
};

Time longest_of(const std::vector<const Drawing*>& runs) {
  Time longest{};
  for (const Drawing* const run : runs) longest = std::max(longest, makespan(run->timeline));
  return longest;
}

// Whether the picture is of timelines alone.
bool only_timelines(const Panels& panels) {
  return panels.timeline && !panels.memory && !panels.categories && !panels.weights;
}

// The end of the longest run; of three timelines and more of the longest that takes at most twice
// as long as half of them do, so that the others can be read.
Time end_of_axis(const std::vector<const Drawing*>& runs, const DrawingView& view) {
  if (view.to) return *view.to;
  std::vector<Time> ends;
  for (const Drawing* const run : runs) ends.push_back(makespan(run->timeline));
  std::sort(ends.begin(), ends.end());
  if (ends.size() < 3 || view.from > Time{} || !only_timelines(view.panels)) return ends.back();
  const Time most = 2 * ends[(ends.size() - 1) / 2];
  return *std::prev(std::upper_bound(ends.begin(), ends.end(), most));
}

void check_run(const Drawing& drawing) {
  const Timeline& timeline = drawing.timeline;
  if (timeline.devices.empty() || timeline.lanes.size() != timeline.devices.size() * lane_kinds ||
      makespan(timeline) <= Time{}) {
    std::size_t spans = 0;
    for (const auto& lane : timeline.lanes) spans += lane.size();
    throw UsageError(fmt::format(
        "there is nothing to draw: a drawing needs a span longer than 0, and this one has {} devices, {} lanes and {} spans that end by {}",
        timeline.devices.size(), timeline.lanes.size(), spans, print(makespan(timeline))));
  }
}

void check(const std::vector<const Drawing*>& runs, const SvgOptions& options,
           const DrawingView& view) {
  check_width(options.width);
  if (runs.empty()) throw UsageError("there is nothing to draw: a drawing needs a run");
  if (view.arrows.any() && !view.panels.timeline) {
    throw UsageError("arrows are of the timeline, and the panels have none; add timeline to them");
  }
  for (const Drawing* const run : runs) check_run(*run);
  const Time longest = longest_of(runs);
  if (view.from >= longest) {
    throw UsageError(fmt::format("nothing is drawn from {} on: the run ends at {}",
                                 brief(view.from), brief(longest)));
  }
  if (view.to && *view.to <= view.from) {
    throw UsageError(fmt::format("a drawing must end after its beginning, but goes from {} to {}",
                                 brief(view.from), brief(*view.to)));
  }
}

Frame frame_of(const std::vector<const Drawing*>& runs, const SvgOptions& options,
               const DrawingView& view) {
  Frame frame;
  frame.width = options.width;
  const bool phone = options.width < least_desk;
  frame.margin = phone ? 8 : 18;
  double names = 0;
  bool wide = false;  // whether the right column has more than idle times
  for (const Drawing* const run : runs) {
    for (const std::string& device : run->timeline.devices) {
      names = std::max(names, text_width(name_in(device, frame.width), 12));
    }
    wide = wide || ((view.panels.memory || view.panels.categories) && has_memory(*run)) ||
           (view.panels.weights && has_stale_weights(*run));
  }
  frame.left = frame.margin + names + tick_room;
  // Names of rows take a fifth of a phone at most.
  if (phone) frame.left = std::min(frame.left, 0.2 * frame.width);
  frame.names = frame.left - frame.margin - (phone ? least_tick_room : tick_room);
  frame.right = frame.width - frame.margin - (wide ? 84 : 62);
  frame.scale = {end_of_axis(runs, view), frame.left, frame.right - frame.left, view.from};
  // Fewer ticks where the numbers are long.
  const Time length = frame.scale.end - frame.scale.start;
  int intervals = std::max(2, static_cast<int>(frame.scale.width / 70));
  for (;; --intervals) {
    frame.axis = time_axis(length, intervals);
    const double pitch = frame.scale.width * static_cast<double>(frame.axis.step) /
                         static_cast<double>(length.count());
    const double needed = text_width(tick_label(frame.axis, frame.scale.end.count()), 11) + 8;
    if (pitch >= needed || intervals <= 1) return frame;
  }
}

// Notes of the runs: what several of them share is said once, the rest with the heading of its run.
class RunNotes {
 public:
  void add(const std::string& run, const std::vector<std::string>& notes) {
    for (const std::string& note : notes) {
      const auto known = std::find_if(notes_.begin(), notes_.end(),
                                      [&](const Note& other) { return other.text == note; });
      if (known == notes_.end()) {
        notes_.push_back({note, run});
      } else {
        known->run.clear();
      }
    }
  }
  void write(std::vector<std::string>& notes) const {
    for (const Note& note : notes_) {
      notes.push_back(note.run.empty() ? note.text : note.run + ": " + note.text);
    }
  }

 private:
  struct Note {
    std::string text;
    std::string run;  // empty: of several
  };
  std::vector<Note> notes_;
};

Fragment heading_of(const Drawing& run, const Frame& frame, double top) {
  Fragment result;
  result.text = text_at(frame.margin, top + 13, "t h", 13, run.title);
  const double left = frame.margin + text_width(run.title, 14) + 12;
  const std::string subtitle = run.subtitle + (run.rates.empty() ? "" : " · " + run.rates);
  const bool beside = left + text_width(subtitle, 11) <= frame.right;
  const Fragment words =
      paragraph(subtitle, {beside ? left : frame.margin, frame.width - frame.margin, 11, 14}, "d",
                beside ? top + 2 : top + 17);
  result.text += words.text;
  result.bottom = std::max(top + 17, words.bottom);
  return result;
}

// The panels of one run. `axes`: whether each panel has an axis below it; else only the last one
// has, and that only where `last_axis` is set.
struct RunPlace {
  const Rows& rows;
  const DrawnArrows& arrows;
  Bytes memory_top;
  Bytes category_top;
  bool axes = true;
  bool last_axis = true;
  OpNumbers numbers = OpNumbers::microbatches;
};

Fragment draw_run(const Drawing& drawing, const Frame& frame, const Panels& panels,
                  const RunPlace& place, double top) {
  Fragment result;
  double y = top;
  const auto add = [&](const Fragment& part) {
    result.text += part.text;
    result.notes.insert(result.notes.end(), part.notes.begin(), part.notes.end());
    y = part.bottom;
  };
  const bool memory = panels.memory && has_memory(drawing);
  const bool categories = panels.categories && has_memory(drawing);
  const bool weights = panels.weights && has_weights(drawing);
  const bool stale = weights && has_stale_weights(drawing);
  const auto add_axis = [&](bool last) {
    if (last ? place.last_axis : place.axes) add(time_labels(frame, y + 5));
  };
  if (panels.timeline) {
    const RowPlaces places = row_places(place.rows, drawing, y);
    add(draw_rows(place.rows, drawing, frame, place.numbers, y));
    result.text += arrows_text(place.arrows, drawing, frame, places);
    result.notes.insert(result.notes.end(), place.arrows.notes.begin(), place.arrows.notes.end());
    // Small panels have axes of their own, and the rows the plot's.
    const bool alone = memory && has_memory_grid(drawing, frame.scale);
    if (alone) {
      add(time_labels(frame, y + 5));
    } else {
      add_axis(!memory && !categories && !stale);
    }
  }
  if (memory) {
    add(draw_memory(drawing, frame, y + (panels.timeline ? 14 : 0), place.memory_top));
    if (needs_memory_axis(drawing, frame.scale)) add_axis(!categories && !stale);
  }
  if (categories) {
    add(draw_categories(drawing, frame, y + (panels.timeline || memory ? 14 : 0),
                        place.category_top));
    add_axis(!stale);
  }
  if (weights) {
    const bool first = !panels.timeline && !memory && !categories;
    add(draw_weights(drawing, frame, y + (first ? 0 : 14)));
    if (stale) add_axis(true);
  }
  result.bottom = y;
  return result;
}

std::string described(const PageContents& contents, const Frame& frame, const Panels& panels,
                      const std::vector<Rows>& rows) {
  std::size_t devices = 0;
  std::size_t spans = 0;
  bool memory = false;
  bool categories = false;
  bool weights = false;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Drawing& run = *contents.runs[i];
    devices = std::max(devices, run.timeline.devices.size());
    spans += rows[i].spans;
    memory = memory || (panels.memory && has_memory(run));
    categories = categories || (panels.categories && has_memory(run));
    weights = weights || (panels.weights && has_weights(run));
  }
  const Time length = frame.scale.end - frame.scale.start;
  return fmt::format(
      "Space-time diagram of {}{} device{} over {}: {} spans{}{}{}{}.",
      contents.runs.size() > 1 ? fmt::format("{} runs on ", contents.runs.size()) : "", devices,
      devices == 1 ? "" : "s", brief(length), spans, panels.timeline ? ", one row a device" : "",
      memory ? ", memory by device below" : "", categories ? ", memory by category below" : "",
      weights ? ", weight versions by stage below" : "");
}

// Without title, subtitle and notes; headings of several runs stay.
PageContents without_words(PageContents contents) {
  contents.title.clear();
  contents.subtitle.clear();
  contents.notes.clear();
  return contents;
}

std::string page(PageContents contents, const SvgOptions& options, const DrawingView& view) {
  check(contents.runs, options, view);
  const Frame frame = frame_of(contents.runs, options, view);
  const Panels& panels = view.panels;
  std::vector<Rows> rows;
  std::vector<DrawnArrows> arrows;
  Bytes memory_scale{};
  Bytes category_scale{};
  for (const Drawing* const run : contents.runs) {
    rows.push_back(rows_of(*run, frame.scale, most_boxes / contents.runs.size()));
    arrows.push_back(arrows_in(*run, frame.scale, view.arrows));
    rows.back().broken = !view.to && makespan(run->timeline) > frame.scale.end;
    if (!contents.headings) continue;
    memory_scale = std::max(memory_scale, memory_top(*run, frame.scale));
    if (panels.categories) {
      category_scale = std::max(category_scale, category_top(*run, frame.scale));
    }
  }

  std::string body;
  double y = 14;
  const auto add = [&](const Fragment& part) {
    body += part.text;
    y = part.bottom;
  };
  const double right = frame.width - frame.margin;
  if (options.plain) contents = without_words(std::move(contents));
  if (!options.title.empty()) contents.title = options.title;
  add(paragraph(contents.title, {frame.margin, right, 17, 22}, "t h", y));
  std::string subtitle = contents.subtitle;
  if (!options.plain && (view.from > Time{} || view.to)) {
    subtitle += fmt::format("{}{} to {} shown", subtitle.empty() ? "" : " · ", brief(view.from),
                            brief(frame.scale.end));
  }
  add(paragraph(subtitle, {frame.margin, right, 12, 17}, "d", y + 1));
  if (!options.plain && !contents.headings && !contents.runs.front()->rates.empty()) {
    add(paragraph(contents.runs.front()->rates, {frame.margin, right, 12, 17}, "d", y));
  }
  if (panels.timeline) {
    std::vector<LegendEntry> entries = legend_of(rows);
    for (const LegendEntry& entry : arrow_legend(arrows)) entries.push_back(entry);
    add(legend(entries, frame, y + 7));
    y += 14;
  } else {
    y += 8;
  }

  RunNotes notes;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Drawing& run = *contents.runs[i];
    const bool last = i + 1 == rows.size();
    if (contents.headings) {
      add(heading_of(run, frame, y));
      y += panels.timeline ? 12 : 2;
    }
    // Runs of one panel each share the axis below the last of them.
    const bool one_panel =
        panels.timeline + panels.memory + panels.categories + panels.weights == 1;
    const RunPlace place{rows[i],        arrows[i],          memory_scale,
                         category_scale, !contents.headings, last || !one_panel,
                         view.numbers};
    const Fragment drawn = draw_run(run, frame, panels, place, y);
    add(drawn);
    notes.add(contents.headings ? run.title : "", drawn.notes);
    if (!last) y += 16;
  }
  if (!options.plain) notes.write(contents.notes);
  y += 10;
  for (const std::string& note : contents.notes) {
    add(paragraph(note, {frame.margin, right, 10, 14}, "d", y));
  }
  const std::string height = svg_number(y + 12);
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg class=\"stageline\" xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
      "viewBox=\"0 0 {0} {1}\" role=\"img\">\n"
      "<title>{2}</title>\n"
      "<desc>{3}</desc>\n"
      "{4}{5}{6}</svg>\n",
      options.width, height,
      xml_escaped(contents.title.empty() ? std::string("Space-time diagram") : contents.title),
      xml_escaped(described(contents, frame, panels, rows)),
      style_sheet(options.theme) + idle_style(options.theme) +
          (panels.categories ? category_style(options.theme) : "") +
          (view.arrows.any() ? arrow_style(options.theme) : ""),
      page_ground(options, height), body);
}

}  // namespace

std::string svg(const Drawing& drawing, const SvgOptions& options, const DrawingView& view) {
  return page({drawing.title, drawing.subtitle, drawing.footnotes, {&drawing}, false}, options,
              view);
}

std::string svg(const Drawings& drawings, const SvgOptions& options, const DrawingView& view) {
  PageContents contents{drawings.title, drawings.subtitle, {}, {}, true};
  RunNotes notes;
  for (const Drawing& run : drawings.runs) {
    contents.runs.push_back(&run);
    notes.add(run.title, run.footnotes);
  }
  notes.write(contents.notes);
  return page(std::move(contents), options, view);
}

}  // namespace stageline::report
