// Profiles as PyTorch's profiler writes them, made from simulated runs.
#pragma once

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/report/example.hpp"
#include "traces/timelines.hpp"

namespace stageline::profiles {

/// Nanoseconds.
struct Range {
  std::string name;
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::string category = "user_annotation";
  int tid = 1;
  int id = 0;           // External id; 0: none
  int sequence = -1;    // Sequence number; -1: none
  int correlation = 0;  // 0: none
};

struct Form {
  std::optional<int> rank = std::nullopt;
  std::int64_t base = 1'790'857'026'000'000'000;  // 0: the file names none
  bool relative = true;                           // times count from the base
  bool whole = false;                             // ts as whole microseconds
  std::string host = "";
  std::string device = "";
};

inline std::string arguments_of(const Range& range) {
  std::string list;
  if (range.id != 0) list += fmt::format(R"("External id": {})", range.id);
  if (range.sequence >= 0) {
    list += fmt::format(R"({}"Sequence number": {})", list.empty() ? "" : ", ", range.sequence);
  }
  if (range.correlation != 0) {
    list += fmt::format(R"({}"correlation": {})", list.empty() ? "" : ", ", range.correlation);
  }
  return list.empty() ? "" : fmt::format(R"(, "args": {{{}}})", list);
}

inline std::string profile_text(const std::vector<Range>& ranges, const Form& form) {
  std::string text = "{\"schemaVersion\": 1,\n\"deviceProperties\": [";
  if (!form.device.empty()) text += fmt::format(R"({{"id": 0, "name": "{}"}})", form.device);
  text += "],\n";
  if (form.rank) {
    text +=
        fmt::format("\"distributedInfo\": {{\"backend\": \"gloo\", \"rank\": {}}},\n", *form.rank);
  }
  if (!form.host.empty()) text += fmt::format("\"host_name\": \"{}\",\n", form.host);
  if (form.base > 0) text += fmt::format("\"baseTimeNanoseconds\": {},\n", form.base);
  text +=
      "\"traceEvents\": [\n  {\"ph\": \"M\", \"name\": \"process_name\", \"pid\": 7, \"tid\": 0, "
      "\"ts\": 0, \"args\": {\"name\": \"python3\", \"lists\": [[1, {\"x\": null}]]}}";
  const std::int64_t from = form.relative ? 0 : form.base;
  const auto microseconds = [&](std::int64_t ns) {
    return form.whole ? fmt::format("{}", ns / 1000)
                      : fmt::format("{}.{:03}", ns / 1000, ns % 1000);
  };
  for (const Range& range : ranges) {
    text += fmt::format(
        ",\n  {{\"ph\": \"X\", \"cat\": \"{}\", \"name\": \"{}\", \"pid\": 7, \"tid\": {}, \"ts\": "
        "{}, "
        "\"dur\": {}{}}}",
        range.category, range.name, range.tid, microseconds(range.start + from),
        microseconds(range.end - range.start), arguments_of(range));
  }
  return text +
         ",\n  {\"ph\": \"i\", \"name\": \"Record Window End\", \"pid\": \"\", \"tid\": \"\", "
         "\"ts\": 1}\n],\n\"traceName\": \"a.json\"}\n";
}

inline std::string gzipped(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string bytes(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_out = static_cast<uInt>(bytes.size());
  deflate(&stream, Z_FINISH);
  bytes.resize(stream.total_out);
  deflateEnd(&stream);
  return bytes;
}

inline std::int64_t nanoseconds(Time time) { return time.count() / 1000; }

inline std::map<Op, Span> spans_of(const Timeline& timeline) {
  std::map<Op, Span> spans;
  for (const auto& lane : timeline.lanes) {
    for (Span span : lane) {
      span.op.overlapped = 0;
      spans[span.op] = span;
    }
  }
  return spans;
}

/// Ranges of one device as a CPU shows them, `offset` later: a receive is only posted, and waited
/// for inside of the op that reads it; gloo:recv ends when the message is there.
inline std::vector<Range> cpu_ranges(const report::Drawing& run, std::size_t device,
                                     std::int64_t offset = 0) {
  const std::map<Op, Span> spans = spans_of(run.timeline);
  std::vector<Range> ranges;
  std::int64_t now = offset;
  const std::vector<Op>& ops = run.program.ops[device];
  for (std::size_t i = 0; i < ops.size(); ++i) {
    Op op = ops[i];
    std::string name = "PP:" + print(op);
    if (op.overlapped) {
      name = fmt::format("PP:({};{})OVERLAP_F_B", print(op), print(ops[i + 1]));
      op.overlapped = 0;
      ++i;
    }
    const Span& span = spans.at(op);
    const LaneKind lane = lane_of(op.kind);
    if (lane == LaneKind::receive) {
      ranges.push_back({name, now, now});
      ranges.push_back({"gloo:recv", now, std::max(now, offset + nanoseconds(span.end))});
    } else if (lane == LaneKind::send) {
      ranges.push_back({name, now, now});
    } else {
      if (op.kind == OpKind::update) name = "Optimizer.step#SGD.step";
      ranges.push_back({name, now, offset + nanoseconds(span.end)});
      now = offset + nanoseconds(span.end);
    }
  }
  return ranges;
}

inline std::string file_name(int rank) { return fmt::format("rank{}.json", rank); }

/// One profile a device of the run, as the CPU shows it.
inline std::vector<NamedText> cpu_profiles(const report::Drawing& run, const Form& form = {},
                                           const std::vector<std::int64_t>& offsets = {}) {
  std::vector<NamedText> files;
  for (std::size_t d = 0; d < run.timeline.devices.size(); ++d) {
    Form one = form;
    one.rank = static_cast<int>(d);
    const std::int64_t offset = offsets.empty() ? 0 : offsets[d];
    files.push_back(
        {file_name(static_cast<int>(d)), profile_text(cpu_ranges(run, d, offset), one)});
  }
  return files;
}

}  // namespace stageline::profiles
