// The difference of two programs as JSON. The keys are documented in tools/report/json/README.md
// and stable.
#include "tools/report/text/diff.hpp"
#include "tools/base/json.hpp"
#include "tools/report/json/row_parts.hpp"

namespace stageline::report {
namespace {

Json times_json(const std::optional<answers::SideTimes>& side) {
  if (!side) return nullptr;
  Json json;
  put_time(json, "makespan", side->makespan);
  put_time(json, "step_time", side->step_time);
  json["per_device"] = Json::array();
  for (std::size_t d = 0; d < side->devices.size(); ++d) {
    Json device;
    device["name"] = side->devices[d];
    put_time(device, "busy", side->busy[d]);
    put_time(device, "idle", side->makespan - side->busy[d]);
    json["per_device"].push_back(std::move(device));
  }
  return json;
}

}  // namespace

std::string diff_json(const answers::DiffReport& report) {
  const ProgramDiff& diff = report.diff;
  Json result;
  result["first"] = report.first_name;
  result["second"] = report.second_name;
  result["equal"] = diff.equal();
  result["settings"] = diff.settings;
  result["first_difference"] = nullptr;
  if (diff.first) {
    const auto op = [](const std::optional<Op>& one) { return one ? Json(print(*one)) : Json(); };
    result["first_difference"] = {{"device", diff.device[diff.first->device].name},
                                  {"position", diff.first->position},
                                  {"first", op(diff.first->first)},
                                  {"second", op(diff.first->second)},
                                  {"first_context", diff.first->first_context},
                                  {"second_context", diff.first->second_context}};
  }
  result["ops"] = diff.ops;
  result["differ"] = {{"all", diff.differing()},
                      {"reordered", diff.reordered},
                      {"on_another_device", diff.elsewhere},
                      {"overlapped_otherwise", diff.repaired}};
  result["only_first"] = ops_json(diff.only_first);
  result["only_second"] = ops_json(diff.only_second);
  result["per_device"] = Json::array();
  for (const DeviceDiff& device : diff.device) {
    result["per_device"].push_back(
        {{"name", device.name},
         {"first_ops", device.first_ops},
         {"second_ops", device.second_ops},
         {"differ", device.differ},
         {"position", device.position ? Json(*device.position) : Json()}});
  }
  result["costs"] = report.costs;
  result["times"] = {{"first", times_json(report.first)}, {"second", times_json(report.second)}};
  result["untimed"] = report.untimed;
  result["notes"] = report.notes;
  return result.text();
}

}  // namespace stageline::report
