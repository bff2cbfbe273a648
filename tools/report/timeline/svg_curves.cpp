// Prepares curves of memory: thins them, and cuts them to the window.
#include "tools/report/timeline/svg_curves.hpp"

#include "tools/report/timeline/svg_window.hpp"

namespace stageline::report {
namespace {

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
    shown.stash_at_peak = point.stash;
  }
  return shown;
}

bool whole(const Drawing& drawing, const TimeScale& scale) {
  return scale.start <= Time{} && scale.end >= makespan(drawing.timeline);
}

std::vector<DeviceMemory> in_window(const std::vector<DeviceMemory>& all, const TimeScale& scale) {
  std::vector<DeviceMemory> shown;
  shown.reserve(all.size());
  for (const DeviceMemory& memory : all) shown.push_back(in_window(memory, scale));
  return shown;
}

}  // namespace

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

std::string amounts(const Frame& frame, const CurvePanel& panel, int intervals) {
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

Drawing devices_of(const Drawing& drawing, const TimeScale& scale) {
  Drawing devices;
  devices.timeline.devices = drawing.timeline.devices;
  devices.memory_limit = drawing.memory_limit;
  devices.rows = drawing.rows;
  if (whole(drawing, scale)) {
    devices.memory.device = drawing.memory.device;
    return devices;
  }
  devices.memory.device = in_window(drawing.memory.device, scale);
  for (std::size_t d = 0; d < devices.memory.device.size(); ++d) {
    DeviceMemory& memory = devices.memory.device[d];
    memory.peak_op = peak_op_of(drawing.timeline, static_cast<int>(d), memory.peak_at);
  }
  return devices;
}

// The same clock, but a scale of their own.
Drawing hosts_of(const Drawing& drawing, const TimeScale& scale) {
  Drawing hosts;
  hosts.timeline.devices = drawing.hosts;
  hosts.memory_limit = drawing.host_limit;
  hosts.memory.device =
      whole(drawing, scale) ? drawing.memory.host : in_window(drawing.memory.host, scale);
  return hosts;
}

std::vector<std::size_t> devices_with_curves(const Drawing& drawing) {
  std::vector<std::size_t> devices;
  for (const std::size_t device : devices_drawn(drawing)) {
    if (device < drawing.memory.device.size() && !drawing.memory.device[device].curve.empty() &&
        drawing.memory.device[device].peak > Bytes{}) {
      devices.push_back(device);
    }
  }
  return devices;
}

}  // namespace stageline::report
