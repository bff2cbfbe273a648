// Simulates what is asked side by side, and packs the columns of its diagram.
#include "tools/playground/src/look.hpp"

#include <fmt/core.h>

#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tools/answers/simulated.hpp"
#include "tools/base/json.hpp"
#include "tools/report/drawing_of.hpp"
#include "tools/report/json/answer.hpp"
#include "tools/report/json/outcome.hpp"
#include "tools/report/page/diagram.hpp"
#include "traces/json/tree.hpp"

namespace stageline {
namespace {

// What a run keeps for its diagram.
struct Looked {
  std::string json;  // {"row": …} or {"error": …}
  std::optional<Outcome> outcome;
  std::optional<report::Drawing> drawing;
};

Looked looked_at(const answers::Request& request) {
  answers::SimulationQuestion question{
      answers::one_case_of(request, "a run is of one schedule, on one number of devices")};
  question.curves = Curves::all;
  answers::Simulation found = answer(question);
  Looked looked;
  looked.drawing = report::drawing_of(found.setting, found.asked, found.outcome);
  looked.drawing->title = found.outcome.schedule;
  looked.drawing->subtitle = report::run_words(found.outcome);
  looked.json =
      fmt::format("{{\"row\": {}}}", report::outcome_json(found.setting, found.asked, found.outcome,
                                                          /*timeline=*/false));
  looked.outcome = std::move(found.outcome);
  return looked;
}

Looked recorded(const std::string& file) {
  const Recording recording = recording_of({read_content(file)});
  Looked looked;
  report::Drawing& drawing = looked.drawing.emplace();
  drawing.title = recording.name;
  drawing.timeline = recording.timeline;
  drawing.program = order_of(recording);
  const Json row{{"file", recording.name},
                 {"measured", recording.measured},
                 {"makespan_ps", makespan(recording.timeline).count()},
                 {"notes", recording.notes}};
  looked.json = fmt::format("{{\"row\": {}}}", row.text());
  return looked;
}

Looked looked_at(const JsonValue& item) {
  const JsonNode node(item, "", "the request");
  if (const auto file = node.find("file")) return recorded(file->text());
  return looked_at(answers::parse_request(item));
}

Json blob_json(const report::PageBlob& blob) {
  return {{"name", blob.name}, {"type", name(blob.type)}, {"base64", report::base64(blob.bytes)}};
}

std::string diagram_json(const std::deque<Looked>& all) {
  std::vector<report::DiagramRun> runs;
  for (const Looked& one : all) {
    if (one.drawing) runs.push_back({*one.drawing, one.outcome ? &*one.outcome : nullptr});
  }
  if (runs.empty()) return "null";
  const report::PageSection section = report::diagram_section("", runs);
  Json blobs = Json::array();
  for (const report::PageBlob& blob : section.blobs) blobs.push_back(blob_json(blob));
  return fmt::format("{{\"data\": {},\n\"blobs\": {}}}", section.data, blobs.text());
}

}  // namespace

Program order_of(const Recording& recording) {
  if (recording.program) return *recording.program;
  const Timeline& timeline = recording.timeline;
  std::map<int, std::vector<std::size_t>> places;  // of a stage's forwards, devices
  std::uint32_t microbatches = 0;
  std::string lists;
  for (std::size_t device = 0; device < timeline.devices.size(); ++device) {
    lists += fmt::format("gpu{}:", device);
    for (const Span& span : timeline.lane(static_cast<int>(device), LaneKind::compute)) {
      if (span.op.kind == OpKind::update) continue;
      lists += " " + print(span.op);
      std::vector<std::size_t>& of = places[span.op.stage];
      if (of.empty() || of.back() != device) of.push_back(device);
      microbatches = std::max(microbatches, span.op.microbatch + 1);
    }
    lists += "\n";
  }
  const std::uint32_t steps =
      recording.microbatches > 0 ? static_cast<std::uint32_t>(recording.steps) : 1;
  std::string text = fmt::format("stageline-program 1\nmicrobatches: {}\nsteps: {}\n",
                                 std::max(1U, microbatches / std::max(1U, steps)), steps);
  for (const auto& [stage, devices] : places) {
    text += fmt::format("stage {}:", stage);
    for (std::size_t i = 0; i < devices.size(); ++i) {
      text += fmt::format("{}gpu{}", i == 0 ? " " : "+", devices[i]);
    }
    text += "\n";
  }
  Program program = parse_program(text + lists);
  program.schedule = recording.name;
  return program;
}

std::string look(const std::string& text) {
  return report::or_error([&] {
    const JsonValue list = parse_json(text, "the request");
    std::deque<Looked> all;
    std::string runs;
    for (const JsonValue& item : list.items) {
      Looked one;
      one.json = report::or_error([&] {
        one = looked_at(item);
        return one.json;
      });
      runs += (runs.empty() ? "\n" : ",\n") + one.json;
      all.push_back(std::move(one));
    }
    return fmt::format("{{\"runs\": [{}],\n\"diagram\": {}}}\n", runs, diagram_json(all));
  });
}

}  // namespace stageline
