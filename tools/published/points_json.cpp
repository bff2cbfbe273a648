// Reports judged rows as JSON.
#include <cstdint>
#include <string>

#include "sim/base/numbers.hpp"
#include "tools/base/json.hpp"
#include "tools/published/asked_again.hpp"
#include "tools/published/report.hpp"

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

// As a request has its values: numbers and booleans without quotes.
Json question_json(const std::vector<QuestionWord>& words) {
  Json json = Json::object();
  for (const QuestionWord& word : words) {
    const auto number = parse_number<std::int64_t>(word.text);
    const bool text = word.key == "zero" || word.key == "partition";
    if (word.key == "sequence_parallel") {
      json[word.key] = word.text == "true";
    } else if (number && !text) {
      json[word.key] = *number;
    } else {
      json[word.key] = word.text;
    }
  }
  return json;
}

Json row_json(const JudgedPoint& row) {
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
    json["fits"] = row.prediction->fits ? Json(*row.prediction->fits) : Json();
  }
  json["step_deviation"] = optional_json(row.step_deviation);
  json["memory_deviation"] = optional_json(row.memory_deviation);
  if (row.pace.op_cost > 0) json["op_cost_s"] = row.pace.op_cost;
  if (row.pace.rate != 1) json["rate"] = row.pace.rate;
  if (!row.why_not.empty()) json["why_not"] = row.why_not;
  json["assumptions"] = Json(row.question.assumptions);
  if (row.why_not.empty() && !row.question.request.setting.trace.empty()) {
    json["question"] = question_json(words_of(row.question));
    json["command"] = command_of(row.question);
  }
  return json;
}

}  // namespace

std::string published_json(const std::vector<JudgedPoint>& judged,
                           const std::vector<UnreadRow>& unread) {
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
  Json left_out = Json::array();
  for (const UnreadRow& row : unread) left_out.push_back({{"line", row.line}, {"why", row.why}});
  const Json all{{"groups", groups},
                 {"order", {{"pairs", summary.order.pairs}, {"right", summary.order.right}}},
                 {"rows", rows},
                 {"unread", left_out}};
  return all.text();
}

}  // namespace stageline
