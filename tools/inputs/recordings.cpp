#include "tools/inputs/recordings.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "sim/errors.hpp"
#include "tools/base/files.hpp"
#include "traces/gzip.hpp"
#include "traces/json/timeline.hpp"
#include "traces/json/tree.hpp"

namespace stageline {
namespace {

constexpr std::int64_t most = 1 << 26;

ContentKind kind_of(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || text[first] != '{') return ContentKind::other;
  const std::size_t events = text.find("\"traceEvents\"");
  if (events == std::string::npos) {
    return text.find("\"makespan_ps\"") == std::string::npos ? ContentKind::other
                                                             : ContentKind::outcome;
  }
  // What PyTorch's profiler writes stands before the events; the ranges tell a trimmed one.
  const std::string_view head = std::string_view(text).substr(0, events);
  for (const std::string_view key :
       {"\"schemaVersion\"", "\"deviceProperties\"", "\"distributedInfo\""}) {
    if (head.find(key) != std::string_view::npos) return ContentKind::kineto;
  }
  return text.find("\"PP:") == std::string::npos ? ContentKind::chrome : ContentKind::kineto;
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

}  // namespace

Content read_content(const std::string& file) {
  Content content{{file, without_mark(unpacked(read_file(file), file), file)}, ContentKind::other};
  content.kind = kind_of(content.named.text);
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
  const bool profiles = std::all_of(files.begin(), files.end(), [](const Content& content) {
    return content.kind == ContentKind::kineto;
  });
  if (profiles) return of_profiles(files);
  if (files.size() > 1) {
    throw UsageError(fmt::format(
        "{} and {} are one side, but only profiles of PyTorch may be several, one a rank",
        files[0].named.file, files[1].named.file));
  }
  const auto& [file, text] = files[0].named;
  switch (files[0].kind) {
    case ContentKind::outcome:
      return read_outcome(text, file);
    case ContentKind::chrome: {
      ChromeTrace trace = read_chrome_trace(text, file);
      Recording recording;
      recording.name = trace.title.empty() ? base_name(file) : trace.title;
      recording.timeline = std::move(trace.timeline);
      infer_steps(recording);
      return recording;
    }
    case ContentKind::kineto:
    case ContentKind::other:
      break;
  }
  throw UsageError(fmt::format(
      "{} is no timeline: neither an outcome (`simulate --json FILE --timeline`), nor a "
      "Chrome trace (`draw --chrome FILE`), nor a profile of PyTorch",
      file));
}

std::vector<std::vector<Content>> sides_of(std::vector<Content> files) {
  std::vector<std::vector<Content>> sides;
  bool profiles = false;
  for (Content& content : files) {
    const bool profile = content.kind == ContentKind::kineto;
    if (!profile || !profiles) sides.emplace_back();
    sides.back().push_back(std::move(content));
    profiles = profile;
  }
  return sides;
}

}  // namespace stageline
