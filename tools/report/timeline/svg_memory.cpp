// Draws memory over time: a stacked curve per device if they are few, a grid of small panels for
// many.
#include <fmt/core.h>

#include <algorithm>

#include "sim/base/index.hpp"
#include "tools/report/timeline/svg_curves.hpp"
#include "tools/report/timeline/svg_page.hpp"

namespace stageline::report {
namespace {

constexpr std::size_t most_multiples = 8;  // devices; more have small panels
constexpr double multiple_height = 40;     // px
constexpr double multiple_gap = 12;        // px
constexpr std::size_t most_small = 32;     // small panels
constexpr double small_height = 34;        // px
constexpr double small_heading_room = 22;  // px, between the panels of a column
constexpr double small_gap = 14;           // px, between the panels of a row
constexpr double small_pitch = 150;        // px, the least from panel to panel in a row

using Shares = std::array<Bytes, memory_groups>;

MemoryGroup group_of(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::weights:
    case MemoryKind::gradients:
    case MemoryKind::optimizer:
      return MemoryGroup::state;
    case MemoryKind::versions:
      return MemoryGroup::versions;
    case MemoryKind::stash:
      return MemoryGroup::stash;
    case MemoryKind::buffers:
    case MemoryKind::workspace:
    case MemoryKind::communication:
      return MemoryGroup::passing;
  }
  return MemoryGroup::state;  // unreachable; g++ requires it
}

// Cumulative heights up to and including each group, from below.
Shares stacked(const MemoryUse& use) {
  Shares shares{};
  for (int kind = 0; kind < memory_kinds; ++kind) {
    const MemoryGroup group = group_of(static_cast<MemoryKind>(kind));
    for (auto i = as_size(group); i < shares.size(); ++i) {
      shares[i] += nth(use, kind);
    }
  }
  return shares;
}

// The text of the peak, in the right column: amount, moment, limit.
std::string peak_words(const Drawing& drawing, std::size_t device, double x, double y) {
  const DeviceMemory& memory = drawing.memory.device[device];
  const auto limit = limit_of(drawing, device);
  const bool over = limit && memory.peak > *limit;
  std::string out = text_at(x, y, over ? "bad" : "t", 11, brief(memory.peak));
  out += text_at(x, y + 12, "d", 9, "at " + brief(memory.peak_at));
  if (limit) {
    out += text_at(x, y + 23, over ? "bad" : "d", 9, (over ? "over " : "of ") + brief(*limit));
  }
  return out;
}

// Whether a curve ever has something in the group.
bool has_group(const std::vector<MemoryPoint>& curve, int group) {
  return std::any_of(curve.begin(), curve.end(), [&](const MemoryPoint& point) {
    const Shares shares = stacked(point.use);
    return nth(shares, group) > (group == 0 ? Bytes{} : shares[as_size(group) - 1]);
  });
}

// The legend of the groups that any device shows.
std::vector<LegendEntry> groups_in(const Drawing& drawing, const std::vector<std::size_t>& devices,
                                   const TimeScale& scale) {
  std::vector<LegendEntry> entries;
  for (int i = 0; i < memory_groups; ++i) {
    const bool any = std::any_of(devices.begin(), devices.end(), [&](std::size_t device) {
      return has_group(thinned(drawing.memory.device[device].curve, scale, 1), i);
    });
    const MemoryGroup group = static_cast<MemoryGroup>(i);
    if (any) entries.emplace_back(css_class(group), words(group));
  }
  return entries;
}

// The groups, one upon the other, and the line of the whole.
std::string bands(const std::vector<MemoryPoint>& curve, const Frame& frame,
                  const CurvePanel& panel) {
  std::string out;
  for (int group = memory_groups - 1; group >= 0; --group) {  // the upper groups behind
    const auto of_group = [&](const MemoryPoint& point) { return nth(stacked(point.use), group); };
    if (!has_group(curve, group)) continue;
    out += fmt::format("<path class=\"{}\" d=\"{}V{}H{}z\"/>\n",
                       css_class(static_cast<MemoryGroup>(group)),
                       steps(curve, frame, panel, of_group), svg_number(panel.bottom),
                       svg_number(frame.scale.x(curve.front().at)));
  }
  const auto whole = [](const MemoryPoint& point) { return total(point.use); };
  out += fmt::format("<path class=\"total\" d=\"{}\"/>\n", steps(curve, frame, panel, whole));
  return out;
}

std::string multiple(const Drawing& drawing, std::size_t device, const Frame& frame,
                     const CurvePanel& panel) {
  const DeviceMemory& memory = drawing.memory.device[device];
  const std::vector<MemoryPoint> curve = thinned(memory.curve, frame.scale, 1);
  std::string out = text_at(frame.margin, panel.bottom - panel.height / 2 + 4, "t", 12,
                            name_in(drawing.timeline.devices[device], frame.names));
  out += amounts(frame, panel, 2);
  out += bands(curve, frame, panel);
  const auto limit = limit_of(drawing, device);
  if (limit && *limit <= panel.top) {
    out += line_at(frame.left, panel.y(*limit), frame.right, panel.y(*limit), "limit");
  }
  out += dot(frame.scale.x(memory.peak_at), panel.y(memory.peak));
  return out + peak_words(drawing, device, frame.right + 8,
                          panel.bottom - panel.height + (limit ? 9 : 16));
}

// Small panels in rows.
struct Grid {
  std::vector<std::size_t> devices;  // in their order
  std::size_t fullest = 0;           // the device with the highest peak, or the first of them
  std::size_t columns = 1;
  double pitch = 0;   // px, from panel to panel in a row
  double column = 1;  // px, of thinned curves
};

// Those with a small panel, in their order: of too many, those that peak highest.
std::vector<std::size_t> devices_in_grid(const Drawing& drawing) {
  std::vector<std::size_t> devices = devices_with_curves(drawing);
  if (devices.size() <= most_small) return devices;
  const std::vector<std::size_t> order = devices;
  std::stable_sort(devices.begin(), devices.end(), [&](std::size_t a, std::size_t b) {
    return drawing.memory.device[a].peak > drawing.memory.device[b].peak;
  });
  devices.resize(most_small);
  std::vector<std::size_t> kept;
  for (const std::size_t device : order) {
    if (std::find(devices.begin(), devices.end(), device) != devices.end()) kept.push_back(device);
  }
  return kept;
}

Grid grid_of(const Drawing& drawing, const Frame& frame) {
  Grid grid;
  grid.devices = devices_in_grid(drawing);
  grid.fullest = *std::max_element(
      grid.devices.begin(), grid.devices.end(), [&](std::size_t a, std::size_t b) {
        return drawing.memory.device[a].peak < drawing.memory.device[b].peak;
      });
  const double room = frame.width - frame.margin - frame.left + small_gap;
  grid.columns =
      std::clamp<std::size_t>(static_cast<std::size_t>(room / small_pitch), 1, grid.devices.size());
  grid.pitch = room / static_cast<double>(grid.columns);
  grid.column = std::max(
      1.0, (grid.pitch - small_gap) * static_cast<double>(grid.devices.size()) / most_columns);
  return grid;
}

// Name and peak above the panel; what does not fit beside the peak is cut from the name.
std::string small_heading(const Drawing& drawing, std::size_t device, bool fullest,
                          const Frame& frame, double base) {
  const DeviceMemory& memory = drawing.memory.device[device];
  const auto limit = limit_of(drawing, device);
  const bool over = limit && memory.peak > *limit;
  std::string peak = brief(memory.peak);
  if (over) peak += ", over " + brief(*limit);
  const double width = frame.right - frame.left - text_width(peak, 10) - 6;
  return text_at(frame.left, base, fullest ? "t h" : "t", 10,
                 name_in(drawing.timeline.devices[device], width)) +
         text_at(frame.right, base,
                 over      ? "bad r"
                 : fullest ? "t h r"
                           : "t r",
                 10, peak);
}

// One small panel. `amounts_beside`: whether the scale's numbers stand at its left.
std::string small(const Drawing& drawing, std::size_t device, const Grid& grid, const Frame& frame,
                  const CurvePanel& panel, bool amounts_beside) {
  const DeviceMemory& memory = drawing.memory.device[device];
  const auto curve = thinned(memory.curve, frame.scale, grid.column);
  std::string out = small_heading(drawing, device, device == grid.fullest, frame,
                                  panel.bottom - panel.height - 4);
  out += fmt::format("<rect class=\"row\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n",
                     svg_number(frame.left), svg_number(panel.bottom - panel.height),
                     svg_number(frame.right - frame.left), svg_number(panel.height));
  if (amounts_beside) out += amounts(frame, panel, 2);
  out += bands(curve, frame, panel);
  const auto limit = limit_of(drawing, device);
  if (limit && *limit <= panel.top) {
    out += line_at(frame.left, panel.y(*limit), frame.right, panel.y(*limit), "limit");
  }
  return out + dot(frame.scale.x(memory.peak_at), panel.y(memory.peak));
}

// The ends of the time axis, below a panel.
std::string small_axis(const Frame& frame, double top) {
  return line_at(frame.left, top, frame.right, top, "axis") +
         text_at(frame.left, top + 12, "d", 9, brief(frame.scale.start)) +
         text_at(frame.right, top + 12, "d r", 9, brief(frame.scale.end));
}

// What the grid shows, and of how many devices.
std::string grid_words(const Drawing& drawing, const Grid& grid) {
  const std::size_t all = devices_with_curves(drawing).size();
  const std::string shown =
      all > grid.devices.size()
          ? fmt::format("the {} of {} devices that peak highest", most_small, all)
          : fmt::format("{} devices", all);
  const Bytes peak = drawing.memory.device[grid.fullest].peak;
  const auto equals =
      std::count_if(grid.devices.begin(), grid.devices.end(),
                    [&](std::size_t device) { return drawing.memory.device[device].peak == peak; });
  return shown + " on one scale, each with its peak; " +
         (equals > 1 ? fmt::format("the first of the {} fullest, ", equals) : "the fullest, ") +
         shortened(drawing.timeline.devices[grid.fullest], 16) + ", in bold";
}

// Says what the devices without a panel hold.
std::string folded_note(const Drawing& drawing, const Grid& grid) {
  std::optional<Bytes> least;
  Bytes most{};
  std::size_t count = 0;
  for (const std::size_t device : devices_with_curves(drawing)) {
    if (std::find(grid.devices.begin(), grid.devices.end(), device) != grid.devices.end()) continue;
    const Bytes peak = drawing.memory.device[device].peak;
    least = least ? std::min(*least, peak) : peak;
    most = std::max(most, peak);
    ++count;
  }
  if (!least) return "";
  const std::string peaks = *least == most ? brief(most) : brief(*least) + " to " + brief(most);
  return fmt::format(
      "Memory is drawn of {} devices, those that peak highest; the other {} peak at {}.",
      grid.devices.size(), count, peaks);
}

Fragment draw_grid(const Drawing& drawing, const Frame& frame, Bytes upper, double top) {
  const Grid grid = grid_of(drawing, frame);
  Fragment result = paragraph(grid_words(drawing, grid),
                              {frame.left, frame.width - frame.margin, 10, 13}, "d", top + 3);
  const Fragment key =
      legend(groups_in(drawing, grid.devices, frame.scale), frame, result.bottom + 3);
  result.text += key.text;
  const double first = key.bottom + 18;
  const std::size_t rows = (grid.devices.size() + grid.columns - 1) / grid.columns;
  for (std::size_t i = 0; i < grid.devices.size(); ++i) {
    Frame cell = frame;
    cell.left = frame.left + static_cast<double>(i % grid.columns) * grid.pitch;
    cell.right = cell.left + grid.pitch - small_gap;
    cell.scale.left = cell.left;
    cell.scale.width = cell.right - cell.left;
    const std::size_t row = i / grid.columns;
    const double bottom =
        first + static_cast<double>(row) * (small_height + small_heading_room) + small_height;
    result.text += small(drawing, grid.devices[i], grid, cell, {bottom, small_height, upper},
                         i % grid.columns == 0);
    // Below the last panel of each column.
    if (i + grid.columns >= grid.devices.size()) result.text += small_axis(cell, bottom);
  }
  result.bottom = first + static_cast<double>(rows) * (small_height + small_heading_room) -
                  small_heading_room + 14;
  if (const std::string note = folded_note(drawing, grid); !note.empty()) {
    result.notes.push_back(note);
  }
  if (grid.column > 1.5) {
    result.notes.push_back(fmt::format(
        "Memory curves are thinned to steps of {} px, of which each shows its highest value.",
        svg_number(grid.column)));
  }
  return result;
}

// The highest peak, or limit where that is not far above.
Bytes highest_of(const Drawing& drawing) {
  const std::vector<std::size_t> devices = devices_with_curves(drawing);
  Bytes peak{};
  for (const std::size_t device : devices) {
    peak = std::max(peak, drawing.memory.device[device].peak);
  }
  Bytes highest = peak;
  for (const std::size_t device : devices) {
    const auto limit = limit_of(drawing, device);
    const bool near =
        limit && static_cast<double>(limit->count) <= show_limit * static_cast<double>(peak.count);
    if (near) highest = std::max(highest, *limit);
  }
  return highest;
}

Fragment draw_curves(const Drawing& drawing, const std::string& title, const Frame& frame,
                     double top, Bytes least_top) {
  const std::vector<std::size_t> devices = devices_with_curves(drawing);
  const Bytes highest = std::max(highest_of(drawing), least_top);
  // Some room above the peak; at least 1 so that the scale is defined.
  const Bytes upper{highest.count + std::max<std::int64_t>(highest.count / 16, 1)};

  Fragment result;
  result.text = text_at(frame.margin, top + 12, "t", 13, title);
  double y = top + 20;
  if (devices.size() <= most_multiples) {
    const Fragment key = legend(groups_in(drawing, devices, frame.scale), frame, top + 1);
    result.text += key.text;
    double panel_top = key.bottom + 9;
    for (const std::size_t device : devices) {
      result.text +=
          multiple(drawing, device, frame, {panel_top + multiple_height, multiple_height, upper});
      panel_top += multiple_height + multiple_gap;
    }
    y = panel_top - multiple_gap;
  } else {
    const Fragment grid = draw_grid(drawing, frame, upper, top);
    result.text += grid.text;
    result.notes = grid.notes;
    y = grid.bottom;
  }
  result.bottom = y;
  return result;
}

}  // namespace

bool has_memory(const Drawing& drawing) { return !devices_with_curves(drawing).empty(); }

bool has_memory_grid(const Drawing& drawing, const TimeScale& scale) {
  return devices_with_curves(devices_of(drawing, scale)).size() > most_multiples;
}

bool needs_memory_axis(const Drawing& drawing, const TimeScale& scale) {
  const Drawing hosts = hosts_of(drawing, scale);
  if (has_memory(hosts)) return devices_with_curves(hosts).size() <= most_multiples;
  return !has_memory_grid(drawing, scale);
}

Bytes memory_top(const Drawing& drawing, const TimeScale& scale) {
  return highest_of(devices_of(drawing, scale));
}

Fragment draw_memory(const Drawing& drawing, const Frame& frame, double top, Bytes least_top) {
  const Drawing devices = devices_of(drawing, frame.scale);
  Fragment result;
  result.bottom = top;
  if (has_memory(devices)) result = draw_curves(devices, "Memory", frame, top, least_top);
  const Drawing hosts = hosts_of(drawing, frame.scale);
  if (!has_memory(hosts)) return result;
  Fragment below = draw_curves(hosts, "Hosts", frame, result.bottom + 14, {});
  result.text += below.text;
  result.bottom = below.bottom;
  result.notes.insert(result.notes.end(), below.notes.begin(), below.notes.end());
  return result;
}

}  // namespace stageline::report
