// Writes evidence: a list of numbers on one line, a case on a few.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "sim/base/errors.hpp"
#include "tools/lab/evidence/evidence.hpp"
#include "traces/json/parts.hpp"
#include "traces/json/timeline.hpp"
#include "traces/traces.hpp"

namespace stageline::lab {
namespace {

// Embeds a document in ours: every line but the first is indented.
std::string inside(const std::string& text, std::size_t columns) {
  std::string moved;
  for (std::size_t at = 0; at + 1 < text.size(); ++at) {  // without the line break at the end
    moved += text[at];
    if (text[at] == '\n') moved.append(columns, ' ');
  }
  return moved;
}

std::string times_text(const std::vector<Time>& times) {
  std::string list;
  for (const Time time : times) {
    list += fmt::format("{}{}", list.empty() ? "" : ", ", time.count());
  }
  return "[" + list + "]";
}

// The bytes of the counted runs, a list; a number where there are not several.
std::string bytes_text(const std::vector<Bytes>& runs) {
  if (runs.size() < 2) return fmt::format("{}", runs.empty() ? 0 : runs[0].count);
  std::string list;
  for (const Bytes run : runs) list += fmt::format("{}{}", list.empty() ? "" : ", ", run.count);
  return "[" + list + "]";
}

std::string device_text(const MeasuredDevice& device) {
  return fmt::format(
      "{{\"busy_ps\": {},\n       \"transfer_ps\": {},\n       \"peak_bytes\": {}, "
      "\"stash_bytes\": {}}}",
      times_text(device.busy), times_text(device.transfer), bytes_text(device.peaks),
      bytes_text(device.stashes));
}

std::string timeline_text(const Timeline& timeline) {
  std::string names;
  for (const std::string& name : timeline.devices) {
    names += (names.empty() ? "" : ", ") + json_text(name);
  }
  const std::vector<std::string> spans = packed_spans(timeline);
  const std::string lines = spans.empty() ? "" : json_lines(spans, "       ").substr(1);
  return fmt::format("{{\"devices\": [{}], \"spans\": [{}]}}", names, lines);
}

// And the lengths of micro-batches that differ.
std::string steps_text(const MeasuredCase& measured) {
  if (measured.lengths.empty()) return fmt::format("{}", measured.steps);
  return fmt::format("{}, \"lengths\": [{}]", measured.steps, fmt::join(measured.lengths, ", "));
}

std::string case_text(const MeasuredCase& measured) {
  std::string link = json_text(measured.link);
  if (!measured.host_link.empty()) link += ", \"host_link\": " + json_text(measured.host_link);
  const std::string batch =
      fmt::format("{}{}", measured.batch, measured.whole ? ", \"whole\": true" : "");
  std::string text = fmt::format(
      "{{\"model\": {}, \"batch\": {}, \"schedule\": {}, \"partition\": {},\n"
      "     \"microbatches\": {}, \"steps\": {}, \"link\": {}, \"held_out\": {},\n"
      "     \"makespan_ps\": {},\n     \"devices\": [",
      json_text(measured.model), batch, json_text(measured.schedule), json_text(measured.partition),
      measured.microbatches, steps_text(measured), link, measured.held_out,
      times_text(measured.makespan));
  const char* between = "\n      ";
  for (const MeasuredDevice& device : measured.devices) {
    text += between + device_text(device);
    between = ",\n      ";
  }
  text += "]";
  if (!measured.program.empty()) text += ",\n     \"program\": " + json_text(measured.program);
  if (measured.timeline) text += ",\n     \"timeline\": " + timeline_text(*measured.timeline);
  if (measured.counted) {
    text += ",\n     \"counted_timeline\": " + timeline_text(*measured.counted);
  }
  return text + "}";
}

// "key": the list of `text` of each item, each item on a new line.
template <class Item, class Text>
std::string list_text(std::string_view key, const std::vector<Item>& items, Text text) {
  std::string list;
  for (const Item& item : items) list += (list.empty() ? "\n    " : ",\n    ") + text(item);
  return fmt::format(",\n  \"{}\": [{}{}]", key, list, list.empty() ? "" : "\n  ");
}

}  // namespace

namespace {

const Model& trace_called(const std::string& name, const Evidence& evidence,
                          const MeasuredCase& measured) {
  for (const Model& trace : measured.whole ? evidence.whole_traces : evidence.traces) {
    if (trace.name == name && trace.batch == measured.batch) return trace;
  }
  throw UsageError(fmt::format("the evidence has no {}trace of {} at batch {}",
                               measured.whole ? "whole " : "", name, measured.batch));
}

}  // namespace

const Model& trace_of(const Evidence& evidence, const MeasuredCase& measured) {
  return trace_called(measured.model, evidence, measured);
}

const Model& trace_of(const Evidence& evidence, const MeasuredCase& measured, TokenPart part) {
  return trace_called(part_name(measured.model, part), evidence, measured);
}

std::string write_evidence(const Evidence& evidence) {
  std::string text = "{\n  \"format\": \"stageline-evidence 1\"";
  const auto add = [&](std::string_view key, const std::string& value) {
    if (!value.empty()) text += fmt::format(",\n  \"{}\": {}", key, json_text(value));
  };
  add("device", evidence.device);
  add("date", evidence.date);
  add("software", evidence.software);
  add("settings", evidence.settings);
  add("command", evidence.command);
  if (evidence.imitated) text += ",\n  \"imitated\": true";
  if (!evidence.notes.empty()) text += list_text("notes", evidence.notes, json_text);
  text += ",\n  \"cluster\": " + inside(write_cluster(evidence.cluster), 2);
  const auto trace_text = [](const Model& trace) { return inside(write_trace({trace}), 4); };
  text += list_text("traces", evidence.traces, trace_text);
  if (!evidence.whole_traces.empty()) {
    text += list_text("whole_traces", evidence.whole_traces, trace_text);
  }
  text += list_text("cases", evidence.cases, case_text);
  return text + "\n}\n";
}

}  // namespace stageline::lab
