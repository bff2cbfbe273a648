#include "tools/report/json/plan.hpp"

#include <algorithm>

#include "schedulers/scheduler.hpp"
#include "tools/base/json.hpp"
#include "tools/report/json/row_parts.hpp"
#include "tools/study/evidence/ties.hpp"
#include "tools/study/figures/ranking.hpp"

namespace stageline::report {
namespace {

Json degrees_json(const Degrees& degrees) {
  Json object{{"tp", degrees.tensor},
              {"cp", degrees.context},
              {"ep", degrees.expert},
              {"dp", degrees.data},
              {"pp", degrees.pipeline}};
  if (degrees.folded()) object["etp"] = degrees.expert_tensor;
  put_zero(object, degrees);
  return object;
}

void put(Json& object, const std::string& key, const std::optional<double>& value) {
  if (value) object[key] = *value;
}

// The range of the step; nothing where none is claimed.
void put_range(Json& object, const Verdict& verdict) {
  if (!verdict.intervals.step) return;
  for (const char* const end : {"step_low", "step_high"}) {
    put_time(object, end, std::get<Time>(figure_of_property(end).of_verdict(verdict)));
  }
  object["step_range_of"] = provenance_of(*verdict.intervals.step);
}

Json point_json(const Model& model, const planner::PlanPoint& point, const PlanView& view) {
  const planner::Candidate& candidate = point.candidate;
  const planner::Shape& shape = candidate.shape;
  const Verdict& verdict = point.verdict;
  Json object;
  object["schedule"] = title(candidate.spec);
  object["partition"] = candidate.partition;
  object["devices"] = point.devices();
  object["degrees"] = degrees_json(shape.degrees);
  object["sequence_parallel"] = shape.sequence_parallel;
  if (!shape.cp_comm_type.empty()) object["cp_comm_type"] = shape.cp_comm_type;
  if (!shape.placement.empty()) object["placement"] = shape.placement;
  const int size = shape.microbatch_size > 0 ? shape.microbatch_size : model.batch;
  object["microbatch_size"] = size > 0 ? Json(size) : Json(nullptr);
  object["microbatches"] = shape.microbatches;
  object["recompute"] =
      candidate.recomputation.parts.empty() ? Json(nullptr) : Json(print(candidate.recomputation));
  object["offload"] = print(candidate.offloading);
  put_time(object, "step_time", verdict.step);
  put_range(object, verdict);
  if (point.half_network) put_time(object, "half_network_step", *point.half_network);
  object["throughput"] = verdict.step > Time{} ? Json(verdict.throughput) : Json(nullptr);
  object["throughput_unit"] = throughput_unit(model);
  put(object, "tokens_per_second", point.rates.tokens_per_second);
  put(object, "tokens_per_second_per_device", point.rates.tokens_per_device_second);
  put(object, "mfu", point.rates.mfu);
  put(object, "hfu", point.rates.hfu);
  object["peak_bytes"] = verdict.peak.empty() ? Json(nullptr) : Json(verdict.fullest().count);
  object["peak_bytes_per_device"] = Json::array();
  for (const Bytes peak : verdict.peak) object["peak_bytes_per_device"].push_back(peak.count);
  object["tightest"] = nullptr;
  if (verdict.need) {
    object["tightest"] = {{"place", verdict.need->place},
                          {"peak_bytes", verdict.need->peak.count},
                          {"memory_bytes", verdict.need->limit.count}};
  }
  object["fits"] = stageline::name(verdict.fit);
  put(object, "dollars_step", point.dollars_step);
  put(object, "device_hours", point.rates.device_hours);
  put(object, "days", point.rates.days);
  put(object, "dollars", point.rates.dollars);
  object["flags"] = point.flags;
  object["command"] = command_of(point, view);
  return object;
}

Json dropped_json(const planner::PlanDropped& one) {
  Json object{{"flags", one.what}, {"why", one.why}, {"candidates", one.candidates}};
  if (one.bound) put_time(object, "bound", *one.bound);
  return object;
}

}  // namespace

std::string plan_json(const Setting& setting, const planner::PlanRequest& request,
                      const planner::Plan& plan, const PlanView& view,
                      const std::vector<std::string>& said) {
  const std::vector<std::size_t>& tied = plan.tied;
  Json object;
  object["model"] = setting.model.name;
  object["costs"] = stageline::name(setting.model.provenance.origin);
  object["cluster"] = setting.cluster.fixed ? Json(setting.cluster.fixed->name) : Json(nullptr);
  object["samples"] = request.samples;
  if (setting.model.tokens > 0) object["tokens"] = request.samples * setting.model.tokens;
  object["objective"] = planner::name(request.objective);
  object["within"] = request.within.value_or(default_within);
  object["slower_by"] = request.slower_by ? Json(*request.slower_by) : Json(nullptr);
  object["front"] = Json::array();
  for (std::size_t i = 0; i < plan.front.size(); ++i) {
    Json point = point_json(setting.model, plan.front[i], view);
    if (!tied.empty()) {
      point["tie"] = std::find(tied.begin(), tied.end(), i) != tied.end();
      point["schedule_held"] = was_held(title(plan.front[i].candidate.spec));
    }
    object["front"].push_back(std::move(point));
  }
  object["recommended"] = plan.recommended ? Json(*plan.recommended) : Json(nullptr);
  object["sentence"] = plan.sentence;
  put_time(object, "bound", plan.bound);
  object["gap"] = plan.front.empty() || plan.bound <= Time{} ? Json(nullptr) : Json(plan_gap(plan));
  object["exhausted"] = plan.exhausted;
  object["partial"] = plan.partial;
  object["behind"] = plan.behind;
  object["candidates"] = {{"simulated", plan.counts.judged},
                          {"pruned", plan.counts.pruned},
                          {"refused", plan.counts.refused},
                          {"left", plan.counts.left}};
  object["missing"] = nullptr;
  if (plan.missing) {
    const MemoryNeed& need = plan.missing->need;
    object["missing"] = {{"bytes", need.grows ? Json() : Json(need.missing().count)},
                         {"where", need.grows ? Json() : Json(need.place)},
                         {"flags", plan.missing->flags}};
  }
  if (request.keep_dropped) {
    object["pruned"] = Json::array();
    object["refused"] = Json::array();
    for (const planner::PlanDropped& one : plan.dropped) {
      object[one.bound ? "pruned" : "refused"].push_back(dropped_json(one));
    }
  }
  object["notes"] = said;
  return object.text();
}

}  // namespace stageline::report
