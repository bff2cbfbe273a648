// Draws memory over time: a small stacked curve per device if they are few, one panel for many.
#include <fmt/core.h>

#include <algorithm>

#include "sim/base/index.hpp"
#include "tools/report/timeline/svg_curves.hpp"
#include "tools/report/timeline/svg_page.hpp"

namespace stageline::report {
namespace {

constexpr std::size_t most_multiples = 8;  // devices; more share one panel
constexpr double multiple_height = 40;     // px
constexpr double multiple_gap = 12;        // px
constexpr double panel_height = 170;       // px

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

std::string multiple(const Drawing& drawing, std::size_t device, const Frame& frame,
                     const CurvePanel& panel) {
  const DeviceMemory& memory = drawing.memory.device[device];
  const std::vector<MemoryPoint> curve = thinned(memory.curve, frame.scale, 1);
  std::string out = text_at(frame.margin, panel.bottom - panel.height / 2 + 4, "t", 12,
                            name_in(drawing.timeline.devices[device], frame.names));
  out += amounts(frame, panel, 2);
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
  const auto limit = limit_of(drawing, device);
  if (limit && *limit <= panel.top) {
    out += line_at(frame.left, panel.y(*limit), frame.right, panel.y(*limit), "limit");
  }
  out += dot(frame.scale.x(memory.peak_at), panel.y(memory.peak));
  return out + peak_words(drawing, device, frame.right + 8,
                          panel.bottom - panel.height + (limit ? 9 : 16));
}

std::string overlaid(const Drawing& drawing, const std::vector<std::size_t>& devices,
                     const Frame& frame, const CurvePanel& panel, double column) {
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
    out += fmt::format(
        "<path class=\"c\" stroke=\"{}\" stroke-width=\"{}\" d=\"{}\"/>\n", ramp_colour(share),
        devices.size() > 32 ? "0.6" : "1.1",
        steps(curve, frame, panel, [](const MemoryPoint& point) { return total(point.use); }));
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

}  // namespace stageline::report
