// Reports judged rows as JSON.
#include <string>

#include "tools/base/json.hpp"
#include "tools/evidence/published/report.hpp"

namespace stageline {
namespace {

Json figures_json(const std::vector<JudgedPoint>& judged, const DeviationFigures& figures) {
  if (figures.rows == 0) return {};
  return {{"rows", figures.rows},     {"mean", figures.mean},
          {"median", figures.median}, {"p95", figures.p95},
          {"worst", figures.worst},   {"worst_row", judged[figures.worst_row].point.id},
          {"bias", figures.bias}};
}

Json optional_json(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json row_json(const JudgedPoint& row) {
  const SettingRequest& setting = row.question.request.setting;
  Json json{{"id", row.point.id},
            {"source", row.point.source},
            {"url", row.point.url},
            {"where", row.point.where},
            {"model", row.point.model},
            {"degrees", degrees_text(row.point)},
            {"schedule", row.point.schedule},
            {"role", std::string(name(row.role))},
            {"measured_step_s", optional_json(row.measured_step)},
            {"measured_memory_bytes", optional_json(row.point.memory)}};
  if (row.prediction) {
    json["predicted_step_s"] = row.prediction->step;
    json["predicted_memory_bytes"] = row.prediction->memory;
    json["model_flops"] = row.prediction->model_flops;
  }
  json["step_deviation"] = optional_json(row.step_deviation);
  json["memory_deviation"] = optional_json(row.memory_deviation);
  if (row.pace.op_cost > 0) json["op_cost_s"] = row.pace.op_cost;
  if (row.pace.rate != 1) json["rate"] = row.pace.rate;
  if (!row.why_not.empty()) json["why_not"] = row.why_not;
  json["assumptions"] = Json(row.question.assumptions);
  if (!setting.trace.empty()) {
    std::string schedules;
    for (const ScheduleSpec& spec : row.question.request.schedules) schedules += spelled(spec);
    json["question"] = Json{{"trace", setting.trace},
                            {"cluster", setting.cluster.cluster},
                            {"partition", setting.partition},
                            {"schedule", schedules},
                            {"microbatch_size", setting.microbatch_size},
                            {"microbatches", setting.microbatches},
                            {"zero", static_cast<int>(setting.degrees.zero)},
                            {"precision", std::string(setting.degrees.precision.name)},
                            {"buckets", setting.buckets},
                            {"sequence_parallel", setting.sequence_parallel}};
  }
  return json;
}

}  // namespace

std::string published_json(const std::vector<JudgedPoint>& judged) {
  const PublishedSummary summary = summary_of(judged);
  Json groups = Json::array();
  for (const PointGroup& group : summary.groups) {
    groups.push_back({{"source", group.source},
                      {"role", std::string(name(group.role))},
                      {"rows", group.rows.size()},
                      {"unanswered", group.unanswered},
                      {"step", figures_json(judged, group.step)},
                      {"memory", figures_json(judged, group.memory)}});
  }
  Json rows = Json::array();
  for (const JudgedPoint& row : judged) rows.push_back(row_json(row));
  const Json all{{"groups", groups},
                 {"order", {{"pairs", summary.order.pairs}, {"right", summary.order.right}}},
                 {"rows", rows}};
  return all.text();
}

}  // namespace stageline
