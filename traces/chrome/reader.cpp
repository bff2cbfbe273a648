// Reads back the Chrome traces that tools/report/timeline/chrome_trace.cpp writes, and those that
// other programs wrote in their manner: complete events ("X"), and pairs of "B" and "E".
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/base/numbers.hpp"
#include "traces/chrome/trace_events.hpp"
#include "traces/gzip.hpp"
#include "traces/json/tree.hpp"
#include "traces/timelines.hpp"

namespace stageline {
namespace {

constexpr int most_process_ids = 1 << 16;

class ChromeReader {
 public:
  explicit ChromeReader(const std::string& file) : file_(file) {}

  void event(const TraceEvent& event) {
    if (event.phase == "M" && event.name == "process_name") names_[event.pid] = event.label;
    // Hosts have a process name, but no lanes.
    if (event.phase == "M" && event.name == "thread_name") device_of(event);
    if (event.phase == "X") {
      span(event, [&](Time) { return time(event, "dur", event.duration); });
    }
    if (event.phase == "B") open_[{event.pid, event.tid}].push_back(event);
    if (event.phase == "E") end(event);
  }

  Timeline take() {
    for (const auto& [thread, begun] : open_) {
      if (begun.empty()) continue;
      refuse(begun.back(), "ph",
             fmt::format("{} begins here (\"B\"), and no event of its thread ends it (\"E\")",
                         in_quotes(begun.back().name)));
    }
    Timeline timeline;
    lanes_.resize(as_size(devices_) * lane_kinds);
    timeline.lanes = std::move(lanes_);
    for (int device = 0; device < devices_; ++device) {
      const auto name = names_.find(std::to_string(device));
      timeline.devices.push_back(name == names_.end() ? fmt::format("gpu{}", device)
                                                      : name->second);
    }
    // Already sorted in traces that we wrote ourselves.
    for (auto& lane : timeline.lanes) {
      std::stable_sort(lane.begin(), lane.end(),
                       [](const Span& a, const Span& b) { return a.start < b.start; });
    }
    return timeline;
  }

 private:
  [[noreturn]] void refuse(const TraceEvent& event, const char* key,
                           const std::string& message) const {
    throw TraceError(file_, event_pointer(event, key), message);
  }

  std::size_t device_of(const TraceEvent& event) {
    const auto device = parse_number<int>(event.pid);
    if (!device || *device < 0 || *device >= most_process_ids) {
      refuse(event, "pid",
             fmt::format("the device of a span must be a number from 0 to {} (it is {})",
                         most_process_ids - 1, in_quotes(event.pid)));
    }
    devices_ = std::max(devices_, *device + 1);
    return as_size(*device);
  }

  std::size_t lane_of(const TraceEvent& event) const {
    std::vector<std::string> known;
    for (int lane = 0; lane < lane_kinds; ++lane) {
      known.emplace_back(name(static_cast<LaneKind>(lane)));
      if (known.back() == event.category) return as_size(lane);
    }
    refuse(event, "cat",
           fmt::format("{} is not a lane{}; the lanes are {}", in_quotes(event.category),
                       suggestion(event.category, known), fmt::join(known, ", ")));
  }

  Time time(const TraceEvent& event, const char* key, const std::string& digits) const {
    if (digits.empty()) {
      throw TraceError(file_, fmt::format("/traceEvents/{}", event.index),
                       fmt::format("a span needs \"{}\", in microseconds", key));
    }
    const std::optional<ScaledDecimal> number = scale_decimal(digits, 6);
    constexpr std::int64_t most = longest_run.count();
    if (!number || number->value < 0 || number->value > most) {
      refuse(event, key,
             fmt::format("this must be from 0 to {} µs (it is {})", most / 1'000'000, digits));
    }
    return Time{number->value};
  }

  // Ends the span that its thread has begun last. Its own name may be left out.
  void end(const TraceEvent& event) {
    std::vector<TraceEvent>& begun = open_[{event.pid, event.tid}];
    if (begun.empty()) {
      refuse(event, "ph", "an \"E\" ends a span of its thread, and none is open there (\"B\")");
    }
    const TraceEvent begin = std::move(begun.back());
    begun.pop_back();
    if (!event.name.empty() && event.name != begin.name) {
      refuse(
          event, "name",
          fmt::format("an \"E\" ends the span that its thread has begun last, which is {}, not {}",
                      in_quotes(begin.name), in_quotes(event.name)));
    }
    span(begin, [&](Time start) {
      const Time end = time(event, "ts", event.start);
      if (end < start) {
        refuse(event, "ts",
               fmt::format("{} ends at {} µs, before it begins at {}", in_quotes(begin.name),
                           event.start, begin.start));
      }
      return end - start;
    });
  }

  template <class DurationFrom>  // Time(Time start)
  void span(const TraceEvent& event, const DurationFrom& duration_from) {
    if (event.category == "idle") return;  // what is idle follows from the spans
    std::optional<Op> op = parse_op(event.name);
    if (!op) {
      refuse(event, "name",
             fmt::format("{} is not an op; an op looks like \"0F3\"", in_quotes(event.name)));
    }
    op->overlapped = event.overlapped ? 1 : 0;
    const Time start = time(event, "ts", event.start);
    const Time duration = duration_from(start);
    if (duration > longest_run - start) {
      refuse(event, "dur",
             fmt::format("a span must end by {} µs (this one begins at {} and takes {})",
                         longest_run.count() / 1'000'000, event.start, event.duration));
    }
    const std::size_t lane = device_of(event) * lane_kinds + lane_of(event);
    if (lanes_.size() <= lane) lanes_.resize(lane + 1);
    lanes_[lane].push_back({*op, start, start + duration});
  }

  const std::string& file_;
  std::map<std::string, std::string> names_;                                     // by pid
  std::map<std::pair<std::string, std::string>, std::vector<TraceEvent>> open_;  // by pid and tid
  std::vector<Spans> lanes_;
  int devices_ = 0;
};

}  // namespace

ChromeTrace read_chrome_trace(const std::string& text, const std::string& file) {
  const std::string packed = is_gzip(text) ? gunzip(text, file) : "";
  const std::string& json = packed.empty() ? text : packed;
  ChromeReader reader(file);
  const TraceHead head =
      scan_trace_events(json, file, [&](const TraceEvent& event) { reader.event(event); });
  ChromeTrace trace{reader.take(), head.title, head.schedule};
  const auto count = [](const std::string& text) {
    return std::max(0, parse_number<int>(text).value_or(0));
  };
  trace.steps = count(head.steps);
  trace.microbatches = count(head.microbatches);
  const auto step = parse_number<std::int64_t>(head.step_time);
  if (step && *step > 0 && *step <= longest_run.count()) trace.step_time = Time{*step};
  return trace;
}

}  // namespace stageline
