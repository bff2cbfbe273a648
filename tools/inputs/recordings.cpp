// Recognises timelines by their content and reads them.
#include "tools/inputs/recordings.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include "sim/base/errors.hpp"
#include "tools/base/files.hpp"
#include "tools/base/provided_files.hpp"
#include "traces/gzip.hpp"
#include "traces/json/timeline.hpp"
#include "traces/json/tree.hpp"
#include "traces/nsight/nsight.hpp"

namespace stageline {
namespace {

constexpr std::int64_t most = 1 << 26;

bool is_object(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string::npos && text[first] == '{';
}

bool is_outcome(const std::string& text) {
  return is_object(text) && text.find("\"traceEvents\"") == std::string::npos &&
         text.find("\"makespan_ps\"") != std::string::npos;
}

// What PyTorch's profiler writes is before the events; the ranges reveal a trimmed profile.
bool is_kineto(const std::string& text) {
  if (!is_object(text)) return false;
  const std::size_t events = text.find("\"traceEvents\"");
  if (events == std::string::npos) return false;
  const std::string_view head = std::string_view(text).substr(0, events);
  for (const std::string_view key :
       {"\"schemaVersion\"", "\"deviceProperties\"", "\"distributedInfo\""}) {
    if (head.find(key) != std::string_view::npos) return true;
  }
  return text.find("\"PP:") != std::string::npos;
}

bool is_chrome(const std::string& text) {
  return is_object(text) && text.find("\"traceEvents\"") != std::string::npos;
}

std::string base_name(const std::string& file) {
  return std::filesystem::path(file).filename().string();
}

Recording of_profiles(const std::vector<Content>& files) {
  std::vector<NamedText> profiles;
  Recording recording;
  for (const Content& content : files) {
    profiles.push_back(content.named);
    recording.name += (recording.name.empty() ? "" : ", ") + base_name(content.named.file);
  }
  KinetoRun run = read_kineto(profiles);
  recording.timeline = std::move(run.timeline);
  recording.estimated = std::move(run.estimated);
  recording.microbatches = run.program.microbatches;
  recording.steps = run.program.steps;
  recording.program = std::move(run.program);
  recording.measured = true;
  recording.notes = std::move(run.notes);
  return recording;
}

// Steps of a flushed run, from the updates: as many as each stage has, if that divides.
void infer_steps(Recording& recording) {
  std::uint32_t microbatches = 0;
  std::uint32_t updates = 0;
  for (const auto& lane : recording.timeline.lanes) {
    for (const Span& span : lane) {
      if (span.op.kind == OpKind::forward) {
        microbatches = std::max(microbatches, span.op.microbatch + 1);
      }
      if (span.op.kind == OpKind::update) updates = std::max(updates, span.op.microbatch + 1);
    }
  }
  if (updates < 2 || updates >= microbatches || microbatches % updates != 0) return;
  recording.microbatches = static_cast<int>(microbatches / updates);
  recording.steps = static_cast<int>(updates);
}

Recording of_outcome(const std::vector<Content>& files) {
  return read_outcome(files[0].named.text, files[0].named.file);
}

Recording of_chrome(const std::vector<Content>& files) {
  const auto& [file, text] = files[0].named;
  ChromeTrace trace = read_chrome_trace(text, file);
  Recording recording;
  recording.name = trace.title.empty() ? base_name(file) : trace.title;
  recording.timeline = std::move(trace.timeline);
  if (trace.steps > 0 && trace.microbatches > 0) {
    recording.steps = trace.steps;
    recording.microbatches = trace.microbatches;
  } else {
    infer_steps(recording);
  }
  recording.step_time = trace.step_time;
  return recording;
}

// The first that recognises a file reads it.
constexpr RecordingFormat recording_table[] = {
    {"outcome", "of simulate --json --timeline", false, is_outcome, of_outcome},
    {"kineto", "profiles of PyTorch", true, is_kineto, of_profiles},
    {"chrome", "a Chrome trace", false, is_chrome, of_chrome},
};

// Only timelines may be long: what is none is refused before the rest of it is read.
void check_length(const std::string& file) {
  std::error_code none;
  const std::uintmax_t size = std::filesystem::file_size(file, none);
  if (none || size <= json_longest_text || provided_file(file)) return;
  const std::string head = read_beginning(file, json_longest_text);
  if (is_gzip(head) || head.find("\"traceEvents\"") != std::string::npos) return;
  const std::size_t zero = head.find('\0');
  if (zero != std::string::npos) return;  // read_file() says so
  throw TraceError(file, "",
                   fmt::format("the file has {} bytes; at most {} are read of what is no timeline, "
                               "which has \"traceEvents\" among them",
                               size, json_longest_text));
}

}  // namespace

std::span<const RecordingFormat> recording_formats() { return recording_table; }

std::vector<NamedText> read_profiles(const std::string& file) {
  check_length(file);
  std::string text = read_file(file, FileHolds::text_or_gzip);
  if (is_sqlite(text)) return nsight_profiles(text, file);
  text = unpacked(std::move(text), file);
  return {{file, without_mark(std::move(text), file)}};
}

Content read_content(const std::string& file) {
  std::vector<NamedText> profiles = read_profiles(file);
  if (profiles.size() > 1) {
    throw UsageError(fmt::format(
        "{} has profiles of {} processes, and one is wanted here; stageline import kineto takes all",
        file, profiles.size()));
  }
  Content content{std::move(profiles.front()), nullptr};
  for (const RecordingFormat& format : recording_table) {
    if (!format.recognises(content.named.text)) continue;
    content.format = &format;
    break;
  }
  return content;
}

Recording read_outcome(const std::string& text, const std::string& file) {
  const JsonValue value = parse_json(text, file);
  const JsonNode root(value, "", file);
  Recording recording;
  std::set<std::string> names;
  for (const JsonNode& device : root.at("per_device").items()) {
    const std::string name = device.at("name").text();
    if (!names.insert(name).second) {
      device.at("name").refuse(fmt::format("{} is the name of two devices", in_quotes(name)));
    }
    recording.timeline.devices.push_back(name);
  }
  const std::optional<JsonNode> spans = root.find("timeline");
  if (!spans) {
    root.refuse("\"timeline\" is missing; `stageline simulate --json FILE --timeline` writes it");
  }
  read_named_spans(*spans, Time{most_bytes}, recording.timeline);
  recording.name = fmt::format("{} · {}", root.at("schedule").text(), root.at("model").text());
  const std::optional<JsonNode> chunks = root.find("sequence_chunks");
  recording.microbatches = static_cast<int>(root.at("microbatches").whole(1, most) *
                                            (chunks ? chunks->whole(1, most) : 1));
  recording.steps = static_cast<int>(root.at("steps").whole(1, most));
  recording.step_time = Time{root.at("step_time_ps").whole(0, most_bytes)};
  recording.measured = root.find("measured").has_value();
  return recording;
}

Recording recording_of(const std::vector<Content>& files) {
  if (files.empty()) throw UsageError("a timeline needs a file");
  const RecordingFormat* const format = files[0].format;
  const bool ranks = std::all_of(files.begin(), files.end(), [&](const Content& content) {
    return content.format == format && format != nullptr && format->by_rank;
  });
  if (!ranks && files.size() > 1) {
    throw UsageError(fmt::format(
        "{} and {} are one side, but only profiles of PyTorch may be several, one a rank",
        files[0].named.file, files[1].named.file));
  }
  if (format != nullptr) return format->read(files);
  throw UsageError(fmt::format(
      "{} is no timeline: neither an outcome (`simulate --json FILE --timeline`), nor a "
      "Chrome trace (`draw --chrome FILE`), nor a profile of PyTorch",
      files[0].named.file));
}

std::vector<std::vector<Content>> sides_of(std::vector<Content> files) {
  std::vector<std::vector<Content>> sides;
  const RecordingFormat* before = nullptr;
  for (Content& content : files) {
    const RecordingFormat* const format = content.format;
    const bool same_run = format != nullptr && format->by_rank && format == before;
    if (!same_run) sides.emplace_back();
    sides.back().push_back(std::move(content));
    before = format;
  }
  return sides;
}

}  // namespace stageline
