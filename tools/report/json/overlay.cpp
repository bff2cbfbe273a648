// Two timelines side by side as JSON. The keys are documented in tools/report/json/README.md and
// stable.
#include "tools/report/text/overlay.hpp"
#include "sim/analysis/statistics.hpp"
#include "tools/base/json.hpp"
#include "tools/report/json/row_parts.hpp"

namespace stageline::report {
namespace {

Json side_json(const StepCut& side) {
  Json json;
  json["name"] = side.name;
  json["is"] = side.word;
  json["step"] = side.step;
  json["steps"] = side.steps;
  put_time(json, "step_time", side.step_time);
  put_time(json, "mean_step_time", side.mean);
  put_time(json, "length", side.length);
  json["per_device"] = Json::array();
  for (std::size_t d = 0; d < side.busy.size(); ++d) {
    Json device;
    device["name"] = side.timeline.devices[d];
    put_time(device, "busy", side.busy[d]);
    put_time(device, "idle", side.length - side.busy[d]);
    json["per_device"].push_back(std::move(device));
  }
  return json;
}

void put_median(Json& row, const std::string& key, std::size_t count, Time time, Time spread) {
  row[key + "_count"] = count;
  put_time(row, key, time);
  put_time(row, key + "_spread", spread);
}

}  // namespace

std::string overlay_json(const Overlay& overlay) {
  Json result;
  result["first"] = side_json(overlay.first);
  result["second"] = side_json(overlay.second);
  put_time(result, "difference", overlay.second.step_time - overlay.first.step_time);
  result["per_stage_and_kind"] = Json::array();
  for (const KindMedian& median : overlay.medians) {
    Json row;
    row["stage"] = median.stage;
    row["kind"] = symbol(median.kind);
    put_median(row, "first", median.first_count, median.first, median.first_spread);
    put_median(row, "second", median.second_count, median.second, median.second_spread);
    result["per_stage_and_kind"].push_back(std::move(row));
  }
  result["per_op"] = Json::array();
  for (const OpPair& pair : overlay.ops) {
    Json row;
    row["op"] = print(pair.op);
    row["device"] = pair.device;
    row["first_start_ps"] = pair.first.start.count();
    row["first_end_ps"] = pair.first.end.count();
    row["second_start_ps"] = pair.second.start.count();
    row["second_end_ps"] = pair.second.end.count();
    row["difference_ps"] = pair.difference().count();
    row["of_step"] = fraction_of(pair.difference(), overlay.second.step_time);
    result["per_op"].push_back(std::move(row));
  }
  result["only_first"] = ops_json(overlay.only_first);
  result["only_second"] = ops_json(overlay.only_second);
  result["notes"] = overlay.notes;
  return result.text();
}

}  // namespace stageline::report
