// The words and short tables of a diagram; its columns are in diagram_columns.cpp.
#include "tools/report/page/diagram.hpp"

#include <fmt/core.h>

#include <set>
#include <tuple>
#include <utility>

#include "sim/analysis/memory_categories.hpp"
#include "sim/base/index.hpp"
#include "sim/task_graph.hpp"
#include "sim/wires.hpp"
#include "tools/base/json.hpp"
#include "tools/report/page/diagram_columns.hpp"

namespace stageline::report {
namespace {

template <class Kind>
Json names_of(int count) {
  Json names = Json::array();
  for (int i = 0; i < count; ++i) names.push_back(std::string(name(static_cast<Kind>(i))));
  return names;
}

Json limits_json(const std::vector<std::optional<Bytes>>& limits) {
  Json list = Json::array();
  for (const auto& limit : limits) list.push_back(limit ? Json(limit->count) : Json(nullptr));
  return list;
}

// The bytes of messages, reductions and copies; empty where they are unknown.
std::optional<Bytes> moved_by(const Outcome& outcome, const StageGraph& stages, Op op) {
  const StageCosts& costs = outcome.costs.of(op);
  switch (class_of(op.kind)) {
    case OpClass::message:
      if (wire_of(stages, op) < 0) return std::nullopt;
      return message_bytes(outcome.program, outcome.costs, stages, op);
    case OpClass::copy:
      return copy_bytes(outcome.costs, stages, op);
    case OpClass::reduction:
      return costs.reduction ? costs.reduction->bytes : costs.gradients;
    case OpClass::forward:
    case OpClass::backward:
    case OpClass::recompute:
    case OpClass::update:
      return std::nullopt;
  }
  return std::nullopt;
}

Json bytes_json(const Outcome& outcome) {
  Json list = Json::array();
  if (!outcome.bytes_known()) return list;
  const StageGraph stages = stage_graph(outcome.program);
  std::set<std::tuple<OpKind, int, int>> seen;
  for (const Spans& lane : outcome.timeline.lanes) {
    for (const Span& span : lane) {
      const Op op = plain(span.op);
      if (!seen.emplace(op.kind, op.stage, op.part).second) continue;
      const std::optional<Bytes> moved = moved_by(outcome, stages, op);
      if (!moved) continue;
      list.push_back(
          Json::array({static_cast<int>(op.kind), int{op.stage}, int{op.part}, moved->count}));
    }
  }
  return list;
}

Json peaks_json(const MemoryProfile& memory) {
  Json peaks = Json::array();
  for (const DeviceMemory& device : memory.device) {
    Json peak;
    peak["bytes"] = device.peak.count;
    peak["at_ps"] = device.peak_at.count();
    if (device.peak_op) peak["op"] = print(device.peak_op->op);
    peaks.push_back(std::move(peak));
  }
  return peaks;
}

Json run_json(std::vector<PageBlob>& blobs, const std::string& prefix, const DiagramRun& run) {
  const Drawing& drawing = run.drawing;
  add_spans(blobs, prefix, drawing);
  add_versions(blobs, prefix, drawing);
  add_needs(blobs, prefix, drawing);
  add_idle(blobs, prefix, drawing);
  if (run.outcome != nullptr) add_path(blobs, prefix, drawing, run.outcome->critical_path);
  Json json;
  json["title"] = drawing.title;
  json["subtitle"] = drawing.subtitle;
  json["devices"] = Json(drawing.timeline.devices);
  json["microbatches"] = drawing.program.microbatches;
  json["exact_curves"] = add_curves(blobs, prefix, drawing);
  json["limits"] = limits_json(drawing.memory_limit);
  json["peaks"] = peaks_json(drawing.memory);
  json["bytes"] = run.outcome == nullptr ? Json::array() : bytes_json(*run.outcome);
  return json;
}

}  // namespace

PageSection diagram_section(std::string title, const std::vector<DiagramRun>& runs) {
  PageSection section{"diagram", std::move(title), {}, {}};
  Json kinds = Json::array();
  for (int kind = 0; kind < op_kinds; ++kind) {
    kinds.push_back(std::string(symbol(static_cast<OpKind>(kind))));
  }
  Json data;
  data["kinds"] = std::move(kinds);
  data["lanes"] = names_of<LaneKind>(lane_kinds);
  data["causes"] = names_of<IdleKind>(idle_kinds);
  data["categories"] = names_of<MemoryCategory>(memory_categories);
  Json list = Json::array();
  for (std::size_t i = 0; i < runs.size(); ++i) {
    list.push_back(run_json(section.blobs, fmt::format("{}.", i), runs[i]));
  }
  data["runs"] = std::move(list);
  section.data = data.text();
  return section;
}

}  // namespace stageline::report
