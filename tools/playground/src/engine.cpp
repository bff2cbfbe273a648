// The questions of the page, by name.
#include "tools/playground/src/engine.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <optional>
#include <vector>

#include "cost_models/transformers/language_spelling.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/check/lint.hpp"
#include "sim/deadlock.hpp"
#include "sim/lower/passes.hpp"
#include "sim/task_graph.hpp"
#include "tools/answers/programs.hpp"
#include "tools/base/files.hpp"
#include "tools/base/json.hpp"
#include "tools/base/provenance.hpp"
#include "tools/base/version.hpp"
#include "tools/inputs/program_files.hpp"
#include "tools/inputs/recordings.hpp"
#include "tools/playground/src/look.hpp"
#include "tools/report/json/answer.hpp"
#include "traces/programs.hpp"
#include "traces/traces.hpp"

namespace stageline {
namespace {

std::string answer_to(const std::string& text) { return report::answer(text); }

std::string text_of(const std::string& request, answers::ProgramOf of) {
  return report::or_error([&] {
    const answers::ProgramQuestion question{
        answers::one_case_of(answers::parse_request(request),
                             "a program is of one schedule, on one number of devices"),
        of};
    return Json{{"text", print(answer(question).program)}}.text();
  });
}

std::string program_text(const std::string& text) { return text_of(text, answers::ProgramOf::run); }

// Without a simulation: the page asks for it with every move of a slider.
std::string compute_text(const std::string& text) {
  return text_of(text, answers::ProgramOf::compute);
}

// The two numbers of "line 4, column 12: …".
void put_place(Json& error, std::string_view message) {
  constexpr std::string_view line_word = "line ";
  constexpr std::string_view column_word = ", column ";
  if (!message.starts_with(line_word)) return;
  int line = 0;
  int column = 0;
  const char* const end = message.data() + message.size();
  const auto [after, wrong] = std::from_chars(message.data() + line_word.size(), end, line);
  if (wrong != std::errc{}) return;
  error["line"] = line;
  const std::string_view rest(after, as_size(end - after));
  if (!rest.starts_with(column_word)) return;
  if (std::from_chars(after + column_word.size(), end, column).ec == std::errc{}) {
    error["column"] = column;
  }
}

Json finding_json(const Program& program, const LintFinding& finding) {
  const bool placed = finding.position >= 0;
  Json one{{"severity", name(finding.severity)}, {"rule", name(finding.rule)}};
  if (placed) {
    one["device"] = nth(program.devices, finding.device);
    one["position"] = finding.position;
    one["op"] = print(program.ops[as_size(finding.device)][as_size(finding.position)]);
  }
  if (finding.line > 0) one["line"] = finding.line;
  if (finding.column > 0) one["column"] = finding.column;
  one["message"] = finding.message;
  one["figure"] = finding.figure;
  return one;
}

// An op of a cycle, and where the program's text has it; messages that are added have no place.
Json cycle_op_json(const Program& program, const TextPlaces& places, Op op) {
  Json one{{"op", print(op)}};
  for (std::size_t device = 0; device < program.ops.size(); ++device) {
    const std::vector<Op>& list = program.ops[device];
    const auto at = std::find_if(list.begin(), list.end(), [&](Op other) {
      other.overlapped = op.overlapped;
      return other == op;
    });
    if (at == list.end()) continue;
    const std::size_t position = as_size(at - list.begin());
    one["device"] = device;
    one["position"] = position;
    one["line"] = places.op[device][position].line;
    one["column"] = places.op[device][position].column;
    break;
  }
  return one;
}

Json deadlocks_json(const Program& program, const TextPlaces& places) {
  constexpr std::size_t most = 5;
  Json all = Json::array();
  try {
    const Costs costs = unit_costs(program);
    for (const Deadlock& deadlock : deadlocks_of(complete(program, costs), costs, most)) {
      Json cycle = Json::array();
      for (const Op op : deadlock.cycle) cycle.push_back(cycle_op_json(program, places, op));
      all.push_back({{"message", deadlock.what()}, {"cycle", std::move(cycle)}});
    }
  } catch (const ProgramError&) {
    // Other errors leave no cycle to follow; they are among the findings.
  }
  return all;
}

std::string check_text(const std::string& text) {
  try {
    TextPlaces places;
    const Program program = parse_program(text, places);
    const Lint found = lint(program, {&places, nullptr});
    Json findings = Json::array();
    for (const LintFinding& one : found.findings) findings.push_back(finding_json(program, one));
    const bool stuck =
        std::any_of(found.findings.begin(), found.findings.end(), [](const LintFinding& one) {
          return one.rule == LintRule::deadlock && one.severity == Severity::error;
        });
    Json ops = Json::array();
    if (stuck) {
      for (const std::vector<Op>& list : program.ops) {
        Json words = Json::array();
        for (const Op op : list) words.push_back(print(op));
        ops.push_back(std::move(words));
      }
    }
    return Json{{"microbatches", program.microbatches},
                {"steps", program.steps},
                {"devices", program.devices},
                {"errors", found.count(Severity::error)},
                {"findings", std::move(findings)},
                {"deadlocks", stuck ? deadlocks_json(program, places) : Json::array()},
                {"ops", std::move(ops)}}
        .text();
  } catch (const ProgramError& error) {
    Json one{{"kind", "program"}, {"message", error.what()}};
    put_place(one, error.what());
    return Json{{"error", std::move(one)}}.text();
  }
}

Json schedule_json(const Scheduler& scheduler) {
  Json knobs = Json::array();
  for (const Knob& knob : scheduler.knobs) {
    knobs.push_back({{"name", knob.name},
                     {"values", knob.values},
                     {"default", knob.fallback},
                     {"summary", knob.summary}});
  }
  return {{"name", scheduler.name},
          {"summary", scheduler.summary},
          {"source", scheduler.source},
          {"synchronous", scheduler.synchrony == Synchrony::synchronous},
          {"knobs", std::move(knobs)}};
}

std::string names_text(const std::string& /*nothing*/) {
  Json schedules = Json::array();
  for (const Scheduler* const one : schedulers()) schedules.push_back(schedule_json(*one));
  Json traces = Json::array();
  for (const Bundled& one : bundled_traces()) {
    const Model model = read_trace(std::string(one.text), std::string(one.name)).front();
    traces.push_back({{"name", one.name},
                      {"layers", model.layers.size()},
                      {"described", described(model.provenance)}});
  }
  Json clusters = Json::array();
  for (const Bundled& one : bundled_clusters()) {
    const Cluster cluster = read_cluster(std::string(one.text), std::string(one.name));
    clusters.push_back({{"name", one.name}, {"devices", cluster.devices.size()}});
  }
  return Json{{"version", version()},
              {"schedules", std::move(schedules)},
              {"traces", std::move(traces)},
              {"clusters", std::move(clusters)},
              {"models", language_model_names()}}
      .text();
}

Json opened_program(const std::string& path, const std::string& name) {
  std::string text = read_text(path);
  // Our own text stays as it is, with its comments and its errors.
  if (!parse_program_format("slp").recognises(text)) {
    text = print(read_program(path, /*quiet=*/true));
  }
  return {{"kind", "program"}, {"name", name}, {"text", text}};
}

Json opened_timeline(const Content& content, const std::string& name) {
  const Recording recording = recording_of({content});
  Json one{{"kind", "timeline"},
           {"name", name},
           {"format", content.format->name},
           {"title", recording.name},
           {"measured", recording.measured},
           {"microbatches", recording.microbatches},
           {"steps", recording.steps},
           {"makespan_ps", makespan(recording.timeline).count()},
           {"devices", recording.timeline.devices},
           {"notes", recording.notes},
           {"program", print(order_of(recording))}};
  return one;
}

Json opened_trace(const std::string& path, const std::string& name) {
  TraceRequest request;
  request.text = path;
  const std::vector<Model> sizes = open_trace_sizes(request);
  Json batches = Json::array();
  for (const Model& model : sizes) batches.push_back(model.batch);
  const Model& model = sizes.back();
  return {{"kind", "trace"},
          {"name", name},
          {"model", model.name},
          {"layers", model.layers.size()},
          {"batches", std::move(batches)},
          {"described", described(model.provenance)}};
}

std::string open_text(const std::string& path) {
  return report::or_error([&] {
    const std::string name = std::filesystem::path(path).filename().string();
    if (is_program_file(path)) return opened_program(path, name).text();
    const Content content = read_content(path);
    if (content.format != nullptr) return opened_timeline(content, name).text();
    return opened_trace(path, name).text();
  });
}

struct Question {
  std::string_view what;
  std::string (*reply)(const std::string& text);
};

constexpr Question questions[] = {
    {"answer", answer_to}, {"program", program_text}, {"compute", compute_text},
    {"check", check_text}, {"names", names_text},     {"open", open_text},
    {"look", look}};

}  // namespace

std::string ask(std::string_view what, const std::string& text) {
  const auto* const found =
      std::find_if(std::begin(questions), std::end(questions),
                   [&](const Question& question) { return question.what == what; });
  if (found != std::end(questions)) return found->reply(text);
  return report::or_error(
      [&]() -> std::string { throw UsageError(fmt::format("there is no question \"{}\"", what)); });
}

}  // namespace stageline
