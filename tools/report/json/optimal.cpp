#include "tools/report/text/optimal.hpp"
#include "tools/base/json.hpp"
#include "tools/report/json/row_parts.hpp"

namespace stageline::report {

std::string optimal_json(const answers::OptimalAnswer& answered) {
  const Optimal& found = answered.found;
  Json result;
  result["model"] = answered.setting.model.name;
  result["cluster"] = found.asked.cluster.name;
  result["devices"] = found.asked.device_count();
  put_degrees(result, found.asked);
  result["microbatches"] = found.asked.microbatches;
  result["limit"] = found.limit.empty() ? Json(nullptr) : Json(found.limit);
  result["goal"] = found.for_span ? "span" : "makespan";
  put_time(result, "value", found.value);
  put_time(result, "bound", found.bound);
  result["gap"] = found.gap();
  result["optimal"] = found.is_proved();
  result["found_by"] = found.found_by;
  result["bound_by"] = found.bound_by;
  result["states"] = found.states;
  result["stopped"] = found.is_stopped;
  put_time(result, "step", found.outcome.step_time);
  result["program"] = print(found.outcome.program);
  result["notes"] = notes(answered.setting);
  return result.text();
}

}  // namespace stageline::report
