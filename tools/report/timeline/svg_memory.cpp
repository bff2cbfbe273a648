// Draws memory over time: a small stacked curve per device if they are few, one panel for many.
#include <fmt/core.h>

#include <algorithm>

#include "sim/index.hpp"
#include "tools/report/timeline/svg_page.hpp"
#include "tools/report/timeline/svg_window.hpp"

namespace stageline {
namespace {

constexpr std::size_t most_multiples = 8;  // devices; more share one panel
constexpr double multiple_height = 40;     // px
constexpr double multiple_gap = 12;        // px
constexpr double panel_height = 170;       // px
constexpr double most_columns = 20'000;    // over all curves: keeps the document under 2 MB
constexpr double show_limit = 1.6;         // of the peak; a higher limit would flatten the curves

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

// Keeps at most two points per column of `column` px: the highest, and the last, which persists.
std::vector<MemoryPoint> thinned(const std::vector<MemoryPoint>& curve, const TimeScale& scale,
                                 double column) {
  std::vector<MemoryPoint> kept;
  std::size_t first = 0;
  while (first < curve.size()) {
    const auto column_of = [&](std::size_t i) {
      return static_cast<std::int64_t>((scale.x(curve[i].at) - scale.left) / column);
    };
    std::size_t highest = first;
    std::size_t next = first + 1;
    for (; next < curve.size() && column_of(next) == column_of(first); ++next) {
      if (total(curve[next].use) >= total(curve[highest].use)) highest = next;
    }
    kept.push_back(curve[highest]);
    if (highest + 1 < next) kept.push_back(curve[next - 1]);
    first = next;
  }
  return kept;
}

// The vertical scale of a panel: y of an amount.
struct Panel {
  double bottom = 0;  // px
  double height = 0;  // px
  Bytes top{};        // amount at the upper edge

  double y(Bytes amount) const {
    return bottom - height * static_cast<double>(amount.count) / static_cast<double>(top.count);
  }
};

// The path "M..H..V.." along the step function until the end of time.
template <class Value>
std::string steps(const std::vector<MemoryPoint>& curve, const Frame& frame, const Panel& panel,
                  Value value) {
  std::string out;
  std::string last;
  for (const MemoryPoint& point : curve) {
    const std::string x = svg_number(frame.scale.x(point.at));
    const std::string y = svg_number(panel.y(value(point.use)));
    if (y == last) continue;
    out += out.empty() ? fmt::format("M{} {}", x, y) : fmt::format("H{}V{}", x, y);
    last = y;
  }
  return out + "H" + svg_number(frame.right);
}

std::string amounts(const Frame& frame, const Panel& panel, int intervals) {
  const Axis axis = byte_axis(panel.top, intervals);
  std::string out;
  for (std::int64_t tick = 0; tick <= panel.top.count; tick += axis.step) {
    const double y = panel.y(Bytes{tick});
    out += line_at(frame.left, y, frame.right, y, "grid");
    out += text_at(frame.left - 5, y + 3, "d r", 8.5,
                   tick == 0 ? "0" : tick_label(axis, tick) + " " + axis.unit_name);
  }
  return out;
}

std::string dot(double x, double y) {
  return fmt::format("<circle class=\"dot\" cx=\"{}\" cy=\"{}\" r=\"2.6\"/>\n", svg_number(x),
                     svg_number(y));
}

std::optional<Bytes> limit_of(const Drawing& drawing, std::size_t device) {
  return device < drawing.memory_limit.size() ? drawing.memory_limit[device] : std::nullopt;
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

std::string multiple(const Drawing& drawing, std::size_t device, const Frame& frame,
                     const Panel& panel) {
  const DeviceMemory& memory = drawing.memory.device[device];
  const std::vector<MemoryPoint> curve = thinned(memory.curve, frame.scale, 1);
  std::string out = text_at(frame.margin, panel.bottom - panel.height / 2 + 4, "t", 12,
                            shortened(drawing.timeline.devices[device], 16));
  out += amounts(frame, panel, 2);
  for (int group = memory_groups - 1; group >= 0; --group) {  // the upper groups behind
    const auto of_group = [&](const MemoryUse& use) { return nth(stacked(use), group); };
    if (!has_group(curve, group)) continue;
    out += fmt::format("<path class=\"{}\" d=\"{}V{}H{}z\"/>\n",
                       css_class(static_cast<MemoryGroup>(group)),
                       steps(curve, frame, panel, of_group), svg_number(panel.bottom),
                       svg_number(frame.scale.x(curve.front().at)));
  }
  const auto whole = [](const MemoryUse& use) { return total(use); };
  out += fmt::format("<path class=\"total\" d=\"{}\"/>\n", steps(curve, frame, panel, whole));
  const auto limit = limit_of(drawing, device);
  if (limit && *limit <= panel.top) {
    out += line_at(frame.left, panel.y(*limit), frame.right, panel.y(*limit), "limit");
  }
  out += dot(frame.scale.x(memory.peak_at), panel.y(memory.peak));
  return out + peak_words(drawing, device, frame.right + 8,
                          panel.bottom - panel.height + (limit ? 9 : 16));
}

std::string overlaid(const Drawing& drawing, const std::vector<std::size_t>& devices,
                     const Frame& frame, const Panel& panel, double column) {
  std::string out = amounts(frame, panel, 5);
  std::size_t highest = devices.front();
  std::optional<Bytes> lowest_limit;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const DeviceMemory& memory = drawing.memory.device[devices[i]];
    if (memory.peak > drawing.memory.device[highest].peak) highest = devices[i];
    const auto limit = limit_of(drawing, devices[i]);
    if (limit && (!lowest_limit || *limit < *lowest_limit)) lowest_limit = limit;
    const auto curve = thinned(memory.curve, frame.scale, column);
    const double share = static_cast<double>(i) / static_cast<double>(devices.size() - 1);
    out += fmt::format("<path class=\"c\" stroke=\"{}\" stroke-width=\"{}\" d=\"{}\"/>\n",
                       ramp_colour(share), devices.size() > 32 ? "0.6" : "1.1",
                       steps(curve, frame, panel, [](const MemoryUse& use) { return total(use); }));
  }
  if (lowest_limit && *lowest_limit <= panel.top) {
    const double y = panel.y(*lowest_limit);
    out += line_at(frame.left, y, frame.right, y, "limit");
  }
  const DeviceMemory& memory = drawing.memory.device[highest];
  const double y = panel.y(memory.peak);
  out += dot(frame.scale.x(memory.peak_at), y);
  const double words_y = std::min(y + 4, panel.bottom - 40);
  out +=
      text_at(frame.right + 8, words_y, "t", 11, shortened(drawing.timeline.devices[highest], 11));
  return out + peak_words(drawing, highest, frame.right + 8, words_y + 13);
}

std::vector<std::size_t> devices_with_curves(const Drawing& drawing) {
  std::vector<std::size_t> devices;
  for (std::size_t device = 0; device < drawing.timeline.devices.size(); ++device) {
    if (device < drawing.memory.device.size() && !drawing.memory.device[device].curve.empty() &&
        drawing.memory.device[device].peak > Bytes{}) {
      devices.push_back(device);
    }
  }
  return devices;
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
    const double column =
        std::max(1.0, frame.scale.width * static_cast<double>(devices.size()) / most_columns);
    result.text += fmt::format(
        "<defs><linearGradient id=\"stageline-ramp\"><stop offset=\"0\" stop-color=\"{}\"/>"
        "<stop offset=\"1\" stop-color=\"{}\"/></linearGradient></defs>\n"
        "<rect fill=\"url(#stageline-ramp)\" x=\"{}\" y=\"{}\" width=\"90\" height=\"8\"/>\n",
        ramp_colour(0), ramp_colour(1), svg_number(frame.left), svg_number(top + 5));
    const Fragment words = paragraph(
        "one curve a device, " + shortened(drawing.timeline.devices[devices.front()], 16) + " to " +
            shortened(drawing.timeline.devices[devices.back()], 16),
        {frame.left + 96, frame.width - frame.margin, 10, 13}, "d", top + 3);
    result.text += words.text;
    y = std::max(y, words.bottom + 4);
    result.text +=
        overlaid(drawing, devices, frame, {y + panel_height, panel_height, upper}, column);
    y += panel_height;
    if (column > 1.5) {
      result.notes.push_back(fmt::format(
          "Memory curves are thinned to steps of {} px, of which each shows its highest value.",
          svg_number(column)));
    }
  }
  result.bottom = y;
  return result;
}

// Curve and peak within the window.
DeviceMemory in_window(const DeviceMemory& memory, const TimeScale& scale) {
  DeviceMemory shown = memory;
  shown.curve = clipped(memory.curve, scale.start, scale.end);
  shown.peak = {};
  for (const MemoryPoint& point : shown.curve) {
    if (total(point.use) <= shown.peak) continue;
    shown.peak = total(point.use);
    shown.peak_at = point.at;
    shown.at_peak = point.use;
  }
  return shown;
}

std::vector<DeviceMemory> in_window(const std::vector<DeviceMemory>& all, const Drawing& drawing,
                                    const TimeScale& scale) {
  if (scale.start <= Time{} && scale.end >= makespan(drawing.timeline)) return all;
  std::vector<DeviceMemory> shown;
  shown.reserve(all.size());
  for (const DeviceMemory& memory : all) shown.push_back(in_window(memory, scale));
  return shown;
}

// What the panels of memory draw of the devices.
Drawing devices_of(const Drawing& drawing, const TimeScale& scale) {
  Drawing devices;
  devices.timeline.devices = drawing.timeline.devices;
  devices.memory_limit = drawing.memory_limit;
  devices.memory.device = in_window(drawing.memory.device, drawing, scale);
  return devices;
}

// The hosts as if they were devices: the same clock, but a scale of their own.
Drawing hosts_of(const Drawing& drawing, const TimeScale& scale) {
  Drawing hosts;
  hosts.timeline.devices = drawing.hosts;
  hosts.memory_limit = drawing.host_limit;
  hosts.memory.device = in_window(drawing.memory.host, drawing, scale);
  return hosts;
}

}  // namespace

bool has_memory(const Drawing& drawing) { return !devices_with_curves(drawing).empty(); }

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

}  // namespace stageline
