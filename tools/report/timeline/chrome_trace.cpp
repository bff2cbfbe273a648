// Writes spans, flows and counters as trace events.
#include "tools/report/timeline/chrome_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "sim/base/index.hpp"
#include "sim/rules.hpp"
#include "tools/base/json.hpp"
#include "tools/report/svg/theme.hpp"
#include "tools/report/timeline/weights.hpp"

namespace stageline::report {
namespace {

// Microseconds, exact: 1234567 ps is "1.234567".
std::string microseconds(Time time) {
  const bool negative = time < Time{};
  // Not -count: the smallest integer cannot be negated.
  const std::uint64_t ps = negative ? 0 - static_cast<std::uint64_t>(time.count())
                                    : static_cast<std::uint64_t>(time.count());
  std::string text = fmt::format("{}{}", negative ? "-" : "", ps / 1'000'000);
  if (ps % 1'000'000 == 0) return text;
  text += fmt::format(".{:06}", ps % 1'000'000);
  while (text.back() == '0') text.pop_back();
  return text;
}

// The tid of each span, parallel to the timeline's lanes.
using Tids = std::vector<std::vector<int>>;

// The row of idle time, below those of compute.
constexpr int idle_tid = 40'000;

// Receives overlap, and so do sends of one batch and the two ops of an overlapped pair: those
// without room in the lane's own row go into further rows, which are numbered from here on. Viewers
// would stack or drop overlapping spans of one row.
int further_rows(LaneKind lane) {
  switch (lane) {
    case LaneKind::receive:
      return lane_kinds;
    case LaneKind::send:
      return 10'000;
    case LaneKind::compute:
      return 20'000;
    case LaneKind::copy_out:
    case LaneKind::copy_in:
      return 30'000;
  }
  return lane_kinds;  // unreachable; g++ requires it
}

bool is_copy(LaneKind lane) { return lane == LaneKind::copy_out || lane == LaneKind::copy_in; }

// Assigns rows first fit. `spans` in order of start.
std::vector<int> overlapping_tids(const Spans& spans, LaneKind lane) {
  std::vector<Time> busy_until;  // by row
  std::vector<int> tids;
  for (const Span& span : spans) {
    std::size_t row = 0;
    while (row < busy_until.size() && busy_until[row] > span.start) ++row;
    if (row == busy_until.size()) busy_until.push_back(span.end);
    busy_until[row] = std::max(busy_until[row], span.end);
    tids.push_back(row == 0 ? static_cast<int>(lane)
                            : further_rows(lane) + static_cast<int>(row) - 1);
  }
  return tids;
}

Tids tids_of(const Timeline& timeline) {
  Tids tids;
  for (std::size_t i = 0; i < timeline.lanes.size(); ++i) {
    const auto lane = static_cast<LaneKind>(i % lane_kinds);
    tids.push_back(is_copy(lane)
                       ? std::vector<int>(timeline.lanes[i].size(), static_cast<int>(lane))
                       : overlapping_tids(timeline.lanes[i], lane));
  }
  return tids;
}

// Events, separated by commas.
struct Events {
  std::string text;

  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    text += text.empty() ? "\n" : ",\n";
    fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
  }
};

// The devices with idle time.
std::vector<bool> idle_devices(const Drawing& drawing) {
  std::vector<bool> idle(drawing.timeline.devices.size());
  for (const IdleInterval& interval : drawing.idle) {
    if (interval.device >= 0 && as_size(interval.device) < idle.size()) {
      idle[as_size(interval.device)] = true;
    }
  }
  return idle;
}

void add_names(Events& events, const Drawing& drawing, const Tids& tids) {
  const Timeline& timeline = drawing.timeline;
  constexpr int room = 1000;  // so that further rows of a lane come after its first
  const std::vector<bool> idle = idle_devices(drawing);
  for (std::size_t device = 0; device < timeline.devices.size(); ++device) {
    events.add(R"({{"ph":"M","pid":{},"tid":0,"name":"process_name","args":{{"name":{}}}}})",
               device, json_string(timeline.devices[device]));
    events.add(
        R"({{"ph":"M","pid":{0},"tid":0,"name":"process_sort_index","args":{{"sort_index":{0}}}}})",
        device);
    const auto thread = [&](int tid, const std::string& name, int order) {
      events.add(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":{}}}}})",
                 device, tid, json_string(name));
      events.add(
          R"({{"ph":"M","pid":{},"tid":{},"name":"thread_sort_index","args":{{"sort_index":{}}}}})",
          device, tid, order);
    };
    for (int lane = 0; lane < lane_kinds; ++lane) {
      const auto& of_lane = tids[device * lane_kinds + as_size(lane)];
      if (of_lane.empty() && lane != static_cast<int>(LaneKind::compute)) continue;
      const std::string lane_name(name(static_cast<LaneKind>(lane)));
      thread(lane, lane_name, room * lane);
      const int last = of_lane.empty() ? 0 : *std::max_element(of_lane.begin(), of_lane.end());
      const int further = further_rows(static_cast<LaneKind>(lane));
      for (int tid = further; tid <= last; ++tid) {
        const int row = tid - further + 2;
        thread(tid, fmt::format("{} {}", lane_name, row), room * lane + row);
      }
    }
    if (idle[device]) thread(idle_tid, "idle", room / 2);
  }
}

// Names of chrome://tracing's own colours (catapult, tracing/base/color_scheme.html), which the
// format has no others than; nearest to those of report/svg/theme.cpp.
std::string_view viewer_colour(OpKind kind) {
  switch (tone_of(kind, /*pale=*/false)) {
    case Tone::forward:
      return "rail_response";  // blue
    case Tone::backward:
      return "thread_state_iowait";  // orange
    case Tone::input_grad:
      return "yellow";
    case Tone::weight_grad:
      return "rail_load";  // green
    case Tone::recompute:
      return "thread_state_runnable";  // pale blue
    case Tone::update:
      return "detailed_memory_dump";  // purple
    case Tone::activation:
      return "background_memory_dump";  // teal
    case Tone::gradient:
      return "thread_state_unknown";  // brown
    case Tone::stash:
      return "olive";
    case Tone::weights:
      return "light_memory_dump";  // dark blue
    case Tone::reduce:
      return "good";  // dark green
    default:
      return "thread_state_uninterruptible";  // mauve: copies to and from the host
  }
}

void add_spans(Events& events, const Timeline& timeline, const Tids& tids) {
  for (std::size_t i = 0; i < timeline.lanes.size(); ++i) {
    const auto lane = static_cast<LaneKind>(i % lane_kinds);
    for (std::size_t j = 0; j < timeline.lanes[i].size(); ++j) {
      const Span& span = timeline.lanes[i][j];
      events.add(
          R"({{"ph":"X","pid":{},"tid":{},"name":"{}","cat":"{}","cname":"{}","ts":{},"dur":{},"args":{{"stage":{},"{}":{},"kind":"{}"{}}}}})",
          i / lane_kinds, tids[i][j], print(span.op), name(lane), viewer_colour(span.op.kind),
          microseconds(span.start), microseconds(span.end - span.start), span.op.stage,
          counts_microbatches(span.op.kind) ? "microbatch" : "update", span.op.microbatch,
          symbol(span.op.kind), span.op.overlapped ? R"(,"overlapped":true)" : "");
    }
  }
}

// Idle time in a row of its own, so that the rows of compute hold work alone.
void add_idle(Events& events, const Drawing& drawing) {
  const Timeline& timeline = drawing.timeline;
  for (const IdleInterval& idle : drawing.idle) {
    if (idle.device < 0 || as_size(idle.device) >= timeline.devices.size()) continue;
    const Spans& compute = timeline.lane(idle.device, LaneKind::compute);
    // Nothing follows the last interval of a device.
    const bool followed = !compute.empty() && compute.back().start >= idle.end;
    events.add(
        R"({{"ph":"X","pid":{},"tid":{},"name":"{}","cat":"idle","cname":"grey","ts":{},"dur":{},"args":{{"cause":"{}"{}}}}})",
        idle.device, idle_tid, words(tone_of(idle.kind)), microseconds(idle.start),
        microseconds(idle.end - idle.start), name(idle.kind),
        followed ? fmt::format(R"(,"before":"{}")", print(idle.before)) : "");
  }
}

// The key that a send and its receive share: message type, wire, micro-batch or update.
using Message = std::tuple<Cargo, int, std::uint32_t>;

std::string_view cargo_words(Cargo cargo) {
  switch (cargo) {
    case Cargo::activation:
      return "activation";
    case Cargo::gradient:
      return "gradient";
    case Cargo::stash:
      return "stash";
    case Cargo::weights:
      return "weights";
  }
  return "";
}

// The position of one end of a message.
struct End {
  std::size_t device = 0;
  int tid = 0;
  Time start{};
  Time end{};
};

void add_flows(Events& events, const Program& program, const Timeline& timeline, const Tids& tids) {
  const StageGraph graph = stage_graph(program);
  std::map<Message, std::pair<std::vector<End>, std::vector<End>>> messages;
  for (std::size_t i = 0; i < timeline.lanes.size(); ++i) {
    for (std::size_t j = 0; j < timeline.lanes[i].size(); ++j) {
      const Span& span = timeline.lanes[i][j];
      const std::optional<Cargo> cargo = cargo_of(span.op.kind);
      if (!cargo || wire_of(graph, span.op) < 0) continue;
      auto& [sends, receives] = messages[{*cargo, wire_of(graph, span.op), span.op.microbatch}];
      (is_send(span.op.kind) ? sends : receives)
          .push_back({i / lane_kinds, tids[i][j], span.start, span.end});
    }
  }
  std::size_t id = 0;
  for (auto& [message, ends] : messages) {
    auto& [sends, receives] = ends;
    // Several messages may share a key (a divided stage sends one each): they arrive in send order.
    const auto earlier = [](const End& a, const End& b) { return a.start < b.start; };
    std::stable_sort(sends.begin(), sends.end(), earlier);
    std::stable_sort(receives.begin(), receives.end(), earlier);
    for (std::size_t i = 0; i < std::min(sends.size(), receives.size()); ++i) {
      const std::string_view what = cargo_words(std::get<0>(message));
      // A receive posted before the send gets its arrow when the send starts: arrows point forward.
      const Time arrival = std::max(sends[i].start, receives[i].start);
      if (arrival > receives[i].end) continue;  // measured with clocks that disagree
      events.add(R"({{"ph":"s","pid":{},"tid":{},"name":"{}","cat":"flow","id":{},"ts":{}}})",
                 sends[i].device, sends[i].tid, what, id, microseconds(sends[i].start));
      events.add(
          R"({{"ph":"f","pid":{},"tid":{},"name":"{}","cat":"flow","id":{},"bp":"e","ts":{}}})",
          receives[i].device, receives[i].tid, what, id, microseconds(arrival));
      ++id;
    }
  }
}

// Counters of their own, since viewers stack the values of one.
void add_total(Events& events, std::size_t pid, const DeviceMemory& memory) {
  for (const MemoryPoint& point : memory.curve) {
    events.add(
        R"({{"ph":"C","pid":{},"tid":0,"name":"total memory","ts":{},"args":{{"bytes":{}}}}})", pid,
        microseconds(point.at), total(point.use).count);
  }
}

void add_limit(Events& events, std::size_t pid, const std::vector<std::optional<Bytes>>& limits,
               std::size_t number, Time end) {
  if (number >= limits.size() || !limits[number]) return;
  for (const Time at : {Time{}, end}) {
    events.add(
        R"({{"ph":"C","pid":{},"tid":0,"name":"memory limit","ts":{},"args":{{"bytes":{}}}}})", pid,
        microseconds(at), limits[number]->count);
  }
}

// Hosts follow the devices, as processes of their own.
void add_hosts(Events& events, const Drawing& drawing) {
  for (std::size_t h = 0; h < drawing.memory.host.size() && h < drawing.hosts.size(); ++h) {
    if (drawing.memory.host[h].curve.empty()) continue;
    const std::size_t pid = drawing.timeline.devices.size() + h;
    events.add(R"({{"ph":"M","pid":{},"tid":0,"name":"process_name","args":{{"name":{}}}}})", pid,
               json_string(drawing.hosts[h]));
    for (const MemoryPoint& point : drawing.memory.host[h].curve) {
      events.add(R"({{"ph":"C","pid":{},"tid":0,"name":"memory","ts":{},"args":{{"stash":{}}}}})",
                 pid, microseconds(point.at), total(point.use).count);
    }
    add_limit(events, pid, drawing.host_limit, h, makespan(drawing.timeline));
  }
}

// The kinds of the account; communication buffers and the reserve where there are any, the latter
// first, so that it is at the bottom of a stack.
void add_kinds(Events& events, std::size_t pid, const DeviceMemory& memory) {
  const bool communicates = std::any_of(
      memory.curve.begin(), memory.curve.end(),
      [](const MemoryPoint& point) { return nth(point.use, MemoryKind::communication) > Bytes{}; });
  const std::string reserve = memory.reserve > Bytes{}
                                  ? fmt::format("\"reserve\":{},", memory.reserve.count)
                                  : std::string();
  for (const MemoryPoint& point : memory.curve) {
    std::string amounts = reserve;
    for (int kind = 0; kind < memory_kinds; ++kind) {
      if (static_cast<MemoryKind>(kind) == MemoryKind::communication && !communicates) continue;
      amounts += fmt::format("{}\"{}\":{}", kind == 0 ? "" : ",",
                             name(static_cast<MemoryKind>(kind)), nth(point.use, kind).count);
    }
    events.add(R"({{"ph":"C","pid":{},"tid":0,"name":"memory","ts":{},"args":{{{}}}}})", pid,
               microseconds(point.at), amounts);
  }
}

// The stash by parts, where these change.
void add_stash(Events& events, std::size_t pid, const DeviceMemory& memory) {
  std::optional<StashUse> last;
  for (const MemoryPoint& point : memory.curve) {
    if (last == point.stash) continue;
    last = point.stash;
    std::string amounts;
    for (int part = 0; part < stash_parts; ++part) {
      amounts += fmt::format("{}\"{}\":{}", part == 0 ? "" : ",",
                             name(static_cast<StashPart>(part)), nth(point.stash, part).count);
    }
    events.add(R"({{"ph":"C","pid":{},"tid":0,"name":"stash","ts":{},"args":{{{}}}}})", pid,
               microseconds(point.at), amounts);
  }
}

void add_memory(Events& events, const Drawing& drawing) {
  for (std::size_t device = 0; device < drawing.memory.device.size(); ++device) {
    const DeviceMemory& memory = drawing.memory.device[device];
    if (memory.curve.empty()) continue;
    add_kinds(events, device, memory);
    add_stash(events, device, memory);
    add_total(events, device, memory);
    add_limit(events, device, drawing.memory_limit, device, makespan(drawing.timeline));
  }
}

// One counter per device for each stage that ever holds an older version, on all of its replicas.
void add_versions(Events& events, const Program& program,
                  const std::vector<StageVersions>& versions) {
  if (versions.size() != program.placement.stage.size()) return;
  for (const HeldCurve& curve : versions_held(program, versions)) {
    if (nth(versions, curve.stage).held_peak == 1) continue;
    for (const HeldPoint& point : curve.points) {
      events.add(
          R"({{"ph":"C","pid":{},"tid":0,"name":"weight versions of stage {}","ts":{},"args":{{"versions":{}}}}})",
          curve.device, curve.stage, microseconds(point.at), point.versions);
    }
  }
}

}  // namespace

std::string chrome_trace(const Drawing& drawing) {
  const Timeline& timeline = drawing.timeline;
  const Tids tids = tids_of(timeline);
  Events events;
  add_names(events, drawing, tids);
  add_spans(events, timeline, tids);
  add_idle(events, drawing);
  add_flows(events, drawing.program, timeline, tids);
  add_memory(events, drawing);
  add_hosts(events, drawing);
  add_versions(events, drawing.program, drawing.versions);
  std::string about = fmt::format("\"title\":{},\"schedule\":{}", json_string(drawing.title),
                                  json_string(drawing.program.schedule));
  if (drawing.step > Time{}) {
    about += fmt::format(",\"steps\":{},\"microbatches\":{},\"step_time_ps\":{}",
                         drawing.program.steps, drawing.program.microbatches, drawing.step.count());
  }
  return fmt::format(
      "{{\"displayTimeUnit\":\"ns\",\n\"otherData\":{{{}}},\n\"traceEvents\":[{}\n]}}\n", about,
      events.text);
}

}  // namespace stageline::report
