#include "traces/json/timeline.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "sim/base/index.hpp"
#include "sim/base/names.hpp"

namespace stageline {
namespace {

Op read_op(const JsonNode& node, const std::string& text) {
  const std::optional<Op> op = parse_op(text);
  if (!op) node.refuse(fmt::format("{} is no op; one looks like \"0F3\"", in_quotes(text)));
  return *op;
}

Span read_times(const JsonNode& start, const JsonNode& end, Time longest, Op op) {
  const Span span{op, Time{start.whole(0, longest.count())}, Time{end.whole(0, longest.count())}};
  if (span.end < span.start) {
    end.refuse(fmt::format("a span must not end before it starts ({} is before {})",
                           span.end.count(), span.start.count()));
  }
  return span;
}

std::size_t lane_called(const JsonNode& node) {
  const std::string text = node.text();
  if (const auto lane = find_named(all_lane_kinds, text)) return as_size(*lane);
  node.refuse(fmt::format("{} is no lane", in_quotes(text)));
}

}  // namespace

void read_named_spans(const JsonNode& list, Time longest, Timeline& timeline) {
  std::map<std::string, std::size_t> device_of;
  for (const std::string& device : timeline.devices) device_of.emplace(device, device_of.size());
  timeline.lanes.resize(timeline.devices.size() * lane_kinds);
  for (const JsonNode& item : list.items()) {
    const std::string device = item.at("device").text();
    const auto at = device_of.find(device);
    if (at == device_of.end()) {
      item.at("device").refuse(fmt::format("{} is not in per_device", in_quotes(device)));
    }
    const std::size_t lane = lane_called(item.at("lane"));
    Op op = read_op(item.at("op"), item.at("op").text());
    const std::optional<JsonNode> overlapped = item.find("overlapped");
    if (overlapped && overlapped->boolean()) op.overlapped = 1;
    timeline.lanes[at->second * lane_kinds + lane].push_back(
        read_times(item.at("start_ps"), item.at("end_ps"), longest, op));
  }
  for (auto& lane : timeline.lanes) {
    std::stable_sort(lane.begin(), lane.end(),
                     [](const Span& a, const Span& b) { return a.start < b.start; });
  }
}

void read_packed_spans(const JsonNode& list, Time longest, Timeline& timeline) {
  timeline.lanes.resize(timeline.devices.size() * lane_kinds);
  const auto last = static_cast<std::int64_t>(timeline.lanes.size()) - 1;
  for (const JsonNode& item : list.items()) {
    const std::vector<JsonNode> parts = item.items();
    if (parts.size() != 4) {
      item.refuse(
          fmt::format("a span is [lane, op, start, end] (this one has {} parts)", parts.size()));
    }
    auto& lane = nth(timeline.lanes, parts[0].whole(0, last));
    std::string text = parts[1].text();
    const bool overlapped = !text.empty() && text.back() == ';';
    if (overlapped) text.pop_back();
    Op op = read_op(parts[1], text);
    op.overlapped = overlapped ? 1 : 0;
    const Span span = read_times(parts[2], parts[3], longest, op);
    if (!lane.empty() && span.start < lane.back().start) {
      parts[2].refuse(fmt::format("the spans of a lane stand in order of start ({} follows {})",
                                  span.start.count(), lane.back().start.count()));
    }
    lane.push_back(span);
  }
}

std::vector<std::string> packed_spans(const Timeline& timeline) {
  std::vector<std::string> spans;
  for (std::size_t lane = 0; lane < timeline.lanes.size(); ++lane) {
    for (const Span& span : timeline.lanes[lane]) {
      spans.push_back(fmt::format("[{}, \"{}{}\", {}, {}]", lane, print(span.op),
                                  span.op.overlapped ? ";" : "", span.start.count(),
                                  span.end.count()));
    }
  }
  return spans;
}

}  // namespace stageline
