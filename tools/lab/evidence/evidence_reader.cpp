// Reads evidence, and rejects values that no measurement can produce.
#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "sim/base/errors.hpp"
#include "tools/inputs/case_slices.hpp"
#include "tools/inputs/inputs.hpp"
#include "tools/lab/evidence/evidence.hpp"
#include "traces/json/parts.hpp"
#include "traces/json/timeline.hpp"

namespace stageline::lab {
namespace {

constexpr std::string_view evidence_format = "stageline-evidence 1";
constexpr std::int64_t most = std::numeric_limits<int>::max();

int count_of(const JsonNode& node) { return static_cast<int>(node.whole(1, most)); }

Time read_time(const JsonNode& node) { return Time{node.whole(0, longest_input.count())}; }

std::vector<Time> read_times(const JsonNode& node) {
  std::vector<Time> times;
  for (const JsonNode& item : node.items()) times.push_back(read_time(item));
  return times;
}

// One time per run.
std::vector<Time> read_runs(const JsonNode& node, std::size_t runs) {
  std::vector<Time> times = read_times(node);
  if (times.size() != runs) {
    node.refuse(fmt::format("there must be a time for each of the {} runs (this list has {})", runs,
                            times.size()));
  }
  return times;
}

// A number, or one of each counted run; 0: not measured.
std::vector<Bytes> read_peaks(const JsonNode& node) {
  if (node.kind() != JsonKind::list) {
    const Bytes peak = node.bytes();
    return peak == Bytes{} ? std::vector<Bytes>{} : std::vector{peak};
  }
  std::vector<Bytes> peaks;
  for (const JsonNode& item : node.items()) {
    peaks.push_back(item.bytes());
    if (peaks.back() == Bytes{}) item.refuse("a counted run held something (this is 0)");
  }
  if (peaks.empty()) node.refuse("a list of peaks has one of each counted run (this one is empty)");
  return peaks;
}

// A number for all counted runs, or one of each; of none where the peaks were not measured.
std::vector<Bytes> read_stashes(const JsonNode& node, std::size_t runs) {
  if (node.kind() != JsonKind::list) {
    const Bytes stash = node.bytes();
    return runs == 0 ? std::vector<Bytes>{} : std::vector{stash};
  }
  std::vector<Bytes> stashes;
  for (const JsonNode& item : node.items()) stashes.push_back(item.bytes());
  if (stashes.size() != runs) {
    node.refuse(fmt::format(
        "a list of stashes has one of each counted run, as the peaks have (peaks {}, stashes {})",
        runs, stashes.size()));
  }
  return stashes;
}

MeasuredDevice read_device(const JsonNode& node, std::size_t runs) {
  node.check_keys({"busy_ps", "transfer_ps", "peak_bytes", "stash_bytes"}, {});
  MeasuredDevice device{read_runs(node.at("busy_ps"), runs),
                        read_runs(node.at("transfer_ps"), runs),
                        read_peaks(node.at("peak_bytes")),
                        {}};
  device.stashes = read_stashes(node.at("stash_bytes"), device.peaks.size());
  return device;
}

Timeline read_timeline(const JsonNode& node, std::size_t devices) {
  node.check_keys({"devices", "spans"}, {});
  Timeline timeline;
  for (const JsonNode& name : node.at("devices").items()) timeline.devices.push_back(name.text());
  if (timeline.devices.size() != devices) {
    node.at("devices").refuse(
        fmt::format("the timeline must be of the {} device{} of the case (this one has {})",
                    devices, devices == 1 ? "" : "s", timeline.devices.size()));
  }
  read_packed_spans(node.at("spans"), longest_input, timeline);
  return timeline;
}

// As many as slices, or a number that divides a step's micro-batches.
void read_lengths(const JsonNode& node, const Evidence& evidence, MeasuredCase& measured) {
  for (const JsonNode& item : node.items()) measured.lengths.push_back(item.whole(1, most));
  const auto count = static_cast<int>(measured.lengths.size());
  try {
    Case asked;
    asked.spec = parse_schedules(measured.schedule).at(0);
    const int slices = slices_in(asked);
    if (slices > 1 && count != slices) {
      throw UsageError(
          fmt::format("there is a length for each of {} slices (these are {})", slices, count));
    }
    if (count == 0 || (slices == 1 && measured.microbatches % count != 0)) {
      throw UsageError(fmt::format(
          "there is a length for each of so many micro-batches as divide a step of {} (these are {})",
          measured.microbatches, count));
    }
    for (const TokenPart part : parts_of(measured)) trace_of(evidence, measured, part);
  } catch (const UsageError& error) {
    node.refuse(error.what());
  }
}

MeasuredCase read_case(const JsonNode& node, const Evidence& evidence) {
  node.check_keys({"model", "batch", "schedule", "partition", "microbatches", "steps", "link",
                   "held_out", "makespan_ps", "devices"},
                  {"host_link", "whole", "program", "timeline", "counted_timeline", "lengths"});
  MeasuredCase measured;
  measured.model = node.at("model").text();
  measured.batch = static_cast<int>(node.at("batch").whole(0, most));
  measured.schedule = node.at("schedule").text();
  measured.partition = node.at("partition").text();
  measured.microbatches = count_of(node.at("microbatches"));
  measured.steps = count_of(node.at("steps"));
  measured.link = node.at("link").text();
  measured.host_link = node.text_or_empty("host_link");
  measured.held_out = node.at("held_out").boolean();
  if (const auto whole = node.find("whole")) measured.whole = whole->boolean();
  std::vector<std::string> names;
  bool known = false;
  for (const Model& trace : measured.whole ? evidence.whole_traces : evidence.traces) {
    names.push_back(trace.name);
    known = known || (trace.name == measured.model && trace.batch == measured.batch);
  }
  if (!known) {
    node.at("model").refuse(fmt::format("there is no {}trace of {} at batch {}{}",
                                        measured.whole ? "whole " : "", in_quotes(measured.model),
                                        measured.batch, suggestion(measured.model, names)));
  }
  if (const auto lengths = node.find("lengths")) read_lengths(*lengths, evidence, measured);
  measured.makespan = read_times(node.at("makespan_ps"));
  if (measured.makespan.empty()) node.at("makespan_ps").refuse("a case was run at least once");
  for (const JsonNode& item : node.at("makespan_ps").items()) item.whole(1, longest_input.count());
  const std::vector<JsonNode> devices = node.at("devices").items();
  if (devices.empty() || devices.size() > evidence.cluster.devices.size()) {
    node.at("devices").refuse(
        fmt::format("a case runs on 1 to {} devices, those of the cluster (this one has {})",
                    evidence.cluster.devices.size(), devices.size()));
  }
  for (const JsonNode& device : devices) {
    measured.devices.push_back(read_device(device, measured.makespan.size()));
  }
  measured.program = node.text_or_empty("program");
  if (const auto found = node.find("timeline")) {
    measured.timeline = read_timeline(*found, devices.size());
  }
  if (const auto found = node.find("counted_timeline")) {
    measured.counted = read_timeline(*found, devices.size());
  }
  return measured;
}

void read_traces(const JsonNode& list, std::vector<Model>& traces) {
  for (const JsonNode& node : list.items()) {
    for (Model& trace : read_trace(node)) {
      for (const Model& earlier : traces) {
        if (earlier.name == trace.name && earlier.batch == trace.batch) {
          node.refuse(fmt::format("the trace of {} at batch {} appears twice",
                                  in_quotes(trace.name), trace.batch));
        }
      }
      traces.push_back(std::move(trace));
    }
  }
}

}  // namespace

Evidence read_evidence(const std::string& text, const std::string& file) {
  const JsonValue tree = parse_json(text, file);
  const JsonNode root(tree, "", file);
  if (root.kind() != JsonKind::object) root.refuse("evidence is one JSON object");
  if (const std::string format = root.at("format").text(); format != evidence_format) {
    root.at("format").refuse(
        fmt::format("evidence has \"{}\" here, not {}", evidence_format, in_quotes(format)));
  }
  root.check_keys(
      {"format", "cluster", "traces", "cases"},
      {"device", "date", "software", "settings", "command", "imitated", "notes", "whole_traces"});
  Evidence evidence;
  evidence.device = root.text_or_empty("device");
  evidence.date = root.text_or_empty("date");
  evidence.software = root.text_or_empty("software");
  evidence.settings = root.text_or_empty("settings");
  evidence.command = root.text_or_empty("command");
  if (const auto imitated = root.find("imitated")) evidence.imitated = imitated->boolean();
  if (const auto notes = root.find("notes")) {
    for (const JsonNode& note : notes->items()) evidence.notes.push_back(note.text());
  }
  evidence.cluster = read_cluster(root.at("cluster"));
  read_traces(root.at("traces"), evidence.traces);
  if (const auto whole = root.find("whole_traces")) read_traces(*whole, evidence.whole_traces);
  for (const JsonNode& node : root.at("cases").items()) {
    evidence.cases.push_back(read_case(node, evidence));
  }
  return evidence;
}

}  // namespace stageline::lab
