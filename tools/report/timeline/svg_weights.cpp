// Draws weight versions over time: a thin band per stage, and the staleness of its micro-batches.
//
//   Weights   [#] newest version  [=] older versions still to be read      held  staleness
//   stage 0          ====== ====== ======                                    .
//   gpu0      ############################################################  2    _|   F≠B
//                                                                           0 1
// Where nothing is stale there is one band for all stages.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "sim/base/index.hpp"
#include "tools/report/timeline/svg_page.hpp"
#include "tools/report/timeline/svg_window.hpp"
#include "tools/report/timeline/weights.hpp"

namespace stageline::report {
namespace {

constexpr std::size_t most_bands = 12;   // more curves share one panel of strips
constexpr double band_height = 24;       // px, of the stage that holds the most versions
constexpr double band_gap = 8;           // px
constexpr double most_cell = 7;          // px a version
constexpr double divided_cell = 3.5;     // px; lower cells have no lines between them
constexpr double weights_height = 170;   // px; as the memory panel
constexpr double least_strip = 2;        // px
constexpr double most_columns = 20'000;  // over all curves: keeps the document under 2 MB
constexpr std::size_t most_bars = 8;     // of a histogram
constexpr double bars_width = 44;        // px
constexpr double bars_left = 30;         // px, from the right end of the plot

// The points in the window, at most two per column of `column` px: the highest, and the last, which
// persists.
std::vector<HeldPoint> thinned(const std::vector<HeldPoint>& all, const TimeScale& scale,
                               double column) {
  const std::vector<HeldPoint> points = clipped(all, scale.start, scale.end);
  const auto column_of = [&](const HeldPoint& point) {
    return static_cast<std::int64_t>((scale.x(point.at) - scale.left) / column);
  };
  std::vector<HeldPoint> kept;
  for (std::size_t first = 0; first < points.size();) {
    std::size_t highest = first;
    std::size_t next = first + 1;
    for (; next < points.size() && column_of(points[next]) == column_of(points[first]); ++next) {
      if (points[next].versions >= points[highest].versions) highest = next;
    }
    kept.push_back(points[highest]);
    if (highest + 1 < next) kept.push_back(points[next - 1]);
    first = next;
  }
  return kept;
}

// Draws boxes "M..h..v..z" on `bottom`; `height_of` gives the height of a number of versions.
template <class Height>
std::string boxes(const std::vector<HeldPoint>& points, const Frame& frame, double bottom,
                  Height height_of) {
  std::string out;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double height = height_of(points[i].versions);
    const double x = frame.scale.x(points[i].at);
    const double until = i + 1 < points.size() ? frame.scale.x(points[i + 1].at) : frame.right;
    if (height <= 0 || until <= x) continue;
    out += fmt::format("M{} {}H{}V{}H{}z", svg_number(x), svg_number(bottom - height),
                       svg_number(until), svg_number(bottom), svg_number(x));
  }
  return out;
}

std::string path(std::string_view classes, const std::string& data) {
  return data.empty() ? "" : fmt::format("<path class=\"{}\" d=\"{}\"/>\n", classes, data);
}

// The histogram as bars: grey for fresh, violet for stale. At most `most_bars`, each for as many
// values as needed.
std::string bars(const StageVersions& stage, double left, double top) {
  constexpr double height = 14;
  if (stage.staleness.empty()) return "";
  const int from = stage.staleness.front().updates;
  const int range = stage.staleness.back().updates - from + 1;
  const int each = (range + static_cast<int>(most_bars) - 1) / static_cast<int>(most_bars);
  std::vector<std::int64_t> counts(as_size((range + each - 1) / each));
  for (const StalenessCount& count : stage.staleness) {
    nth(counts, (count.updates - from) / each) += count.microbatches;
  }
  const auto most = static_cast<double>(*std::max_element(counts.begin(), counts.end()));
  const double pitch = std::min(11.0, bars_width / static_cast<double>(counts.size()));
  std::string out;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double x = left + pitch * static_cast<double>(i);
    const int least = from + static_cast<int>(i) * each;
    if (counts[i] > 0) {
      const double high = std::max(1.5, height * static_cast<double>(counts[i]) / most);
      out += path(least == 0 && each == 1 ? "ms" : "mv",
                  fmt::format("M{} {}h{}v{}h-{}z", svg_number(x), svg_number(top + height - high),
                              svg_number(pitch - 1), svg_number(high), svg_number(pitch - 1)));
    }
    // All values have a label, or the first and the last.
    if (counts.size() <= 4 || i == 0 || i + 1 == counts.size()) {
      out += text_at(x + (pitch - 1) / 2, top + height + 8, "d n", 7.5,
                     fmt::format("{}", i == 0 ? from : std::min(least + each, from + range) - 1));
    }
  }
  return out;
}

std::string tooltip(const Drawing& drawing, const HeldCurve& curve) {
  const StageVersions& stage = nth(drawing.versions, curve.stage);
  const int peak = curve.peak();
  return xml_escaped(
      fmt::format("stage {} on {}: holds at most {} version{} of its weights; staleness "
                  "(updates:micro-batches) {}; {}",
                  curve.stage, nth(drawing.timeline.devices, curve.device), peak,
                  peak == 1 ? "" : "s", staleness_counts(stage),
                  stage.consistent ? "every backward reads the version of its forward"
                                   : fmt::format("{} backwards read another version than "
                                                 "their forward, by up to {} updates",
                                                 stage.read_other, stage.read_other_by)));
}

Fragment bands(const Drawing& drawing, const std::vector<HeldCurve>& curves, const Frame& frame,
               double top) {
  int peak = 1;
  for (const HeldCurve& curve : curves) peak = std::max(peak, curve.peak());
  const double cell = std::min(most_cell, band_height / peak);
  Fragment result;
  double bottom = top;
  int shown = -1;  // stage of the row above
  for (const HeldCurve& curve : curves) {
    const StageVersions& stage = nth(drawing.versions, curve.stage);
    const double row = bottom + (bottom > top ? band_gap : 0);
    bottom = row + band_height;
    const auto points = thinned(curve.points, frame.scale, 1);
    result.text += fmt::format("<g class=\"held\"><title>{}</title>\n", tooltip(drawing, curve));
    result.text += path(
        "ms", fmt::format("M{} {}H{}V{}H{}z", svg_number(frame.left), svg_number(bottom - cell),
                          svg_number(frame.right), svg_number(bottom), svg_number(frame.left)));
    result.text += path("mv", boxes(points, frame, bottom - cell,
                                    [&](int versions) { return cell * (versions - 1); }));
    for (int line = 1; line < curve.peak() && cell >= divided_cell; ++line) {
      const double y = bottom - cell * line;
      result.text += line_at(frame.left, y, frame.right, y, "e");
    }
    result.text += "</g>\n";
    const double base = row + 11;
    if (curve.stage != shown) {
      result.text += text_at(frame.margin, base, "t", 12, fmt::format("stage {}", curve.stage));
      result.text += bars(stage, frame.right + bars_left, row);
      if (!stage.consistent) result.text += text_at(frame.right + 8, row + 22, "bad", 9, "F≠B");
    }
    result.text += text_at(frame.margin, base + 11, "d", 9,
                           shortened(nth(drawing.timeline.devices, curve.device), 16));
    result.text += text_at(frame.right + 8, base, "t", 12, fmt::format("{}", curve.peak()));
    shown = curve.stage;
  }
  result.bottom = bottom;
  return result;
}

// Many stages as strips: the stronger the colour, the more versions. A strip shows the maximum of
// several stages where there are more than the panel has room for.
Fragment strips(const Drawing& drawing, const std::vector<HeldCurve>& curves, const Frame& frame,
                double top) {
  const std::size_t stages = drawing.versions.size();
  const auto room = static_cast<std::size_t>(weights_height / least_strip);
  const std::size_t each = (stages + room - 1) / room;
  const std::size_t rows = (stages + each - 1) / each;
  const double pitch = std::min(12.0, weights_height / static_cast<double>(rows));
  const double height = pitch >= 5 ? pitch - 1 : pitch;
  const double column = std::max(1.0, frame.scale.width * static_cast<double>(rows) / most_columns);
  int peak = 1;
  for (const HeldCurve& curve : curves) peak = std::max(peak, curve.peak());

  std::size_t every = 1;  // distance of strips with a name
  while (static_cast<double>(every) * pitch < 11) every *= 2;
  Fragment result;
  std::size_t at = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    const double bottom = top + pitch * static_cast<double>(row) + height;
    std::vector<HeldCurve> of_row;
    for (; at < curves.size() && as_size(curves[at].stage) < (row + 1) * each; ++at) {
      of_row.push_back(curves[at]);
    }
    const HeldCurve most = most_held(of_row);
    const auto points = thinned(most.points, frame.scale, column);
    result.text += path(
        "row", fmt::format("M{} {}H{}v-{}H{}z", svg_number(frame.left), svg_number(bottom),
                           svg_number(frame.right), svg_number(height), svg_number(frame.left)));
    for (int versions = 2; versions <= most.peak(); ++versions) {
      const std::string data =
          boxes(points, frame, bottom, [&](int held) { return held == versions ? height : 0.0; });
      if (data.empty()) continue;
      result.text += fmt::format("<path class=\"pu\" fill-opacity=\"{}\" d=\"{}\"/>\n",
                                 svg_number((versions - 1) / std::max(1.0, peak - 1.0)), data);
    }
    if (row % every != 0) continue;
    const std::size_t first = row * each;
    result.text +=
        text_at(frame.margin, bottom - height / 2 + 3.5, "t", 10, fmt::format("stage {}", first));
    result.text += text_at(frame.right + 8, bottom - height / 2 + 3.5, "t", 10,
                           fmt::format("{}", most.peak()));
    if (pitch >= 9 || each * every > 1) {
      const StageVersions& stage = drawing.versions[first];
      result.text += text_at(frame.right + bars_left, bottom - height / 2 + 3.5,
                             stage.consistent ? "d" : "bad", 9,
                             staleness_range(stage) + (stage.consistent ? "" : " F≠B"));
    }
  }
  result.bottom = top + pitch * static_cast<double>(rows);
  if (each > 1) {
    result.notes.push_back(fmt::format(
        "Weights: one strip for {} stages, of which it shows the most versions held.", each));
  }
  if (column > 1.5) {
    result.notes.push_back(
        fmt::format("Strips of weights are thinned to steps of {} px, "
                    "of which each shows its highest value.",
                    svg_number(column)));
  }
  return result;
}

std::string staleness_note(const Drawing& drawing, bool by_stage) {
  std::string text = fmt::format(
      "Weights ({}). Staleness of a micro-batch: updates of the stage between the weights that its "
      "forward reads and its own update",
      name(drawing.program.settings.weights));
  bool consistent = true;
  for (std::size_t s = 0; s < drawing.versions.size(); ++s) {
    consistent = consistent && drawing.versions[s].consistent;
    if (!by_stage) continue;
    text += fmt::format("{} stage {} {}", s == 0 ? "; updates:micro-batches of" : ",", s,
                        staleness_counts(drawing.versions[s]));
  }
  text += ".";
  if (!consistent) {
    text += " F≠B: the backward of some micro-batch reads another version than its forward did.";
  }
  return text;
}

}  // namespace

bool has_weights(const Drawing& drawing) {
  return !drawing.versions.empty() &&
         drawing.versions.size() == drawing.program.placement.stage.size();
}

bool has_stale_weights(const Drawing& drawing) {
  return has_weights(drawing) && !all_fresh(drawing.versions);
}

Fragment draw_weights(const Drawing& drawing, const Frame& frame, double top) {
  Fragment result;
  result.text = text_at(frame.margin, top + 12, "t", 13, "Weights");
  if (!has_stale_weights(drawing)) {
    const Fragment words = paragraph(
        "fresh: one version of every stage throughout, read by each forward and its backward (F=B)",
        {frame.left, frame.width - frame.margin, 11, 14}, "d", top + 1);
    result.text += words.text;
    const double bottom = words.bottom + 5 + most_cell;
    result.text += path(
        "ms", fmt::format("M{} {}H{}v-{}H{}z", svg_number(frame.left), svg_number(bottom),
                          svg_number(frame.right), svg_number(most_cell), svg_number(frame.left)));
    result.text += text_at(frame.margin, bottom, "d", 9, "all stages");
    result.text += text_at(frame.right + 8, bottom, "t", 11, "1 held");
    result.bottom = bottom;
    return result;
  }
  const std::vector<HeldCurve> curves = versions_held(drawing.program, drawing.versions);
  const bool few = curves.size() <= most_bands;
  const std::vector<LegendEntry> entries =
      few ? std::vector<LegendEntry>{{"ms", "newest version"},
                                     {"mv", "older ones, still to be read"}}
          : std::vector<LegendEntry>{{"row", "one version"}, {"pu", "the most that are held"}};
  Frame plot = frame;
  plot.width = frame.right + frame.margin;  // the headings of the columns are beside the legend
  const Fragment key = legend(entries, plot, top + 1);
  result.text += key.text;
  const double rows_top = key.bottom + 3;
  result.text += text_at(frame.right + 8, rows_top - 10, "d", 9, "held");
  result.text += text_at(frame.right + bars_left, rows_top - 10, "d", 9, "staleness");
  const Fragment rows =
      few ? bands(drawing, curves, frame, rows_top) : strips(drawing, curves, frame, rows_top);
  result.text += rows.text;
  result.notes = rows.notes;
  result.notes.insert(result.notes.begin(), staleness_note(drawing, few));
  result.bottom = rows.bottom;
  return result;
}

}  // namespace stageline::report
