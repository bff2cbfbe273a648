// Draws memory over time, stacked by category: a panel per device, of many those that peak highest.
#include <fmt/core.h>

#include <algorithm>

#include "sim/analysis/memory_categories.hpp"
#include "sim/base/index.hpp"
#include "tools/report/svg/categories.hpp"
#include "tools/report/timeline/svg_curves.hpp"
#include "tools/report/timeline/svg_page.hpp"

namespace stageline::report {
namespace {

constexpr std::size_t most_stacks = 8;     // devices with a panel
constexpr double categories_height = 108;  // px
constexpr double stack_gap = 14;           // px
constexpr double column_width = 94;        // px, of the words about the peak

// Heights up to and including each category, from below.
CategoryUse stacked(const MemoryPoint& point, Bytes reserve) {
  CategoryUse heights = by_category(point.use, point.stash, reserve);
  for (std::size_t i = 1; i < heights.size(); ++i) heights[i] += heights[i - 1];
  return heights;
}

Bytes height_of(const DeviceMemory& memory) { return memory.peak + memory.reserve; }

// What the stack may reach: the reserve is part of it, and of no limit of the account.
std::optional<Bytes> limit_of_stack(const Drawing& drawing, std::size_t device) {
  const std::optional<Bytes> limit = limit_of(drawing, device);
  if (!limit) return std::nullopt;
  return *limit + drawing.memory.device[device].reserve;
}

// Those with a panel, in their order.
std::vector<std::size_t> devices_shown(const Drawing& drawing) {
  std::vector<std::size_t> devices = devices_with_curves(drawing);
  if (devices.size() <= most_stacks) return devices;
  std::stable_sort(devices.begin(), devices.end(), [&](std::size_t a, std::size_t b) {
    return height_of(drawing.memory.device[a]) > height_of(drawing.memory.device[b]);
  });
  devices.resize(most_stacks);
  std::sort(devices.begin(), devices.end());
  return devices;
}

// The categories that any of the devices ever holds, from below.
std::vector<MemoryCategory> categories_in(const Drawing& drawing,
                                          const std::vector<std::size_t>& devices) {
  CategoryUse most{};
  for (const std::size_t device : devices) {
    const DeviceMemory& memory = drawing.memory.device[device];
    for (const MemoryPoint& point : memory.curve) {
      const CategoryUse use = by_category(point.use, point.stash, memory.reserve);
      for (std::size_t i = 0; i < use.size(); ++i) most[i] = std::max(most[i], use[i]);
    }
  }
  std::vector<MemoryCategory> found;
  for (int i = 0; i < memory_categories; ++i) {
    if (nth(most, i) > Bytes{}) found.push_back(static_cast<MemoryCategory>(i));
  }
  return found;
}

// The highest stack, or limit where that is not far above.
Bytes highest_stack(const Drawing& drawing) {
  Bytes stack{};
  const std::vector<std::size_t> devices = devices_shown(drawing);
  for (const std::size_t device : devices) {
    stack = std::max(stack, height_of(drawing.memory.device[device]));
  }
  Bytes highest = stack;
  for (const std::size_t device : devices) {
    const std::optional<Bytes> limit = limit_of_stack(drawing, device);
    const bool near =
        limit && static_cast<double>(limit->count) <= show_limit * static_cast<double>(stack.count);
    if (near) highest = std::max(highest, *limit);
  }
  return highest;
}

std::string op_label(const PeakOp& peak) {
  std::string label = print(peak.op);
  if (peak.other) label += "+" + print(*peak.other);
  return label;
}

std::string_view verb(PeakOp::Moment moment) {
  switch (moment) {
    case PeakOp::Moment::runs:
      return "runs";
    case PeakOp::Moment::starts:
      return "starts";
    case PeakOp::Moment::has_ended:
      return "has ended";
  }
  return "";
}

// The text of the peak, in the right column: amount, moment, op, reserve, limit of both together.
std::string peak_text(const DeviceMemory& memory, std::optional<Bytes> limit, double x, double y) {
  const bool over = limit && height_of(memory) > *limit;
  std::string out = text_at(x, y, over ? "bad" : "t", 11, brief(memory.peak));
  const auto line = [&](std::string_view classes, const std::string& text) {
    y += 11.5;
    out += text_at(x, y, classes, 9, text);
  };
  line("d", "at " + brief(memory.peak_at));
  if (memory.peak_op) {
    const std::string op = op_label(*memory.peak_op);
    const std::string moment(verb(memory.peak_op->moment));
    if (text_width(op + " " + moment, 9) <= column_width) {
      line("d", op + " " + moment);
    } else {
      line("d", op);
      line("d", moment);
    }
  }
  if (memory.reserve > Bytes{}) line("d", "+ " + brief(memory.reserve) + " reserve");
  if (limit) line(over ? "bad" : "d", (over ? "over " : "of ") + brief(*limit));
  return out;
}

// A line at the moment of the peak, a dot upon the stack, and the op beside it.
std::string peak_mark(const DeviceMemory& memory, std::optional<Bytes> limit, const Frame& frame,
                      const CurvePanel& panel) {
  const double x = frame.scale.x(memory.peak_at);
  const double y = panel.y(height_of(memory));
  std::string out = line_at(x, y, x, panel.bottom, "axis") + dot(x, y);
  if (!memory.peak_op) return out;
  double base = y - 6;
  if (limit && *limit <= panel.top) {
    // Above the line of the limit where it would cross the text.
    const double line = panel.y(*limit);
    if (line < y && line > base - 10) base = line - 4;
  }
  const bool right = x > (frame.left + frame.right) / 2;
  return out +
         text_at(x + (right ? 3 : -3), base, right ? "t r" : "t", 10, op_label(*memory.peak_op));
}

// The scale of all panels.
struct Stacks {
  std::vector<MemoryCategory> categories;
  double column = 1;  // px, of thinned curves
};

std::string stack(const Drawing& drawing, std::size_t device, const Stacks& stacks,
                  const Frame& frame, const CurvePanel& panel) {
  const DeviceMemory& memory = drawing.memory.device[device];
  const std::vector<MemoryPoint> curve = thinned(memory.curve, frame.scale, stacks.column);
  const CategoryUse at_peak = peak_by_category(memory);
  std::string out = text_at(frame.margin, panel.bottom - panel.height / 2 + 4, "t", 12,
                            name_in(drawing.timeline.devices[device], frame.names));
  out += amounts(frame, panel, 4);
  // The upper bands behind.
  for (auto at = stacks.categories.rbegin(); at != stacks.categories.rend(); ++at) {
    const MemoryCategory category = *at;
    const auto height = [&](const MemoryPoint& point) {
      return nth(stacked(point, memory.reserve), category);
    };
    out +=
        fmt::format("<path class=\"{}\" d=\"{}V{}H{}z\"><title>{}: {} at the peak</title></path>\n",
                    css_class(category), steps(curve, frame, panel, height),
                    svg_number(panel.bottom), svg_number(frame.scale.x(curve.front().at)),
                    words(category), brief(nth(at_peak, category)));
  }
  const auto whole = [&](const MemoryPoint& point) { return total(point.use) + memory.reserve; };
  out += fmt::format("<path class=\"total\" d=\"{}\"/>\n", steps(curve, frame, panel, whole));
  const std::optional<Bytes> limit = limit_of_stack(drawing, device);
  if (limit && *limit <= panel.top) {
    out += line_at(frame.left, panel.y(*limit), frame.right, panel.y(*limit), "limit");
  }
  out += peak_mark(memory, limit, frame, panel);
  return out + peak_text(memory, limit, frame.right + 8, panel.bottom - panel.height + 12);
}

Fragment draw_stacks(const Drawing& drawing, const std::string& title, const Frame& frame,
                     double top, Bytes least_top) {
  const std::vector<std::size_t> devices = devices_shown(drawing);
  const Bytes highest = std::max(highest_stack(drawing), least_top);
  // Room for the name of the op above the peak; at least 1 so that the scale is defined.
  const Bytes upper{highest.count + std::max<std::int64_t>(highest.count / 5, 1)};
  Stacks stacks;
  stacks.categories = categories_in(drawing, devices);
  const auto bands = static_cast<double>(devices.size() * stacks.categories.size());
  stacks.column = std::max(1.0, frame.scale.width * bands / most_columns);

  Fragment result;
  result.text = text_at(frame.margin, top + 12, "t", 13, title);
  std::vector<LegendEntry> entries;
  for (const MemoryCategory category : stacks.categories) {
    entries.emplace_back(css_class(category), words(category));
  }
  const Fragment key = legend(entries, frame, top + 20);
  result.text += key.text;
  double panel_top = key.bottom + 6;
  for (const std::size_t device : devices) {
    result.text += stack(drawing, device, stacks, frame,
                         {panel_top + categories_height, categories_height, upper});
    panel_top += categories_height + stack_gap;
  }
  result.bottom = panel_top - stack_gap;
  if (const std::size_t all = devices_with_curves(drawing).size(); all > devices.size()) {
    result.notes.push_back(
        fmt::format("Memory by category is drawn of {} devices, those that peak highest; the "
                    "other {} stay below them.",
                    devices.size(), all - devices.size()));
  }
  if (stacks.column > 1.5) {
    result.notes.push_back(fmt::format(
        "Memory by category is thinned to steps of {} px, of which each shows its highest stack.",
        svg_number(stacks.column)));
  }
  return result;
}

}  // namespace

Bytes category_top(const Drawing& drawing, const TimeScale& scale) {
  return highest_stack(devices_of(drawing, scale));
}

Fragment draw_categories(const Drawing& drawing, const Frame& frame, double top, Bytes least_top) {
  const Drawing devices = devices_of(drawing, frame.scale);
  Fragment result;
  result.bottom = top;
  if (has_memory(devices)) {
    result = draw_stacks(devices, "Memory by category", frame, top, least_top);
  }
  const Drawing hosts = hosts_of(drawing, frame.scale);
  if (!has_memory(hosts)) return result;
  const Fragment below = draw_stacks(hosts, "Hosts by category", frame, result.bottom + 14, {});
  result.text += below.text;
  result.bottom = below.bottom;
  result.notes.insert(result.notes.end(), below.notes.begin(), below.notes.end());
  return result;
}

}  // namespace stageline::report
